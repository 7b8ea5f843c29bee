/* SPDX-License-Identifier: BSD-3-Clause */
#include "softcuda/runtime/driver.h"

#include <string.h>

#include "softcuda/runtime/attributes.h"
#include "softcuda/runtime/cuda_api.h"
#include "softcuda/runtime/device.h"
#include "softcuda/runtime/event.h"
#include "softcuda/runtime/handles.h"
#include "softcuda/runtime/launch.h"
#include "softcuda/runtime/memory_operation.h"
#include "softcuda/runtime/process.h"
#include "softcuda/runtime/submit.h"

/* Of the driver's calls a failure is returned only: the runtime's last error is not touched. */
#define ENTER_DRIVER()                                            \
	do {                                                      \
		cudaError_t entered_ = enter_runtime();           \
		if (__builtin_expect(entered_ != cudaSuccess, 0)) \
			return entered_;                          \
	} while (0)

/* ---- errors, versions, devices ---- */

static CUresult get_error_string(CUresult error, const char **text)
{
	if (text == NULL)
		return cudaErrorInvalidValue;
	*text = find_error_text(error);
	return cudaSuccess;
}

static CUresult get_error_name(CUresult error, const char **name)
{
	if (name == NULL)
		return cudaErrorInvalidValue;
	*name = find_error_name(error);
	return cudaSuccess;
}

static CUresult initialize_driver(unsigned flags)
{
	ENTER_DRIVER();
	return flags == 0 ? cudaSuccess : cudaErrorInvalidValue;
}

static CUresult get_driver_version(int *version)
{
	if (version == NULL)
		return cudaErrorInvalidValue;
	*version = MACHINE_DRIVER_VERSION;
	return cudaSuccess;
}

static CUresult get_device_count(int *count)
{
	ENTER_DRIVER();
	if (count == NULL)
		return cudaErrorInvalidValue;
	*count = (int)count_devices();
	return cudaSuccess;
}

static CUresult get_device(CUdevice *device, int ordinal)
{
	ENTER_DRIVER();
	if (device == NULL || !is_device(ordinal))
		return device == NULL ? cudaErrorInvalidValue : cudaErrorInvalidDevice;
	*device = ordinal;
	return cudaSuccess;
}

static CUresult get_device_attribute(int *value, int attribute, CUdevice device)
{
	ENTER_DRIVER();
	if (!is_device(device))
		return cudaErrorInvalidDevice;
	if (value == NULL || !read_attribute(attribute, (unsigned)device, value))
		return cudaErrorInvalidValue;
	return cudaSuccess;
}

static CUresult get_device_uuid(cudaUUID_t *uuid, CUdevice device)
{
	ENTER_DRIVER();
	if (!is_device(device))
		return cudaErrorInvalidDevice;
	if (uuid == NULL)
		return cudaErrorInvalidValue;
	make_machine_uuid(this_machine(), find_device_number(device), (unsigned char *)uuid->bytes);
	return cudaSuccess;
}

/* ---- contexts: each device has one, which everybody shares ---- */

struct context {
	char unused;
};
static struct context contexts[MACHINE_DEVICES_MAX];

static bool is_context(CUcontext context)
{
	return context >= contexts && context < contexts + count_devices();
}

static CUresult get_current_context(CUcontext *context)
{
	ENTER_DRIVER();
	if (context == NULL)
		return cudaErrorInvalidValue;
	*context = &contexts[current_device()];
	return cudaSuccess;
}

static CUresult set_current_context(CUcontext context)
{
	ENTER_DRIVER();
	if (!is_context(context))
		return cudaErrorDeviceUninitialized;
	set_current_device((int)(context - contexts));
	return cudaSuccess;
}

static CUresult create_context(CUcontext *context, void *parameters, int parameter_count,
			       unsigned flags, CUdevice device)
{
	ENTER_DRIVER();
	if (context == NULL || !is_device(device))
		return context == NULL ? cudaErrorInvalidValue : cudaErrorInvalidDevice;
	*context = &contexts[device];
	set_current_device(device);
	return cudaSuccess;
}

static CUresult destroy_context(CUcontext context)
{
	ENTER_DRIVER();
	return is_context(context) ? cudaSuccess : cudaErrorDeviceUninitialized;
}

static CUresult get_context_device(CUdevice *device)
{
	ENTER_DRIVER();
	if (device == NULL)
		return cudaErrorInvalidValue;
	*device = current_device();
	return cudaSuccess;
}

/* ---- launches ---- */

static CUresult launch_function(CUfunction function, unsigned grid_x, unsigned grid_y,
				unsigned grid_z, unsigned block_x, unsigned block_y,
				unsigned block_z, unsigned shared_memory, CUstream stream,
				void **parameters, void **extra)
{
	ENTER_DRIVER();
	if (!is_handle(function, HANDLE_FUNCTION))
		return cudaErrorInvalidResourceHandle;
	struct launch_shape shape = { .grid = { grid_x, grid_y, grid_z },
				      .block = { block_x, block_y, block_z },
				      .shared_memory = shared_memory };
	return launch_kernel(function, &shape, parameters, extra, stream);
}

static CUresult launch_extended(const CUlaunchConfig *config, CUfunction function,
				void **parameters, void **extra)
{
	ENTER_DRIVER();
	if (config == NULL || (config->numAttrs != 0 && config->attrs == NULL))
		return cudaErrorInvalidValue;
	CUresult error =
		launch_function(function, config->gridDimX, config->gridDimY, config->gridDimZ,
				config->blockDimX, config->blockDimY, config->blockDimZ,
				config->sharedMemBytes, config->hStream, parameters, extra);
	if (error != cudaSuccess)
		return error;
	return record_launch_events(config->attrs, config->numAttrs, config->hStream);
}

/* ---- values in memory ---- */

static CUresult batch_memory_operations(CUstream handle, unsigned count,
					CUstreamBatchMemOpParams *list, unsigned flags)
{
	ENTER_DRIVER();
	struct stream *stream;
	struct operation *operation;
	if (count > 256 || (count != 0 && list == NULL) || flags != 0)
		return cudaErrorInvalidValue;
	cudaError_t error = find_stream(handle, &stream);
	if (error == cudaSuccess)
		error = create_memory_operations(list, count, &operation);
	if (error != cudaSuccess)
		return error;
	return submit_operation(stream, operation);
}

static CUresult submit_value(CUstream stream, enum CUstreamBatchMemOpType type, CUdeviceptr address,
			     uint64_t value, unsigned flags)
{
	CUstreamBatchMemOpParams one = { .value = { type, address, value, flags, 0 } };
	return batch_memory_operations(stream, 1, &one, 0);
}

static CUresult wait_value_32(CUstream stream, CUdeviceptr address, uint32_t value, unsigned flags)
{
	return submit_value(stream, CU_STREAM_MEM_OP_WAIT_VALUE_32, address, value, flags);
}

static CUresult wait_value_64(CUstream stream, CUdeviceptr address, uint64_t value, unsigned flags)
{
	return submit_value(stream, CU_STREAM_MEM_OP_WAIT_VALUE_64, address, value, flags);
}

static CUresult write_value_32(CUstream stream, CUdeviceptr address, uint32_t value, unsigned flags)
{
	return submit_value(stream, CU_STREAM_MEM_OP_WRITE_VALUE_32, address, value, flags);
}

static CUresult write_value_64(CUstream stream, CUdeviceptr address, uint64_t value, unsigned flags)
{
	return submit_value(stream, CU_STREAM_MEM_OP_WRITE_VALUE_64, address, value, flags);
}

/* ---- by name ---- */

static CUresult get_procedure(const char *symbol, void **function, int version, uint64_t flags,
			      int *status);

#define ENTRY(name, function)                       \
	{                                           \
		name, (driver_function *)(function) \
	}

static const struct driver_entry functions[] = {
	ENTRY("cuInit", initialize_driver),
	ENTRY("cuDriverGetVersion", get_driver_version),
	ENTRY("cuGetErrorString", get_error_string),
	ENTRY("cuGetErrorName", get_error_name),
	ENTRY("cuGetProcAddress", get_procedure),
	ENTRY("cuDeviceGetCount", get_device_count),
	ENTRY("cuDeviceGet", get_device),
	ENTRY("cuDeviceGetAttribute", get_device_attribute),
	ENTRY("cuDeviceGetUuid", get_device_uuid),
	ENTRY("cuCtxCreate", create_context),
	ENTRY("cuCtxDestroy", destroy_context),
	ENTRY("cuCtxGetCurrent", get_current_context),
	ENTRY("cuCtxSetCurrent", set_current_context),
	ENTRY("cuCtxGetDevice", get_context_device),
	ENTRY("cuLaunchKernel", launch_function),
	ENTRY("cuLaunchKernelEx", launch_extended),
	ENTRY("cuStreamBatchMemOp", batch_memory_operations),
	ENTRY("cuStreamWaitValue32", wait_value_32),
	ENTRY("cuStreamWaitValue64", wait_value_64),
	ENTRY("cuStreamWriteValue32", write_value_32),
	ENTRY("cuStreamWriteValue64", write_value_64),
	{ NULL, NULL },
};

static driver_function *find_in(const struct driver_entry *table, const char *name)
{
	for (; table->name != NULL; table++)
		if (strcmp(table->name, name) == 0)
			return table->function;
	return NULL;
}

driver_function *find_driver_function(const char *name)
{
	driver_function *function = find_in(functions, name);
	return function != NULL ? function : find_in(driver_memory_functions, name);
}

static CUresult get_procedure(const char *symbol, void **function, int version, uint64_t flags,
			      int *status)
{
	if (symbol == NULL || function == NULL)
		return cudaErrorInvalidValue;
	*function = (void *)find_driver_function(symbol);
	if (status != NULL)
		*status = *function == NULL ? cudaDriverEntryPointSymbolNotFound
					    : cudaDriverEntryPointSuccess;
	return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags,
				    int *status)
{
	ENTER_RUNTIME();
	return record_error(get_procedure(symbol, function, MACHINE_CUDA_VERSION, flags, status));
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned version,
					     unsigned long long flags, int *status)
{
	return cudaGetDriverEntryPoint(symbol, function, flags, status);
}
