/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * buffer.h - who holds which part of the copy buffer: the client's own book, in memory of its own
 *
 * Parts are given out in the order of the buffer, round and round (first in, first out, as long as
 * they come back in that order). They may come back in any order: a segment belongs to one owner (a
 * group) while any part of it is out, and is free when its last part has come back. So a group that
 * waits for ever holds its own segments and nobody else's; with `share` no more than its part of
 * all.
 */
#ifndef INA_SHM_BUFFER_H
#define INA_SHM_BUFFER_H

#include "ina/host/shm/layout.h"

struct ina_shm_segment {
	uint32_t owner, used, out; /* bytes given so far, and of these still out; out == 0: free */
};

struct ina_shm_buffer {
	struct ina_shm_segment *segment;
	uint32_t segments, next; /* where the search for a free one begins */
};

/* segment: so many, the caller's. */
void ina_shm_buffer_init(struct ina_shm_buffer *b, struct ina_shm_segment *segment,
			 uint32_t segments);
/*
 * bytes: at most a segment; owner: not UINT32_MAX. share: segments that it may hold at once. True
 * and *offset, a multiple of INA_SHM_BLOCK.
 */
bool ina_shm_buffer_take(struct ina_shm_buffer *b, uint32_t owner, uint32_t share, uint32_t bytes,
			 uint64_t *offset);
/* What was taken, with the same bytes. */
void ina_shm_buffer_give(struct ina_shm_buffer *b, uint64_t offset, uint32_t bytes);

#endif
