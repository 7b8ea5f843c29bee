/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ranges.h - what the addresses of this process are: device memory, page-locked memory, mappings
 *
 * Ranges never overlap. An address in none of them is pageable host memory.
 */
#ifndef SOFTCUDA_RANGES_H
#define SOFTCUDA_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum range_kind {
	/* cudaMalloc and pools: `offset` bytes into the device's memory, `owner` is the pool */
	RANGE_DEVICE,
	RANGE_HOST,       /* cudaHostAlloc */
	RANGE_REGISTERED, /* cudaHostRegister */
	RANGE_MAPPED,     /* cuMemMap: `owner` is the memory, `offset` the place in it */
	RANGE_IPC,        /* another process's device memory */
};

struct range {
	uintptr_t start;
	size_t size;
	enum range_kind kind;
	int device;
	size_t offset;
	void *owner;
	size_t span;     /* bytes that belong to the range when it is released: size, rounded up */
	uint64_t number; /* given by add_range; never used again */
};

/* Returns false if it overlaps another or without memory. */
bool add_range(const struct range *range);
/* The range that `address` lies in; a copy. */
bool find_range(const void *address, struct range *range);
/*
 * Take out the range that begins at `start`, if it is of `kind`. Of several threads one succeeds.
 */
bool remove_range(const void *start, enum range_kind kind, struct range *range);

#endif
