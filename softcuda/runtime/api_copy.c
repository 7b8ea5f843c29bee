/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies and fills, and what of them is done when a call returns:
 *
 *   from pageable memory to a device    the source has been read
 *   from a device to pageable memory    all is done
 *   between host addresses              all is done
 *   any other, asynchronous             nothing need be
 *   synchronous                         all is done, except between addresses of devices
 */
#include <stdint.h>
#include <string.h>

#include "softcuda/runtime/capture.h"
#include "softcuda/runtime/copy.h"
#include "softcuda/runtime/cuda_api.h"
#include "softcuda/runtime/memory.h"
#include "softcuda/runtime/process.h"
#include "softcuda/runtime/submit.h"

/*
 * Pageable sources up to this size are copied aside; a larger one is read in place after the stream
 * has caught up.
 */
#define STAGING_MAX ((size_t)16 << 20)

enum side { SIDE_PAGEABLE, SIDE_LOCKED, SIDE_DEVICE };

struct request {
	char *to;
	const char *from;
	struct shape shape;
	struct stream *stream;
	bool synchronous;
};

static enum side find_side(const void *pointer)
{
	struct range range;
	if (!find_range(pointer, &range))
		return SIDE_PAGEABLE;
	return is_device_range(&range) ? SIDE_DEVICE : SIDE_LOCKED;
}

/* Host memory that the kind calls a device's is taken for what it is, as addresses are unified. */
static bool is_kind(enum cudaMemcpyKind kind)
{
	return (unsigned)kind <= cudaMemcpyDefault;
}

static void gather_rows(char *to, const struct request *request)
{
	for (size_t row = 0; row < request->shape.height; row++)
		memcpy(to + row * request->shape.width,
		       request->from + row * request->shape.from_pitch, request->shape.width);
}

static cudaError_t submit_staged(const struct request *request)
{
	struct operation *copy = create_copy(request->to, NULL, request->shape);
	if (copy == NULL)
		return cudaErrorMemoryAllocation;
	gather_rows(copy_staging(copy), request);
	return submit_operation(request->stream, copy);
}

static cudaError_t submit_direct(const struct request *request)
{
	return submit_operation(request->stream,
				create_copy(request->to, request->from, request->shape));
}

/* What goes into pageable memory, or from host to host, is there when the call returns. */
static bool waits_without_being_asked(enum side to, enum side from)
{
	return to == SIDE_PAGEABLE || (to != SIDE_DEVICE && from != SIDE_DEVICE);
}

static cudaError_t submit_copy(const struct request *request)
{
	enum side to = find_side(request->to);
	enum side from = find_side(request->from);
	bool called_to_wait = request->synchronous && (to != SIDE_DEVICE || from != SIDE_DEVICE);
	bool staged = !called_to_wait && from == SIDE_PAGEABLE && to == SIDE_DEVICE;
	bool wait = called_to_wait || staged || waits_without_being_asked(to, from);
	cudaError_t error;

	if (query_capture(request->stream).status != cudaStreamCaptureStatusNone)
		/* a node of a graph reads and writes when it is launched */
		return submit_direct(request);
	if (staged && request->shape.width <= STAGING_MAX / request->shape.height)
		return submit_staged(request);
	if (wait && is_worker_thread())
		return cudaErrorNotPermitted;
	error = submit_direct(request);
	if (error == cudaSuccess && wait)
		error = synchronize_stream(request->stream);
	return error;
}

static cudaError_t request_copy(void *to, const void *from, struct shape shape,
				enum cudaMemcpyKind kind, cudaStream_t handle, bool synchronous)
{
	struct request request = {
		.to = to, .from = from, .shape = shape, .synchronous = synchronous
	};

	if (!is_kind(kind))
		return cudaErrorInvalidMemcpyDirection;
	cudaError_t error = find_stream(handle, &request.stream);
	if (error != cudaSuccess)
		return error;
	if (shape.width == 0 || shape.height == 0)
		return cudaSuccess;
	if (to == NULL || from == NULL)
		return cudaErrorInvalidValue;
	if (shape.height > 1 && (shape.width > shape.to_pitch || shape.width > shape.from_pitch))
		return cudaErrorInvalidPitchValue;
	return submit_copy(&request);
}

static struct shape make_row(size_t size)
{
	return (struct shape) { .width = size, .height = 1 };
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t size, enum cudaMemcpyKind kind)
{
	ENTER_RUNTIME();
	cudaError_t error = refuse_unsafe_call();
	if (error == cudaSuccess)
		error = request_copy(to, from, make_row(size), kind, NULL, true);
	return record_error(error);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, enum cudaMemcpyKind kind,
			    cudaStream_t stream)
{
	ENTER_RUNTIME();
	return record_error(request_copy(to, from, make_row(size), kind, stream, false));
}

/* The device of an address is known from the address. */
cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
				size_t size, cudaStream_t stream)
{
	ENTER_RUNTIME();
	if (!is_device(to_device) || !is_device(from_device))
		return record_error(cudaErrorInvalidDevice);
	return record_error(
		request_copy(to, from, make_row(size), cudaMemcpyDefault, stream, false));
}

cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t size)
{
	return cudaMemcpyPeerAsync(to, to_device, from, from_device, size, NULL);
}

static struct shape make_rows(size_t to_pitch, size_t from_pitch, size_t width, size_t height)
{
	return (struct shape) {
		.width = width, .height = height, .to_pitch = to_pitch, .from_pitch = from_pitch
	};
}

cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch,
			 size_t width, size_t height, enum cudaMemcpyKind kind)
{
	ENTER_RUNTIME();
	struct shape shape = make_rows(to_pitch, from_pitch, width, height);
	return record_error(request_copy(to, from, shape, kind, NULL, true));
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
			      size_t width, size_t height, enum cudaMemcpyKind kind,
			      cudaStream_t stream)
{
	ENTER_RUNTIME();
	struct shape shape = make_rows(to_pitch, from_pitch, width, height);
	return record_error(request_copy(to, from, shape, kind, stream, false));
}

/* ---- fills ---- */

static cudaError_t request_fill(void *pointer, int value, struct shape shape, cudaStream_t handle,
				bool synchronous)
{
	struct stream *stream;
	cudaError_t error = find_stream(handle, &stream);
	if (error != cudaSuccess)
		return error;
	if (shape.width == 0 || shape.height == 0)
		return cudaSuccess;
	enum side side = find_side(pointer);
	if (side == SIDE_PAGEABLE)
		return cudaErrorInvalidValue;
	if (shape.height > 1 && shape.width > shape.to_pitch)
		return cudaErrorInvalidPitchValue;
	error = submit_operation(stream, create_fill(pointer, (uint32_t)value, 1, shape));
	if (error == cudaSuccess && synchronous && side == SIDE_LOCKED)
		error = synchronize_stream(stream);
	return error;
}

cudaError_t cudaMemset(void *pointer, int value, size_t size)
{
	ENTER_RUNTIME();
	return record_error(request_fill(pointer, value, make_row(size), NULL, true));
}

cudaError_t cudaMemsetAsync(void *pointer, int value, size_t size, cudaStream_t stream)
{
	ENTER_RUNTIME();
	return record_error(request_fill(pointer, value, make_row(size), stream, false));
}

cudaError_t cudaMemset2D(void *pointer, size_t pitch, int value, size_t width, size_t height)
{
	ENTER_RUNTIME();
	return record_error(
		request_fill(pointer, value, make_rows(pitch, 0, width, height), NULL, true));
}

cudaError_t cudaMemset2DAsync(void *pointer, size_t pitch, int value, size_t width, size_t height,
			      cudaStream_t stream)
{
	ENTER_RUNTIME();
	return record_error(
		request_fill(pointer, value, make_rows(pitch, 0, width, height), stream, false));
}
