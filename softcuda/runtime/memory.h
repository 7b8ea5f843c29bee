/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory.h - device memory and page-locked host memory, and what an address is
 */
#ifndef SOFTCUDA_MEMORY_H
#define SOFTCUDA_MEMORY_H

#include "softcuda/runtime/cuda_types.h"
#include "softcuda/runtime/device.h"
#include "softcuda/runtime/ranges.h"

/* pool: the pool that it is allocated from, or NULL. */
cudaError_t allocate_device_memory(struct device *device, size_t size, struct memory_pool *pool,
				   void **pointer);
/* Give back a range that was taken out of the table. */
void release_device_memory(const struct range *range);

/* Write zeros into cudaMalloc's memory. False: it is something else, and nothing was written. */
bool zero_device_memory(void *pointer, size_t size);

cudaError_t allocate_host_memory(size_t size, void **pointer);
void release_host_memory(const struct range *range);

/* Whether it is memory of a device: cudaMalloc's, mapped, or of another process. */
bool is_device_range(const struct range *range);

#endif
