/* SPDX-License-Identifier: BSD-3-Clause */
#include "softcuda/runtime/dmabuf.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "softcuda/runtime/memory.h"
#include "softcuda/runtime/vmm.h"

/*
 * The file behind a range, and where in it the range begins. -1: there is none that may be
 * exported.
 */
static int find_file(const struct range *range, size_t *offset)
{
	*offset = range->offset;
	if (range->kind == RANGE_DEVICE)
		return arena_descriptor(device_arena(find_device(range->device)));
	if (range->kind == RANGE_MAPPED)
		return ((struct vmm_memory *)range->owner)->descriptor;
	return -1;
}

/* A descriptor with a file position of its own, unlike a duplicate. */
static int open_again(int file)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	return open(path, O_RDWR | O_CLOEXEC);
}

cudaError_t export_dmabuf(const void *address, size_t size, int *descriptor)
{
	struct range range;
	size_t offset;
	if (size == 0 || !find_range(address, &range) || !is_device_range(&range))
		return cudaErrorInvalidValue;
	/*
	 * NCCL rounds a size up to whole pages; the rest of the last page belongs to the range,
	 * too.
	 */
	size_t skipped = (uintptr_t)address - range.start;
	if (size > range.span - skipped)
		return cudaErrorNotSupported;
	int file = find_file(&range, &offset);
	if (file < 0)
		return cudaErrorNotSupported;
	int own = open_again(file);
	if (own < 0)
		return cudaErrorOperatingSystem;
	if (lseek(own, (off_t)(offset + skipped), SEEK_SET) < 0) {
		close(own);
		return cudaErrorOperatingSystem;
	}
	*descriptor = own;
	return cudaSuccess;
}
