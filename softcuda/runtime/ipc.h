/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ipc.h - one process's device memory in another process of the host
 *
 * A handle names the process, its descriptor of the device's file, the file itself and the place in
 * it. Who opens it reaches the file as /proc/PID/fd/N and checks that it is still that file: the
 * number of a process or of a descriptor may have gone to somebody else.
 */
#ifndef SOFTCUDA_IPC_H
#define SOFTCUDA_IPC_H

#include "softcuda/runtime/cuda_types.h"

/* Of the allocation that `pointer` lies in. */
cudaError_t make_ipc_handle(const void *pointer, cudaIpcMemHandle_t *handle);
/* Opened once more, a handle gives the same address and must be closed as often. */
cudaError_t open_ipc_handle(const cudaIpcMemHandle_t *handle, void **pointer);
cudaError_t close_ipc_memory(void *pointer);

#endif
