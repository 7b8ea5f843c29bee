/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory.h - the host's part of moe.h: what a shape needs of memory, and the words a launch begins
 * with
 */
#ifndef HA_GPU_EXAMPLE_MEMORY_H
#define HA_GPU_EXAMPLE_MEMORY_H

#include "gpu/example/moe.h"

#include <stddef.h>

/* NULL: it can be; else what is wrong, for the user. rows: connections to each peer. */
const char *ha_moe_shape_wrong(const struct ha_moe_shape *s, uint32_t rows);
void ha_moe_make_layout(const struct ha_moe_shape *s, struct ha_moe_layout *l);
/* Of the heap: two areas. */
size_t ha_moe_heap_bytes(const struct ha_moe_shape *s);
/* Of the words of both areas. */
size_t ha_moe_words_bytes(const struct ha_moe_shape *s);
/* Of what a launch packs, and of its result. */
size_t ha_moe_packed_bytes(const struct ha_moe_shape *s);
size_t ha_moe_combined_bytes(const struct ha_moe_shape *s);

/*
 * `words`: zeroed, as many bytes as above, where device threads reach it; heap: the registered
 * memory's first byte.
 */
void ha_moe_init(struct ha_moe *m, const struct ha_moe_shape *s, struct ha_gpu_world *world,
		 uint32_t rows, void *heap, void *words);

/* After a launch that was DONE: the next may come. */
void ha_moe_count_dispatch(struct ha_moe *m, uint32_t phases);
void ha_moe_count_combine(struct ha_moe *m, uint32_t phases);

#endif
