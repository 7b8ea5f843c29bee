/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * copy.h - copies, fills and other operations on memory
 */
#ifndef SOFTCUDA_COPY_H
#define SOFTCUDA_COPY_H

#include <stdint.h>

#include "softcuda/runtime/operation.h"

/* Rows of a copy or of a fill. A plain one has a single row. */
struct shape {
	size_t width; /* bytes */
	size_t height;
	size_t to_pitch;
	size_t from_pitch;
};

/*
 * A copy of at most this many bytes is done by the thread that asks for it if the stream is idle.
 */
#define COPY_BRIEF (64u << 10)

/*
 * `from` may be NULL: the bytes are in copy_staging(), to be filled by the caller before the copy
 * is appended.
 */
struct operation *create_copy(void *to, const void *from, struct shape shape);
/* Where a copy without a source keeps its bytes: rows without gaps. */
void *copy_staging(struct operation *operation);

/*
 * Fill with `value`, an element of 1, 2 or 4 bytes. shape.width is a multiple of it; from_pitch is
 * not used.
 */
struct operation *create_fill(void *to, uint32_t value, unsigned element, struct shape shape);

#endif
