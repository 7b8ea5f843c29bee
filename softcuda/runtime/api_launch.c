/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels: registration by nvcc's constructors, attributes, launches. */
#include <stdlib.h>
#include <string.h>

#include "softcuda/runtime/cuda_api.h"
#include "softcuda/runtime/device.h"
#include "softcuda/runtime/handles.h"
#include "softcuda/runtime/kernel.h"
#include "softcuda/runtime/launch.h"
#include "softcuda/runtime/process.h"
#include "softcuda/runtime/submit.h"

/* Called by code that nvcc generates; in no public header. */
#pragma GCC visibility push(default)
void **__cudaRegisterFatBinary(void *image);
void __cudaRegisterFatBinaryEnd(void **binary);
void __cudaUnregisterFatBinary(void **binary);
void __cudaRegisterFunction(void **binary, const char *stub, char *device_function,
			    const char *name, int thread_limit, void *thread, void *block,
			    void *block_dimension, void *grid_dimension, int *warp_size);
void __cudaRegisterVar(void **binary, char *variable, char *device_address, const char *name,
		       int external, size_t size, int constant, int global);
char __cudaInitModule(void **binary);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_memory,
				     struct stream *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_memory,
				       void *stream);
#pragma GCC visibility pop

/* ---- registration ---- */

/*
 * The image is machine code for a GPU and is not read; its place in memory tells one binary from
 * another.
 */
void **__cudaRegisterFatBinary(void *image)
{
	void **binary = malloc(sizeof(*binary));
	if (binary != NULL)
		*binary = image;
	return binary;
}

void __cudaRegisterFatBinaryEnd(void **binary)
{
}

void __cudaUnregisterFatBinary(void **binary)
{
	if (binary == NULL)
		return;
	unregister_kernels(binary);
	free(binary);
}

void __cudaRegisterFunction(void **binary, const char *stub, char *device_function,
			    const char *name, int thread_limit, void *thread, void *block,
			    void *block_dimension, void *grid_dimension, int *warp_size)
{
	register_kernel(binary, stub, name);
}

/* Variables of device code: nobody executes that code, so nothing reads them. */
void __cudaRegisterVar(void **binary, char *variable, char *device_address, const char *name,
		       int external, size_t size, int constant, int global)
{
}

char __cudaInitModule(void **binary)
{
	return 1;
}

/* ---- the configuration between <<< and >>> ---- */

/* a launch's arguments may contain launches; deeper than any program goes */
#define CONFIGURATIONS_MAX 8

struct configuration {
	dim3 grid;
	dim3 block;
	size_t shared_memory;
	struct stream *stream;
};

static _Thread_local struct configuration configurations[CONFIGURATIONS_MAX];
static _Thread_local unsigned configuration_count;

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_memory,
				     struct stream *stream)
{
	if (configuration_count == CONFIGURATIONS_MAX)
		return 1;
	configurations[configuration_count++] =
		(struct configuration) { grid, block, shared_memory, stream };
	return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_memory, void *stream)
{
	if (configuration_count == 0)
		return record_error(cudaErrorMissingConfiguration);
	struct configuration *last = &configurations[--configuration_count];
	*grid = last->grid;
	*block = last->block;
	*shared_memory = last->shared_memory;
	*(struct stream **)stream = last->stream;
	return cudaSuccess;
}

/* ---- functions ---- */

cudaError_t cudaGetFuncBySymbol(cudaFunction_t *function, const void *symbol)
{
	ENTER_RUNTIME();
	if (function == NULL)
		return record_error(cudaErrorInvalidValue);
	*function = find_kernel(symbol);
	return record_error(*function == NULL ? cudaErrorInvalidDeviceFunction : cudaSuccess);
}

cudaError_t cudaFuncGetName(const char **name, const void *function)
{
	ENTER_RUNTIME();
	struct kernel_entry *entry = find_kernel(function);
	if (name == NULL || entry == NULL)
		return record_error(name == NULL ? cudaErrorInvalidValue
						 : cudaErrorInvalidDeviceFunction);
	*name = kernel_name(entry);
	return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *function)
{
	ENTER_RUNTIME();
	struct kernel_entry *entry = find_kernel(function);
	if (attributes == NULL || entry == NULL)
		return record_error(attributes == NULL ? cudaErrorInvalidValue
						       : cudaErrorInvalidDeviceFunction);
	const struct softcuda_kernel *body = resolve_kernel(entry);
	memset(attributes, 0, sizeof(*attributes));
	attributes->sharedSizeBytes = body == NULL ? 0 : body->static_shared_memory;
	attributes->maxThreadsPerBlock = 1024;
	attributes->ptxVersion = MACHINE_CAPABILITY_MAJOR * 10 + MACHINE_CAPABILITY_MINOR;
	attributes->binaryVersion = attributes->ptxVersion;
	attributes->preferredShmemCarveout = -1;
	return cudaSuccess;
}

/* Shared memory of a launch is what its body makes of it: there is nothing to reserve. */
cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute attribute, int value)
{
	ENTER_RUNTIME();
	return record_error(find_kernel(function) == NULL ? cudaErrorInvalidDeviceFunction
							  : cudaSuccess);
}

cudaError_t cudaFuncSetCacheConfig(const void *function, int preference)
{
	return cudaFuncSetAttribute(function, cudaFuncAttributePreferredSharedMemoryCarveout,
				    preference);
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **parameters,
			     size_t shared_memory, cudaStream_t stream)
{
	ENTER_RUNTIME();
	struct kernel_entry *entry = find_kernel(function);
	if (entry == NULL)
		return record_error(cudaErrorInvalidDeviceFunction);
	struct launch_shape shape = { .grid = grid,
				      .block = block,
				      .shared_memory = (unsigned)shared_memory };
	return record_error(launch_kernel(entry, &shape, parameters, NULL, stream));
}

/* All blocks of a kernel are there at the same time: its body is one function. */
cudaError_t cudaLaunchCooperativeKernel(const void *function, dim3 grid, dim3 block,
					void **parameters, size_t shared_memory,
					cudaStream_t stream)
{
	return cudaLaunchKernel(function, grid, block, parameters, shared_memory, stream);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function,
				void **parameters)
{
	ENTER_RUNTIME();
	if (config == NULL || (config->numAttrs != 0 && config->attrs == NULL))
		return record_error(cudaErrorInvalidValue);
	cudaError_t error = cudaLaunchKernel(function, config->gridDim, config->blockDim,
					     parameters, config->dynamicSmemBytes, config->stream);
	if (error == cudaSuccess)
		error = record_launch_events(config->attrs, config->numAttrs, config->stream);
	return record_error(error);
}
