/* SPDX-License-Identifier: BSD-3-Clause */
#include "softcuda/runtime/submit.h"

#include "softcuda/runtime/device.h"
#include "softcuda/runtime/event.h"
#include "softcuda/runtime/handles.h"
#include "softcuda/runtime/process.h"

cudaError_t submit_operation(struct stream *stream, struct operation *operation)
{
	if (operation == NULL)
		return cudaErrorMemoryAllocation;
	cudaError_t error = append_operation(stream, operation);
	release_operation(operation);
	return error;
}

cudaError_t synchronize_stream(struct stream *stream)
{
	struct point point;

	if (is_worker_thread())
		return cudaErrorNotPermitted;
	cudaError_t error = mark_point(stream, &point);
	if (error != cudaSuccess)
		return error;
	wait_for_point(point);
	release_timeline(point.timeline);
	return cudaSuccess;
}

cudaError_t request_record(cudaEvent_t event, cudaStream_t handle, unsigned flags)
{
	struct stream *stream;
	if ((flags & ~(unsigned)cudaEventRecordExternal) != 0)
		return cudaErrorInvalidValue;
	if (!is_handle(event, HANDLE_EVENT))
		return cudaErrorInvalidResourceHandle;
	cudaError_t error = find_stream(handle, &stream);
	if (error != cudaSuccess)
		return error;
	return record_event(event, stream);
}

cudaError_t request_wait(cudaStream_t handle, cudaEvent_t event, unsigned flags)
{
	struct stream *stream;
	if ((flags & ~(unsigned)cudaEventWaitExternal) != 0)
		return cudaErrorInvalidValue;
	if (!is_handle(event, HANDLE_EVENT))
		return cudaErrorInvalidResourceHandle;
	cudaError_t error = find_stream(handle, &stream);
	if (error != cudaSuccess)
		return error;
	struct point point = find_event_point(event);
	error = append_wait(stream, point);
	release_timeline(point.timeline);
	return error;
}
