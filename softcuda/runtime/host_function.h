/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * host_function.h - functions of the program that a stream calls
 */
#ifndef SOFTCUDA_HOST_FUNCTION_H
#define SOFTCUDA_HOST_FUNCTION_H

#include "softcuda/runtime/cuda_types.h"
#include "softcuda/runtime/operation.h"

struct operation *create_host_call(cudaHostFn_t function, void *data);
/* cudaStreamAddCallback's form, which gets the stream. */
struct operation *create_callback(cudaStreamCallback_t callback, cudaStream_t stream, void *data);

#endif
