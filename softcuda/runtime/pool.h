/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool.h - memory that is allocated and freed in the order of a stream
 *
 * An allocation is made at once, which is earlier than the stream asks for; a free takes effect
 * when the stream reaches it, and only then can the memory be given out again. Pools differ in
 * their limits and counts only: all memory of a device comes from one arena, so nothing is kept
 * back for reuse.
 */
#ifndef SOFTCUDA_POOL_H
#define SOFTCUDA_POOL_H

#include "softcuda/runtime/cuda_pool.h"
#include "softcuda/runtime/device.h"
#include "softcuda/runtime/ranges.h"

cudaError_t create_pool(int device, size_t limit, struct memory_pool **pool);
/* The program's reference; the pool ends with its last allocation. */
void release_pool(struct memory_pool *pool);
int pool_device(const struct memory_pool *pool);

/* The device's own pool, which is never destroyed. */
cudaError_t find_default_pool(struct device *device, struct memory_pool **pool);
/*
 * What cudaMallocAsync uses: the default one unless the program set another. NULL sets the default
 * one.
 */
cudaError_t find_current_pool(struct device *device, struct memory_pool **pool);
void set_current_pool(struct device *device, struct memory_pool *pool);

cudaError_t allocate_from_pool(struct memory_pool *pool, size_t size, void **pointer);
/* Free, when `stream` comes to it. */
cudaError_t free_in_order(void *pointer, struct stream *stream);
/* A pool's allocation that cudaFree took out of the table. */
void release_pool_range(const struct range *range);

/* False: there is no such attribute, or it cannot be set. */
bool set_pool_attribute(struct memory_pool *pool, enum cudaMemPoolAttr attribute,
			const void *value);
bool get_pool_attribute(struct memory_pool *pool, enum cudaMemPoolAttr attribute, void *value);

#endif
