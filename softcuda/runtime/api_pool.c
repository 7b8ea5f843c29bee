/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory pools and allocation in the order of a stream. */
#include "softcuda/runtime/capture.h"
#include "softcuda/runtime/cuda_api_more.h"
#include "softcuda/runtime/handles.h"
#include "softcuda/runtime/pool.h"
#include "softcuda/runtime/process.h"

static cudaError_t open_pool(cudaMemPool_t *handle, const struct cudaMemPoolProps *properties)
{
	if (handle == NULL || properties == NULL ||
	    properties->allocType != cudaMemAllocationTypePinned)
		return cudaErrorInvalidValue;
	if (properties->handleTypes != cudaMemHandleTypeNone ||
	    properties->location.type != cudaMemLocationTypeDevice)
		return cudaErrorNotSupported;
	if (!is_device(properties->location.id))
		return cudaErrorInvalidDevice;
	struct memory_pool *pool;
	cudaError_t error = create_pool(properties->location.id, properties->maxSize, &pool);
	if (error != cudaSuccess)
		return error;
	if (!add_handle(pool, HANDLE_POOL)) {
		release_pool(pool);
		return cudaErrorMemoryAllocation;
	}
	*handle = pool;
	return cudaSuccess;
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *properties)
{
	ENTER_RUNTIME();
	return record_error(open_pool(pool, properties));
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool)
{
	ENTER_RUNTIME();
	struct memory_pool *current;
	if (!is_handle(pool, HANDLE_POOL))
		return record_error(cudaErrorInvalidResourceHandle);
	struct device *device = find_device(pool_device(pool));
	/*
	 * The default pool cannot be destroyed; a pool that the program made current is replaced by
	 * it.
	 */
	cudaError_t error = find_default_pool(device, &current);
	if (error != cudaSuccess || current == pool)
		return record_error(error == cudaSuccess ? cudaErrorInvalidValue : error);
	error = find_current_pool(device, &current);
	if (error == cudaSuccess && current == pool)
		set_current_pool(device, NULL);
	if (!remove_handle(pool, HANDLE_POOL))
		return record_error(cudaErrorInvalidResourceHandle);
	release_pool(pool);
	return cudaSuccess;
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value)
{
	ENTER_RUNTIME();
	if (!is_handle(pool, HANDLE_POOL))
		return record_error(cudaErrorInvalidResourceHandle);
	if (value == NULL || !set_pool_attribute(pool, attribute, value))
		return record_error(cudaErrorInvalidValue);
	return cudaSuccess;
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value)
{
	ENTER_RUNTIME();
	if (!is_handle(pool, HANDLE_POOL))
		return record_error(cudaErrorInvalidResourceHandle);
	if (value == NULL || !get_pool_attribute(pool, attribute, value))
		return record_error(cudaErrorInvalidValue);
	return cudaSuccess;
}

/* What is free is given back at once, so there is never anything to trim. */
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep)
{
	ENTER_RUNTIME();
	return record_error(is_handle(pool, HANDLE_POOL) ? cudaSuccess
							 : cudaErrorInvalidResourceHandle);
}

/* The default pool is a handle from the first time that a program sees it. */
static cudaError_t show_pool(cudaError_t error, struct memory_pool *pool, cudaMemPool_t *handle)
{
	if (error != cudaSuccess)
		return error;
	if (!is_handle(pool, HANDLE_POOL) && !add_handle(pool, HANDLE_POOL))
		return cudaErrorMemoryAllocation;
	*handle = pool;
	return cudaSuccess;
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *handle, int device)
{
	ENTER_RUNTIME();
	struct memory_pool *pool;
	if (handle == NULL || !is_device(device))
		return record_error(handle == NULL ? cudaErrorInvalidValue
						   : cudaErrorInvalidDevice);
	cudaError_t error = find_default_pool(find_device(device), &pool);
	return record_error(show_pool(error, pool, handle));
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *handle, int device)
{
	ENTER_RUNTIME();
	struct memory_pool *pool;
	if (handle == NULL || !is_device(device))
		return record_error(handle == NULL ? cudaErrorInvalidValue
						   : cudaErrorInvalidDevice);
	cudaError_t error = find_current_pool(find_device(device), &pool);
	return record_error(show_pool(error, pool, handle));
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool)
{
	ENTER_RUNTIME();
	if (!is_device(device))
		return record_error(cudaErrorInvalidDevice);
	if (!is_handle(pool, HANDLE_POOL) || pool_device(pool) != device)
		return record_error(cudaErrorInvalidValue);
	set_current_pool(find_device(device), pool);
	return cudaSuccess;
}

static cudaError_t request_memory(void **pointer, size_t size, struct memory_pool *pool,
				  cudaStream_t handle)
{
	struct stream *stream;
	cudaError_t error = find_stream(handle, &stream);
	if (error == cudaSuccess && pool == NULL)
		error = find_current_pool(stream->device, &pool);
	if (error == cudaSuccess)
		error = refuse_in_capture(stream);
	if (error != cudaSuccess)
		return error;
	return allocate_from_pool(pool, size, pointer);
}

cudaError_t cudaMallocAsync(void **pointer, size_t size, cudaStream_t stream)
{
	ENTER_RUNTIME();
	if (pointer == NULL)
		return record_error(cudaErrorInvalidValue);
	return record_error(request_memory(pointer, size, NULL, stream));
}

cudaError_t cudaMallocFromPoolAsync(void **pointer, size_t size, cudaMemPool_t pool,
				    cudaStream_t stream)
{
	ENTER_RUNTIME();
	if (pointer == NULL)
		return record_error(cudaErrorInvalidValue);
	if (!is_handle(pool, HANDLE_POOL))
		return record_error(cudaErrorInvalidResourceHandle);
	return record_error(request_memory(pointer, size, pool, stream));
}

cudaError_t cudaFreeAsync(void *pointer, cudaStream_t handle)
{
	ENTER_RUNTIME();
	struct stream *stream;
	if (pointer == NULL)
		return cudaSuccess;
	cudaError_t error = find_stream(handle, &stream);
	if (error == cudaSuccess)
		error = refuse_in_capture(stream);
	if (error == cudaSuccess)
		error = free_in_order(pointer, stream);
	return record_error(error);
}
