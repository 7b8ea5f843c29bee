/* SPDX-License-Identifier: BSD-3-Clause */
#include "softcuda/runtime/capture.h"

#include <stdlib.h>

#include "softcuda/runtime/device.h"

/*
 * CAPTURE_ACTIVE --> CAPTURE_LOST: a call that does not fit; the capture then only waits for its
 * end.
 */
enum capture_state { CAPTURE_ACTIVE, CAPTURE_LOST };

struct capture {
	LIST_ENTRY(capture) siblings;
	unsigned long long id;
	enum capture_state state;
	enum cudaStreamCaptureMode mode;
	pthread_t thread; /* that began it */
	struct graph *graph;
	struct stream *origin; /* NULL once it was destroyed */
	LIST_HEAD(, capture_member) members;
};

/* A stream's part in a capture: stream->capture. */
struct capture_member {
	LIST_ENTRY(capture_member) siblings;
	struct capture *capture;
	struct stream *stream;
	struct node_set nodes; /* that its next node depends on */
};

/* protects what follows, and each stream's membership */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, capture) captures = LIST_HEAD_INITIALIZER(captures);
static unsigned long long next_id = 1;
static _Atomic unsigned capture_count; /* length of the list */
static _Thread_local enum cudaStreamCaptureMode thread_mode;

static bool is_anything_captured(void)
{
	return atomic_load_explicit(&capture_count, memory_order_acquire) != 0;
}

/* ---- members ---- */

static cudaError_t join_locked(struct capture *capture, struct stream *stream,
			       const struct node_set *nodes)
{
	struct capture_member *member = calloc(1, sizeof(*member));
	if (member == NULL || !add_set_to_set(&member->nodes, nodes)) {
		free(member);
		return cudaErrorMemoryAllocation;
	}
	member->capture = capture;
	member->stream = stream;
	stream->capture = member;
	LIST_INSERT_HEAD(&capture->members, member, siblings);
	return cudaSuccess;
}

static void leave_locked(struct capture_member *member)
{
	LIST_REMOVE(member, siblings);
	member->stream->capture = NULL;
	free_node_set(&member->nodes);
	free(member);
}

static void free_capture_locked(struct capture *capture)
{
	struct capture_member *member;

	while ((member = LIST_FIRST(&capture->members)) != NULL)
		leave_locked(member);
	LIST_REMOVE(capture, siblings);
	atomic_fetch_sub_explicit(&capture_count, 1, memory_order_release);
	free(capture);
}

static struct capture *find_capture_locked(unsigned long long id)
{
	struct capture *capture;
	LIST_FOREACH(capture, &captures, siblings)
		if (capture->id == id)
			return capture;
	return NULL;
}

/* ---- begin and end ---- */

static cudaError_t begin_locked(struct stream *stream, enum cudaStreamCaptureMode mode)
{
	static const struct node_set nothing;

	if (stream->capture != NULL)
		return cudaErrorIllegalState;
	struct capture *capture = calloc(1, sizeof(*capture));
	struct graph *graph = create_graph();
	if (capture == NULL || graph == NULL ||
	    join_locked(capture, stream, &nothing) != cudaSuccess) {
		free(capture);
		if (graph != NULL)
			destroy_graph(graph);
		return cudaErrorMemoryAllocation;
	}
	capture->id = next_id++;
	capture->mode = mode;
	capture->thread = pthread_self();
	capture->graph = graph;
	capture->origin = stream;
	LIST_INSERT_HEAD(&captures, capture, siblings);
	atomic_fetch_add_explicit(&capture_count, 1, memory_order_release);
	return cudaSuccess;
}

cudaError_t begin_capture(struct stream *stream, enum cudaStreamCaptureMode mode)
{
	if (stream->kind == STREAM_LEGACY)
		return cudaErrorStreamCaptureUnsupported;
	pthread_mutex_lock(&lock);
	cudaError_t error = begin_locked(stream, mode);
	pthread_mutex_unlock(&lock);
	return error;
}

static cudaError_t check_end_locked(const struct capture_member *member)
{
	const struct capture *capture = member->capture;
	if (capture->origin != member->stream)
		return cudaErrorStreamCaptureUnmatched;
	if (capture->mode != cudaStreamCaptureModeRelaxed &&
	    !pthread_equal(capture->thread, pthread_self()))
		return cudaErrorStreamCaptureWrongThread;
	return cudaSuccess;
}

/*
 * Out of the process's captures. *graph: what was captured; it is to be destroyed if the result is
 * an error.
 */
static cudaError_t end_locked(struct capture_member *member, struct graph **graph)
{
	struct capture *capture = member->capture;
	cudaError_t error = cudaSuccess;

	*graph = capture->graph;
	if (capture->state == CAPTURE_LOST)
		error = cudaErrorStreamCaptureInvalidated;
	else if (!is_joined(capture->graph, &member->nodes))
		error = cudaErrorStreamCaptureUnjoined;
	free_capture_locked(capture);
	return error;
}

cudaError_t end_capture(struct stream *stream, struct graph **graph)
{
	struct graph *ended = NULL;
	cudaError_t error;

	*graph = NULL;
	pthread_mutex_lock(&lock);
	if (stream->capture == NULL)
		error = cudaErrorIllegalState;
	else
		error = check_end_locked(stream->capture);
	if (error == cudaSuccess)
		error = end_locked(stream->capture, &ended);
	pthread_mutex_unlock(&lock);
	/* Not under the lock: destructors of the program's objects run with it. */
	if (error == cudaSuccess)
		*graph = ended;
	else if (ended != NULL)
		destroy_graph(ended);
	return error;
}

void leave_capture(struct stream *stream)
{
	if (!is_anything_captured())
		return;
	struct graph *lost = NULL;
	pthread_mutex_lock(&lock);
	if (stream->capture != NULL && stream->capture->capture->origin == stream) {
		lost = stream->capture->capture->graph;
		free_capture_locked(stream->capture->capture);
	} else if (stream->capture != NULL) {
		leave_locked(stream->capture);
	}
	pthread_mutex_unlock(&lock);
	if (lost != NULL)
		destroy_graph(lost);
}

/* ---- what is captured ---- */

/* A captured stream's new node: it comes after the stream's nodes, and takes their place. */
static cudaError_t chain_locked(struct capture_member *member, struct graph_node *node)
{
	node->captured = true;
	if (!add_set_to_set(&node->dependencies, &member->nodes))
		return cudaErrorMemoryAllocation;
	clear_node_set(&member->nodes);
	return add_node_to_set(&member->nodes, node) ? cudaSuccess : cudaErrorMemoryAllocation;
}

static cudaError_t check_state_locked(const struct capture_member *member)
{
	return member->capture->state == CAPTURE_LOST ? cudaErrorStreamCaptureInvalidated
						      : cudaSuccess;
}

/* Work of the legacy stream would have to wait for the captured one. */
static cudaError_t check_legacy_locked(const struct stream *stream)
{
	struct capture *capture;
	struct capture_member *member;

	if (stream->kind != STREAM_LEGACY)
		return cudaSuccess;
	LIST_FOREACH(capture, &captures, siblings) {
		LIST_FOREACH(member, &capture->members, siblings) {
			if (member->stream->kind != STREAM_BLOCKING ||
			    member->stream->device != stream->device)
				continue;
			capture->state = CAPTURE_LOST;
			return cudaErrorStreamCaptureImplicit;
		}
	}
	return cudaSuccess;
}

static cudaError_t capture_operation_locked(struct capture_member *member,
					    struct operation *operation)
{
	struct graph_node *node;
	cudaError_t error = check_state_locked(member);
	if (error == cudaSuccess)
		error = add_operation_node(member->capture->graph, operation,
					   member->stream->device->ordinal, &node);
	return error == cudaSuccess ? chain_locked(member, node) : error;
}

cudaError_t capture_operation(struct stream *stream, struct operation *operation, bool *captured)
{
	*captured = false;
	if (!is_anything_captured())
		return cudaSuccess;
	pthread_mutex_lock(&lock);
	cudaError_t error = check_legacy_locked(stream);
	*captured = error != cudaSuccess || stream->capture != NULL;
	if (stream->capture != NULL)
		error = capture_operation_locked(stream->capture, operation);
	pthread_mutex_unlock(&lock);
	return error;
}

static cudaError_t capture_event_node_locked(struct capture_member *member,
					     enum cudaGraphNodeType type, struct event *event)
{
	struct graph_node *node;
	int device = member->stream->device->ordinal;
	cudaError_t error = add_event_node(member->capture->graph, type, event, device, &node);
	return error == cudaSuccess ? chain_locked(member, node) : error;
}

static cudaError_t capture_point_locked(const struct capture_member *member, struct event *event)
{
	struct captured_point *point = calloc(1, sizeof(*point));
	if (point == NULL || !add_set_to_set(&point->nodes, &member->nodes)) {
		free_captured_point(point);
		return cudaErrorMemoryAllocation;
	}
	point->capture = member->capture->id;
	set_captured_point(event, point);
	return cudaSuccess;
}

cudaError_t capture_record(struct stream *stream, struct event *event, unsigned flags,
			   bool *captured)
{
	*captured = false;
	if (!is_anything_captured())
		return cudaSuccess;
	pthread_mutex_lock(&lock);
	cudaError_t error = check_legacy_locked(stream);
	*captured = error != cudaSuccess || stream->capture != NULL;
	if (stream->capture != NULL)
		error = check_state_locked(stream->capture);
	if (stream->capture != NULL && error == cudaSuccess) {
		if ((flags & cudaEventRecordExternal) != 0)
			error = capture_event_node_locked(stream->capture,
							  cudaGraphNodeTypeEventRecord, event);
		else
			error = capture_point_locked(stream->capture, event);
	}
	pthread_mutex_unlock(&lock);
	return error;
}

/* A captured stream waits for an event. */
static cudaError_t wait_in_capture_locked(struct capture_member *member, struct event *event,
					  unsigned flags)
{
	cudaError_t error = check_state_locked(member);
	if (error != cudaSuccess)
		return error;
	if ((flags & cudaEventWaitExternal) != 0)
		return capture_event_node_locked(member, cudaGraphNodeTypeWaitEvent, event);
	if (event->captured == NULL && event->point.timeline == NULL)
		return cudaSuccess; /* never recorded */
	if (event->captured == NULL)
		error = cudaErrorStreamCaptureIsolation;
	else if (event->captured->capture != member->capture->id)
		error = cudaErrorStreamCaptureMerge;
	if (error != cudaSuccess) {
		member->capture->state = CAPTURE_LOST;
		return error;
	}
	return add_set_to_set(&member->nodes, &event->captured->nodes) ? cudaSuccess
								       : cudaErrorMemoryAllocation;
}

/* A stream that is not captured waits for an event that was recorded in a capture. */
static cudaError_t join_by_event_locked(struct stream *stream, struct event *event)
{
	struct capture *capture = find_capture_locked(event->captured->capture);
	if (capture == NULL)
		return cudaErrorCapturedEvent;
	if (stream->kind == STREAM_LEGACY) {
		capture->state = CAPTURE_LOST;
		return cudaErrorStreamCaptureImplicit;
	}
	return join_locked(capture, stream, &event->captured->nodes);
}

cudaError_t capture_wait(struct stream *stream, struct event *event, unsigned flags, bool *captured)
{
	cudaError_t error = cudaSuccess;

	*captured = false;
	if (!is_anything_captured() && !has_captured_point(event))
		return cudaSuccess;
	pthread_mutex_lock(&lock);
	pthread_mutex_lock(&event->lock);
	if (stream->capture != NULL) {
		*captured = true;
		error = wait_in_capture_locked(stream->capture, event, flags);
	} else if (event->captured != NULL) {
		*captured = true;
		error = join_by_event_locked(stream, event);
	}
	pthread_mutex_unlock(&event->lock);
	pthread_mutex_unlock(&lock);
	return error;
}

/* ---- questions ---- */

struct capture_info query_capture(struct stream *stream)
{
	struct capture_info info = { .status = cudaStreamCaptureStatusNone };

	if (!is_anything_captured())
		return info;
	pthread_mutex_lock(&lock);
	struct capture_member *member = stream->capture;
	if (member != NULL) {
		bool active = member->capture->state == CAPTURE_ACTIVE;
		info.status =
			active ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusInvalidated;
		info.id = member->capture->id;
		info.graph = member->capture->graph;
		info.nodes = &member->nodes;
	}
	pthread_mutex_unlock(&lock);
	return info;
}

static cudaError_t change_locked(struct capture_member *member, struct graph_node **nodes,
				 size_t count, unsigned flags)
{
	cudaError_t error = check_state_locked(member);
	if (error != cudaSuccess)
		return error;
	for (size_t i = 0; i < count; i++)
		if (nodes[i]->graph != member->capture->graph)
			return cudaErrorInvalidValue;
	if (flags == cudaStreamSetCaptureDependencies)
		clear_node_set(&member->nodes);
	for (size_t i = 0; i < count; i++)
		if (!add_node_to_set(&member->nodes, nodes[i]))
			return cudaErrorMemoryAllocation;
	return cudaSuccess;
}

cudaError_t change_capture_nodes(struct stream *stream, struct graph_node **nodes, size_t count,
				 unsigned flags)
{
	cudaError_t error = cudaErrorIllegalState;

	pthread_mutex_lock(&lock);
	if (stream->capture != NULL)
		error = change_locked(stream->capture, nodes, count, flags);
	pthread_mutex_unlock(&lock);
	return error;
}

/* ---- what a capture forbids ---- */

cudaError_t refuse_in_capture(struct stream *stream)
{
	if (!is_anything_captured())
		return cudaSuccess;
	pthread_mutex_lock(&lock);
	cudaError_t error = check_legacy_locked(stream);
	if (stream->capture != NULL) {
		stream->capture->capture->state = CAPTURE_LOST;
		error = cudaErrorStreamCaptureUnsupported;
	}
	pthread_mutex_unlock(&lock);
	return error;
}

cudaError_t refuse_captured_event(struct event *event)
{
	return has_captured_point(event) ? cudaErrorCapturedEvent : cudaSuccess;
}

static bool forbids_unsafe_call(const struct capture *capture)
{
	bool own = pthread_equal(capture->thread, pthread_self()) != 0;

	if (thread_mode == cudaStreamCaptureModeRelaxed ||
	    capture->mode == cudaStreamCaptureModeRelaxed)
		return false;
	return own || (thread_mode == cudaStreamCaptureModeGlobal &&
		       capture->mode == cudaStreamCaptureModeGlobal);
}

cudaError_t refuse_unsafe_call(void)
{
	struct capture *capture;
	cudaError_t error = cudaSuccess;

	if (!is_anything_captured())
		return cudaSuccess;
	pthread_mutex_lock(&lock);
	LIST_FOREACH(capture, &captures, siblings) {
		if (!forbids_unsafe_call(capture))
			continue;
		capture->state = CAPTURE_LOST;
		error = cudaErrorStreamCaptureUnsupported;
	}
	pthread_mutex_unlock(&lock);
	return error;
}

enum cudaStreamCaptureMode exchange_thread_mode(enum cudaStreamCaptureMode mode)
{
	enum cudaStreamCaptureMode old = thread_mode;
	thread_mode = mode;
	return old;
}
