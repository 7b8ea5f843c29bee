/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory: allocation, registration, attributes of pointers. */
#include "softcuda/runtime/capture.h"
#include "softcuda/runtime/cuda_api.h"
#include "softcuda/runtime/memory.h"
#include "softcuda/runtime/pool.h"
#include "softcuda/runtime/process.h"

#define PITCH 512u

/* ---- device memory ---- */

static cudaError_t allocate_device(size_t size, void **pointer)
{
	cudaError_t error = refuse_unsafe_call();
	if (error != cudaSuccess)
		return error;
	return allocate_device_memory(this_device(), size, NULL, pointer);
}

cudaError_t cudaMalloc(void **pointer, size_t size)
{
	ENTER_RUNTIME();
	if (pointer == NULL)
		return record_error(cudaErrorInvalidValue);
	return record_error(allocate_device(size, pointer));
}

cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height)
{
	ENTER_RUNTIME();
	if (pointer == NULL || pitch == NULL || width > SIZE_MAX - PITCH)
		return record_error(cudaErrorInvalidValue);
	size_t rounded = (width + PITCH - 1) & ~(size_t)(PITCH - 1);
	if (height != 0 && rounded > SIZE_MAX / height)
		return record_error(cudaErrorMemoryAllocation);
	*pitch = rounded;
	return record_error(allocate_device(rounded * height, pointer));
}

/* Whatever may still use the memory has been asked for before, in some stream of its device. */
static cudaError_t free_device(void *pointer)
{
	struct range range;
	if (!find_range(pointer, &range) || range.kind != RANGE_DEVICE ||
	    range.start != (uintptr_t)pointer)
		return cudaErrorInvalidValue;
	cudaError_t error = refuse_unsafe_call();
	if (error == cudaSuccess)
		error = synchronize_device(find_device(range.device));
	if (error != cudaSuccess)
		return error;
	if (!remove_range(pointer, RANGE_DEVICE, &range))
		return cudaErrorInvalidValue;
	if (range.owner != NULL)
		release_pool_range(&range);
	else
		release_device_memory(&range);
	return cudaSuccess;
}

cudaError_t cudaFree(void *pointer)
{
	ENTER_RUNTIME();
	if (pointer == NULL)
		return cudaSuccess;
	if (is_worker_thread())
		return record_error(cudaErrorNotPermitted);
	return record_error(free_device(pointer));
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
	ENTER_RUNTIME();
	if (free_bytes == NULL || total == NULL)
		return record_error(cudaErrorInvalidValue);
	struct arena *arena = device_arena(this_device());
	if (arena == NULL)
		return record_error(cudaErrorMemoryAllocation);
	*free_bytes = count_free_bytes(arena);
	*total = this_machine()->memory;
	return cudaSuccess;
}

/* ---- host memory ---- */

cudaError_t cudaHostAlloc(void **pointer, size_t size, unsigned flags)
{
	ENTER_RUNTIME();
	unsigned known = cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
	if (pointer == NULL || (flags & ~known) != 0)
		return record_error(cudaErrorInvalidValue);
	cudaError_t error = refuse_unsafe_call();
	if (error == cudaSuccess)
		error = allocate_host_memory(size, pointer);
	return record_error(error);
}

cudaError_t cudaMallocHost(void **pointer, size_t size)
{
	return cudaHostAlloc(pointer, size, cudaHostAllocDefault);
}

static cudaError_t free_host(void *pointer)
{
	struct range range;
	if (!find_range(pointer, &range) || range.kind != RANGE_HOST ||
	    range.start != (uintptr_t)pointer)
		return cudaErrorInvalidValue;
	cudaError_t error = refuse_unsafe_call();
	if (error == cudaSuccess)
		error = synchronize_device(find_device(range.device));
	if (error != cudaSuccess)
		return error;
	if (!remove_range(pointer, RANGE_HOST, &range))
		return cudaErrorInvalidValue;
	release_host_memory(&range);
	return cudaSuccess;
}

cudaError_t cudaFreeHost(void *pointer)
{
	ENTER_RUNTIME();
	if (pointer == NULL)
		return cudaSuccess;
	if (is_worker_thread())
		return record_error(cudaErrorNotPermitted);
	return record_error(free_host(pointer));
}

cudaError_t cudaHostRegister(void *pointer, size_t size, unsigned flags)
{
	ENTER_RUNTIME();
	unsigned known = cudaHostRegisterPortable | cudaHostRegisterMapped |
			 cudaHostRegisterIoMemory | cudaHostRegisterReadOnly;
	if (pointer == NULL || size == 0 || (flags & ~known) != 0)
		return record_error(cudaErrorInvalidValue);
	struct range range = {
		.start = (uintptr_t)pointer,
		.size = size,
		.kind = RANGE_REGISTERED,
		.device = current_device(),
		.span = size,
	};
	return record_error(add_range(&range) ? cudaSuccess : cudaErrorHostMemoryAlreadyRegistered);
}

cudaError_t cudaHostUnregister(void *pointer)
{
	ENTER_RUNTIME();
	struct range range;
	if (!remove_range(pointer, RANGE_REGISTERED, &range))
		return record_error(cudaErrorHostMemoryNotRegistered);
	return cudaSuccess;
}

static bool find_host_range(const void *pointer, struct range *range)
{
	return find_range(pointer, range) &&
	       (range->kind == RANGE_HOST || range->kind == RANGE_REGISTERED);
}

cudaError_t cudaHostGetDevicePointer(void **device_pointer, void *pointer, unsigned flags)
{
	ENTER_RUNTIME();
	struct range range;
	if (device_pointer == NULL || flags != 0 || !find_host_range(pointer, &range))
		return record_error(cudaErrorInvalidValue);
	*device_pointer = pointer;
	return cudaSuccess;
}

cudaError_t cudaHostGetFlags(unsigned *flags, void *pointer)
{
	ENTER_RUNTIME();
	struct range range;
	if (flags == NULL || !find_host_range(pointer, &range))
		return record_error(cudaErrorInvalidValue);
	*flags = cudaHostAllocMapped | cudaHostAllocPortable; /* always so */
	return cudaSuccess;
}

/* ---- attributes ---- */

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *pointer)
{
	ENTER_RUNTIME();
	struct range range;
	if (attributes == NULL)
		return record_error(cudaErrorInvalidValue);
	void *address = (void *)(uintptr_t)pointer;
	if (!find_range(pointer, &range)) {
		*attributes = (struct cudaPointerAttributes) { .type = cudaMemoryTypeUnregistered,
							       .device = cudaInvalidDeviceId,
							       .hostPointer = address };
		return cudaSuccess;
	}
	attributes->device = range.device;
	attributes->devicePointer = address;
	attributes->type = is_device_range(&range) ? cudaMemoryTypeDevice : cudaMemoryTypeHost;
	attributes->hostPointer = is_device_range(&range) ? NULL : address;
	return cudaSuccess;
}
