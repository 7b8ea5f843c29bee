/* SPDX-License-Identifier: BSD-3-Clause */
#include "softcuda/runtime/submit.h"

#include "softcuda/runtime/capture.h"
#include "softcuda/runtime/device.h"
#include "softcuda/runtime/event.h"
#include "softcuda/runtime/handles.h"
#include "softcuda/runtime/process.h"

cudaError_t submit_operation(struct stream *stream, struct operation *operation)
{
	if (operation == NULL)
		return cudaErrorMemoryAllocation;
	bool captured;
	cudaError_t error = capture_operation(stream, operation, &captured);
	if (!captured)
		error = append_operation(stream, operation);
	release_operation(operation);
	return error;
}

cudaError_t synchronize_stream(struct stream *stream)
{
	struct point point;

	if (is_worker_thread())
		return cudaErrorNotPermitted;
	cudaError_t error = refuse_in_capture(stream);
	if (error == cudaSuccess)
		error = mark_point(stream, &point);
	if (error != cudaSuccess)
		return error;
	help_stream(stream, point.number);
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
	bool captured;
	if (error == cudaSuccess)
		error = capture_record(stream, event, flags, &captured);
	if (error != cudaSuccess || captured)
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
	bool captured;
	if (error == cudaSuccess)
		error = capture_wait(stream, event, flags, &captured);
	if (error != cudaSuccess || captured)
		return error;
	struct point point = find_event_point(event);
	error = append_wait(stream, point);
	release_timeline(point.timeline);
	return error;
}
