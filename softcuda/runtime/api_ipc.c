/* SPDX-License-Identifier: BSD-3-Clause */
/* CUDA IPC of memory. */
#include "softcuda/runtime/cuda_api.h"
#include "softcuda/runtime/device.h"
#include "softcuda/runtime/ipc.h"
#include "softcuda/runtime/process.h"

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *pointer)
{
	ENTER_RUNTIME();
	if (handle == NULL)
		return record_error(cudaErrorInvalidValue);
	return record_error(make_ipc_handle(pointer, handle));
}

cudaError_t cudaIpcOpenMemHandle(void **pointer, cudaIpcMemHandle_t handle, unsigned flags)
{
	ENTER_RUNTIME();
	if (pointer == NULL || flags != cudaIpcMemLazyEnablePeerAccess)
		return record_error(cudaErrorInvalidValue);
	return record_error(open_ipc_handle(&handle, pointer));
}

/* Like cudaFree: what was asked for may still use the memory. */
cudaError_t cudaIpcCloseMemHandle(void *pointer)
{
	ENTER_RUNTIME();
	if (is_worker_thread())
		return record_error(cudaErrorNotPermitted);
	cudaError_t error = synchronize_device(this_device());
	if (error == cudaSuccess)
		error = close_ipc_memory(pointer);
	return record_error(error);
}
