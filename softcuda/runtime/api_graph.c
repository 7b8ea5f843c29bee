/* SPDX-License-Identifier: BSD-3-Clause */
/* Capture and graphs: not there yet. No stream is ever captured, and what would need a graph is refused. */
#include "softcuda/runtime/cuda_api_more.h"
#include "softcuda/runtime/device.h"
#include "softcuda/runtime/process.h"

static _Thread_local enum cudaStreamCaptureMode thread_mode;

static cudaError_t report_none(cudaStream_t handle, enum cudaStreamCaptureStatus *status)
{
	struct stream *stream;
	if (status == NULL)
		return cudaErrorInvalidValue;
	cudaError_t error = find_stream(handle, &stream);
	if (error == cudaSuccess)
		*status = cudaStreamCaptureStatusNone;
	return error;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
	ENTER_RUNTIME();
	return record_error(report_none(stream, status));
}

cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
					unsigned long long *id, cudaGraph_t *graph, const cudaGraphNode_t **nodes,
					size_t *count)
{
	ENTER_RUNTIME();
	return record_error(report_none(stream, status));
}

cudaError_t cudaStreamGetCaptureInfo_v3(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
					unsigned long long *id, cudaGraph_t *graph, const cudaGraphNode_t **nodes,
					const cudaGraphEdgeData **edges, size_t *count)
{
	ENTER_RUNTIME();
	return record_error(report_none(stream, status));
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *nodes, size_t count, unsigned flags)
{
	return record_error(cudaErrorNotSupported);
}

cudaError_t cudaStreamUpdateCaptureDependencies_v2(cudaStream_t stream, cudaGraphNode_t *nodes,
						   const cudaGraphEdgeData *edges, size_t count, unsigned flags)
{
	return record_error(cudaErrorNotSupported);
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
	ENTER_RUNTIME();
	if (mode == NULL || (unsigned)*mode > cudaStreamCaptureModeRelaxed)
		return record_error(cudaErrorInvalidValue);
	enum cudaStreamCaptureMode old = thread_mode;
	thread_mode = *mode;
	*mode = old;
	return cudaSuccess;
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *from, size_t count,
				   const struct cudaKernelNodeParams *parameters)
{
	return record_error(cudaErrorNotSupported);
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *from, size_t count,
				 const struct cudaHostNodeParams *parameters)
{
	return record_error(cudaErrorNotSupported);
}

cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *from,
					size_t count, cudaEvent_t event)
{
	return record_error(cudaErrorNotSupported);
}

cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *from,
				      size_t count, cudaEvent_t event)
{
	return record_error(cudaErrorNotSupported);
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
				     size_t count)
{
	return record_error(cudaErrorNotSupported);
}

cudaError_t cudaGraphAddDependencies_v2(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
					const cudaGraphEdgeData *edges, size_t count)
{
	return record_error(cudaErrorNotSupported);
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t *object, void *pointer, cudaHostFn_t destroy, unsigned references,
				 unsigned flags)
{
	return record_error(cudaErrorNotSupported);
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned references, unsigned flags)
{
	return record_error(cudaErrorNotSupported);
}
