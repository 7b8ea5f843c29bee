/* SPDX-License-Identifier: BSD-3-Clause */
#include "softcuda/runtime/memory.h"

#include <sys/mman.h>

static size_t round_to_pages(size_t size)
{
	return (size + ARENA_PAGE - 1) & ~(size_t)(ARENA_PAGE - 1);
}

cudaError_t allocate_device_memory(struct device *device, size_t size, struct memory_pool *pool,
				   void **pointer)
{
	*pointer = NULL;
	if (size == 0)
		return cudaSuccess;
	struct arena *arena = device_arena(device);
	if (arena == NULL)
		return cudaErrorMemoryAllocation;
	int64_t offset = allocate_pages(arena, size);
	if (offset < 0)
		return cudaErrorMemoryAllocation;
	char *address = arena_address(arena, (size_t)offset);
	struct range range = {
		.start = (uintptr_t)address,
		.size = size,
		.kind = RANGE_DEVICE,
		.device = device->ordinal,
		.offset = (size_t)offset,
		.span = round_to_pages(size),
		.owner = pool,
	};
	if (!add_range(&range)) {
		release_pages(arena, (size_t)offset, size);
		return cudaErrorMemoryAllocation;
	}
	*pointer = address;
	return cudaSuccess;
}

void release_device_memory(const struct range *range)
{
	release_pages(device_arena(find_device(range->device)), range->offset, range->span);
}

bool zero_device_memory(void *pointer, size_t size)
{
	struct range range;

	if (!find_range(pointer, &range) || range.kind != RANGE_DEVICE)
		return false;
	size_t within = (uintptr_t)pointer - range.start;
	if (size > range.span - within)
		return false;
	zero_pages(device_arena(find_device(range.device)), range.offset + within, size);
	return true;
}

/*
 * Whole pages of its own: what is registered with a NIC must not share a page with the program's
 * heap.
 */
cudaError_t allocate_host_memory(size_t size, void **pointer)
{
	*pointer = NULL;
	if (size == 0)
		return cudaSuccess;
	if (size > SIZE_MAX / 2)
		return cudaErrorMemoryAllocation;
	size_t span = round_to_pages(size);
	void *address =
		mmap(NULL, span, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (address == MAP_FAILED)
		return cudaErrorMemoryAllocation;
	struct range range = {
		.start = (uintptr_t)address,
		.size = size,
		.kind = RANGE_HOST,
		.device = this_device()->ordinal,
		.span = span,
	};
	if (!add_range(&range)) {
		munmap(address, span);
		return cudaErrorMemoryAllocation;
	}
	*pointer = address;
	return cudaSuccess;
}

void release_host_memory(const struct range *range)
{
	munmap((void *)range->start, range->span);
}

bool is_device_range(const struct range *range)
{
	return range->kind == RANGE_DEVICE || range->kind == RANGE_MAPPED ||
	       range->kind == RANGE_IPC;
}
