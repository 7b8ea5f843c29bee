/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Five functions under second names, and a setting for the shim. NCCL's archive has weak stubs of
 * their own names; the shim that is linked into libnccl.so.2 defines these strongly and calls the
 * names below (softcuda/libnccl/shim.c).
 */
#include "softcuda/runtime/cuda_api_more.h"
#include "softcuda/runtime/process.h"

#pragma GCC visibility push(default)
cudaError_t softcuda_GetDriverEntryPoint(const char *symbol, void **function,
					 unsigned long long flags, int *status);
cudaError_t softcuda_StreamGetCaptureInfo_v2(cudaStream_t stream,
					     enum cudaStreamCaptureStatus *status,
					     unsigned long long *id, cudaGraph_t *graph,
					     const cudaGraphNode_t **nodes, size_t *count);
cudaError_t softcuda_StreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *nodes,
						     size_t count, unsigned flags);
cudaError_t softcuda_UserObjectCreate(cudaUserObject_t *object, void *pointer, cudaHostFn_t destroy,
				      unsigned references, unsigned flags);
cudaError_t softcuda_GraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object,
					   unsigned references, unsigned flags);
unsigned softcuda_yield_nap_us(void);
#pragma GCC visibility pop

unsigned softcuda_yield_nap_us(void)
{
	return this_machine()->yield_nap_us;
}

cudaError_t softcuda_GetDriverEntryPoint(const char *symbol, void **function,
					 unsigned long long flags, int *status)
{
	return cudaGetDriverEntryPoint(symbol, function, flags, status);
}

cudaError_t softcuda_StreamGetCaptureInfo_v2(cudaStream_t stream,
					     enum cudaStreamCaptureStatus *status,
					     unsigned long long *id, cudaGraph_t *graph,
					     const cudaGraphNode_t **nodes, size_t *count)
{
	return cudaStreamGetCaptureInfo_v2(stream, status, id, graph, nodes, count);
}

cudaError_t softcuda_StreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *nodes,
						     size_t count, unsigned flags)
{
	return cudaStreamUpdateCaptureDependencies(stream, nodes, count, flags);
}

cudaError_t softcuda_UserObjectCreate(cudaUserObject_t *object, void *pointer, cudaHostFn_t destroy,
				      unsigned references, unsigned flags)
{
	return cudaUserObjectCreate(object, pointer, destroy, references, flags);
}

cudaError_t softcuda_GraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object,
					   unsigned references, unsigned flags)
{
	return cudaGraphRetainUserObject(graph, object, references, flags);
}
