/* SPDX-License-Identifier: BSD-3-Clause */
/* memory.h - the shared file: made and sealed by the client, checked and mapped by the backend */
#ifndef INA_SHM_MEMORY_H
#define INA_SHM_MEMORY_H

#include "ina/host/shm/guard.h"
#include "ina/host/shm/ring.h"

#include <sys/types.h>

/* One side's mapping. */
struct ina_shm_memory {
	uint8_t *map;
	uint64_t bytes;
	uint32_t segments;
	uint8_t *buffer; /* the copy buffer, inside of map */
	uint64_t buffer_bytes;
	struct ina_shm_ring requests, responses; /* this side's ends */
	struct ina_shm_guard *guard;             /* the backend's: whether it has been lost */
};

/*
 * The client's: all pages are there (nobody runs out of memory later), spread over the NUMA nodes
 * that this process may use, not handed down by fork. 0 and *file, which is to be closed when it
 * has been passed on; or a negative errno and why[size].
 */
int ina_shm_memory_make(struct ina_shm_memory *memory, uint32_t segments, int *file, char *why,
			size_t size);
/*
 * The backend's: only a memory file that can neither shrink nor grow, of at most `most` bytes. It
 * is sealed against holes, all its pages are there, and if they get lost all the same, guard says
 * so. 0, or -EPROTO or an errno and why[size].
 */
int ina_shm_memory_take(struct ina_shm_memory *memory, int file, uint64_t most, char *why,
			size_t size);
void ina_shm_memory_drop(struct ina_shm_memory *memory);

#endif
