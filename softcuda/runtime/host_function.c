/* SPDX-License-Identifier: BSD-3-Clause */
#include "softcuda/runtime/host_function.h"

/* One of the two functions. */
struct host_call {
	struct operation base;
	cudaHostFn_t function;
	cudaStreamCallback_t callback;
	cudaStream_t stream;
	void *data;
};

static void run_host_call(const struct operation *operation)
{
	const struct host_call *call = (const struct host_call *)operation;
	if (call->function != NULL)
		call->function(call->data);
	else
		call->callback(call->stream, cudaSuccess, call->data);
}

struct operation *create_host_call(cudaHostFn_t function, void *data)
{
	struct host_call *call = create_operation(sizeof(*call), OPERATION_HOST, run_host_call);
	if (call == NULL)
		return NULL;
	call->function = function;
	call->data = data;
	return &call->base;
}

struct operation *create_callback(cudaStreamCallback_t callback, cudaStream_t stream, void *data)
{
	struct host_call *call = create_operation(sizeof(*call), OPERATION_HOST, run_host_call);
	if (call == NULL)
		return NULL;
	call->callback = callback;
	call->stream = stream;
	call->data = data;
	return &call->base;
}
