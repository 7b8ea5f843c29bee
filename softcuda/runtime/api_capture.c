/* SPDX-License-Identifier: BSD-3-Clause */
/* Stream capture. */
#include "softcuda/runtime/capture.h"
#include "softcuda/runtime/cuda_api_more.h"
#include "softcuda/runtime/device.h"
#include "softcuda/runtime/handles.h"
#include "softcuda/runtime/process.h"

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, enum cudaStreamCaptureMode mode)
{
	ENTER_RUNTIME();
	struct stream *stream;
	if ((unsigned)mode > cudaStreamCaptureModeRelaxed)
		return record_error(cudaErrorInvalidValue);
	cudaError_t error = find_stream(handle, &stream);
	if (error == cudaSuccess)
		error = begin_capture(stream, mode);
	return record_error(error);
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t *graph)
{
	ENTER_RUNTIME();
	struct stream *stream;
	if (graph == NULL)
		return record_error(cudaErrorInvalidValue);
	*graph = NULL;
	cudaError_t error = find_stream(handle, &stream);
	if (error == cudaSuccess)
		error = end_capture(stream, graph);
	return record_error(error);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, enum cudaStreamCaptureStatus *status)
{
	ENTER_RUNTIME();
	struct stream *stream;
	if (status == NULL)
		return record_error(cudaErrorInvalidValue);
	cudaError_t error = find_stream(handle, &stream);
	if (error == cudaSuccess)
		*status = query_capture(stream).status;
	return record_error(error);
}

/* Every answer but the status may be NULL, and is left alone unless the stream is captured. */
static cudaError_t report_capture(cudaStream_t handle, enum cudaStreamCaptureStatus *status,
				  unsigned long long *id, cudaGraph_t *graph,
				  const struct node_set **nodes)
{
	struct stream *stream;
	if (status == NULL)
		return cudaErrorInvalidValue;
	cudaError_t error = find_stream(handle, &stream);
	if (error != cudaSuccess)
		return error;
	struct capture_info info = query_capture(stream);
	*status = info.status;
	*nodes = NULL;
	if (info.status != cudaStreamCaptureStatusActive)
		return cudaSuccess;
	if (id != NULL)
		*id = info.id;
	if (graph != NULL)
		*graph = info.graph;
	*nodes = info.nodes;
	return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo_v3(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
					unsigned long long *id, cudaGraph_t *graph,
					const cudaGraphNode_t **nodes,
					const cudaGraphEdgeData **edges, size_t *count)
{
	ENTER_RUNTIME();
	const struct node_set *set;
	cudaError_t error = report_capture(stream, status, id, graph, &set);
	if (error != cudaSuccess || set == NULL)
		return record_error(error);
	if (nodes != NULL)
		*nodes = set->nodes;
	if (edges != NULL)
		*edges = set->edges;
	if (count != NULL)
		*count = set->count;
	return cudaSuccess;
}

/* Edges have no data of their own here, so that nothing is lost by not asking for it. */
cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
					unsigned long long *id, cudaGraph_t *graph,
					const cudaGraphNode_t **nodes, size_t *count)
{
	return cudaStreamGetCaptureInfo_v3(stream, status, id, graph, nodes, NULL, count);
}

static cudaError_t request_change(cudaStream_t handle, cudaGraphNode_t *nodes, size_t count,
				  unsigned flags)
{
	struct stream *stream;
	if (flags > cudaStreamSetCaptureDependencies || (count != 0 && nodes == NULL))
		return cudaErrorInvalidValue;
	for (size_t i = 0; i < count; i++)
		if (!is_handle(nodes[i], HANDLE_NODE))
			return cudaErrorInvalidValue;
	cudaError_t error = find_stream(handle, &stream);
	if (error != cudaSuccess)
		return error;
	return change_capture_nodes(stream, nodes, count, flags);
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *nodes,
						size_t count, unsigned flags)
{
	ENTER_RUNTIME();
	return record_error(request_change(stream, nodes, count, flags));
}

cudaError_t cudaStreamUpdateCaptureDependencies_v2(cudaStream_t stream, cudaGraphNode_t *nodes,
						   const cudaGraphEdgeData *edges, size_t count,
						   unsigned flags)
{
	ENTER_RUNTIME();
	return record_error(request_change(stream, nodes, count, flags));
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
	ENTER_RUNTIME();
	if (mode == NULL || (unsigned)*mode > cudaStreamCaptureModeRelaxed)
		return record_error(cudaErrorInvalidValue);
	*mode = exchange_thread_mode(*mode);
	return cudaSuccess;
}
