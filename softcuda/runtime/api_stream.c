/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams, events and host functions. */
#include <stdlib.h>

#include "softcuda/runtime/capture.h"
#include "softcuda/runtime/cuda_api.h"
#include "softcuda/runtime/device.h"
#include "softcuda/runtime/event.h"
#include "softcuda/runtime/handles.h"
#include "softcuda/runtime/host_function.h"
#include "softcuda/runtime/process.h"
#include "softcuda/runtime/submit.h"

/* ---- streams ---- */

static cudaError_t open_stream(cudaStream_t *handle, unsigned flags, int priority)
{
	if (handle == NULL || (flags & ~(unsigned)cudaStreamNonBlocking) != 0)
		return cudaErrorInvalidValue;
	enum stream_kind kind =
		(flags & cudaStreamNonBlocking) != 0 ? STREAM_NONBLOCKING : STREAM_BLOCKING;
	struct stream *stream;
	cudaError_t error = create_stream(this_device(), kind, priority, &stream);
	if (error != cudaSuccess)
		return error;
	if (!add_handle(stream, HANDLE_STREAM)) {
		close_stream(stream);
		return cudaErrorMemoryAllocation;
	}
	stream->flags = flags;
	*handle = stream;
	return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
	ENTER_RUNTIME();
	return record_error(open_stream(stream, cudaStreamDefault, 0));
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
	ENTER_RUNTIME();
	return record_error(open_stream(stream, flags, 0));
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority)
{
	ENTER_RUNTIME();
	return record_error(open_stream(stream, flags, 0));
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	ENTER_RUNTIME();
	if (!remove_handle(stream, HANDLE_STREAM))
		return record_error(cudaErrorInvalidResourceHandle);
	leave_capture(stream);
	close_stream(stream);
	return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle)
{
	ENTER_RUNTIME();
	struct stream *stream;
	cudaError_t error = find_stream(handle, &stream);
	if (error == cudaSuccess)
		error = synchronize_stream(stream);
	return record_error(error);
}

cudaError_t cudaStreamQuery(cudaStream_t handle)
{
	ENTER_RUNTIME();
	struct stream *stream;
	struct point point;
	cudaError_t error = find_stream(handle, &stream);
	if (error == cudaSuccess)
		error = refuse_in_capture(stream);
	if (error == cudaSuccess)
		error = mark_point(stream, &point);
	if (error != cudaSuccess)
		return record_error(error);
	bool reached = is_reached(point);
	release_timeline(point.timeline);
	return record_error(reached ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t cudaStreamGetId(cudaStream_t handle, unsigned long long *id)
{
	ENTER_RUNTIME();
	struct stream *stream;
	if (id == NULL)
		return record_error(cudaErrorInvalidValue);
	cudaError_t error = find_stream(handle, &stream);
	if (error != cudaSuccess)
		return record_error(error);
	*id = stream->id;
	if (stream->kind == STREAM_LEGACY)
		*id = 1;
	if (handle == cudaStreamPerThread)
		*id = 2;
	return cudaSuccess;
}

cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned *flags)
{
	ENTER_RUNTIME();
	struct stream *stream;
	if (flags == NULL)
		return record_error(cudaErrorInvalidValue);
	cudaError_t error = find_stream(handle, &stream);
	if (error == cudaSuccess)
		*flags = stream->flags;
	return record_error(error);
}

cudaError_t cudaStreamGetPriority(cudaStream_t handle, int *priority)
{
	ENTER_RUNTIME();
	struct stream *stream;
	if (priority == NULL)
		return record_error(cudaErrorInvalidValue);
	cudaError_t error = find_stream(handle, &stream);
	if (error == cudaSuccess)
		*priority = stream->priority;
	return record_error(error);
}

cudaError_t cudaStreamGetDevice(cudaStream_t handle, int *device)
{
	ENTER_RUNTIME();
	struct stream *stream;
	if (device == NULL)
		return record_error(cudaErrorInvalidValue);
	cudaError_t error = find_stream(handle, &stream);
	if (error == cudaSuccess)
		*device = stream->device->ordinal;
	return record_error(error);
}

/* ---- host functions ---- */

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void *data)
{
	ENTER_RUNTIME();
	struct stream *stream;
	if (function == NULL)
		return record_error(cudaErrorInvalidValue);
	cudaError_t error = find_stream(handle, &stream);
	if (error == cudaSuccess)
		error = submit_operation(stream, create_host_call(function, data));
	return record_error(error);
}

cudaError_t cudaStreamAddCallback(cudaStream_t handle, cudaStreamCallback_t callback, void *data,
				  unsigned flags)
{
	ENTER_RUNTIME();
	struct stream *stream;
	if (callback == NULL || flags != 0)
		return record_error(cudaErrorInvalidValue);
	cudaError_t error = find_stream(handle, &stream);
	if (error == cudaSuccess)
		error = submit_operation(stream, create_callback(callback, handle, data));
	return record_error(error);
}

/* ---- events ---- */

static cudaError_t open_event(cudaEvent_t *handle, unsigned flags)
{
	unsigned known = cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
	if (handle == NULL || (flags & ~known) != 0)
		return cudaErrorInvalidValue;
	if ((flags & cudaEventInterprocess) != 0)
		return cudaErrorNotSupported;
	struct event *event;
	cudaError_t error = create_event(flags, &event);
	if (error != cudaSuccess)
		return error;
	if (!add_handle(event, HANDLE_EVENT)) {
		release_event(event);
		return cudaErrorMemoryAllocation;
	}
	*handle = event;
	return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
	ENTER_RUNTIME();
	return record_error(open_event(event, cudaEventDefault));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
	ENTER_RUNTIME();
	return record_error(open_event(event, flags));
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	ENTER_RUNTIME();
	if (!remove_handle(event, HANDLE_EVENT))
		return record_error(cudaErrorInvalidResourceHandle);
	release_event(event);
	return cudaSuccess;
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags)
{
	ENTER_RUNTIME();
	return record_error(request_record(event, stream, flags));
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	return cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault);
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
	ENTER_RUNTIME();
	if (!is_handle(event, HANDLE_EVENT))
		return record_error(cudaErrorInvalidResourceHandle);
	cudaError_t error = refuse_captured_event(event);
	if (error == cudaSuccess && !is_event_complete(event))
		error = cudaErrorNotReady;
	return record_error(error);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	ENTER_RUNTIME();
	if (!is_handle(event, HANDLE_EVENT))
		return record_error(cudaErrorInvalidResourceHandle);
	if (is_worker_thread())
		return record_error(cudaErrorNotPermitted);
	cudaError_t error = refuse_captured_event(event);
	if (error == cudaSuccess)
		synchronize_event(event);
	return record_error(error);
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end)
{
	ENTER_RUNTIME();
	if (milliseconds == NULL)
		return record_error(cudaErrorInvalidValue);
	if (!is_handle(start, HANDLE_EVENT) || !is_handle(end, HANDLE_EVENT))
		return record_error(cudaErrorInvalidResourceHandle);
	return record_error(measure_events(start, end, milliseconds));
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
	ENTER_RUNTIME();
	return record_error(request_wait(stream, event, flags));
}
