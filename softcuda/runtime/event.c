/* SPDX-License-Identifier: BSD-3-Clause */
#include "softcuda/runtime/event.h"

#include <stdlib.h>

#include "base/clock.h"

/*
 * When one record of an event was reached. Held by the event and by the operation that writes it.
 */
struct stamp {
	_Atomic unsigned references;
	_Atomic uint64_t nanoseconds; /* 0: not yet */
};

struct stamp_operation {
	struct operation base;
	struct stamp *stamp;
};

static void release_stamp(struct stamp *stamp)
{
	if (stamp == NULL)
		return;
	if (atomic_fetch_sub_explicit(&stamp->references, 1, memory_order_acq_rel) == 1)
		free(stamp);
}

static void run_stamp(const struct operation *operation)
{
	const struct stamp_operation *own = (const struct stamp_operation *)operation;
	atomic_store_explicit(&own->stamp->nanoseconds, ha_clock_now(&ha_clock_live),
			      memory_order_release);
}

static void clean_stamp(struct operation *operation)
{
	release_stamp(((struct stamp_operation *)operation)->stamp);
}

/* With two references of the stamp: the operation's and the caller's. */
static struct stamp_operation *create_stamp_operation(void)
{
	struct stamp *stamp = calloc(1, sizeof(*stamp));
	struct stamp_operation *operation =
		create_operation(sizeof(*operation), OPERATION_RECORD, run_stamp);
	if (stamp == NULL || operation == NULL) {
		free(stamp);
		free(operation);
		return NULL;
	}
	atomic_store_explicit(&stamp->references, 2, memory_order_relaxed);
	operation->stamp = stamp;
	operation->base.brief = true;
	operation->base.clean = clean_stamp;
	return operation;
}

cudaError_t create_event(unsigned flags, struct event **event)
{
	struct event *new = calloc(1, sizeof(*new));
	if (new == NULL)
		return cudaErrorMemoryAllocation;
	atomic_store_explicit(&new->references, 1, memory_order_relaxed);
	new->flags = flags;
	pthread_mutex_init(&new->lock, NULL);
	*event = new;
	return cudaSuccess;
}

void hold_event(struct event *event)
{
	atomic_fetch_add_explicit(&event->references, 1, memory_order_relaxed);
}

void release_event(struct event *event)
{
	if (atomic_fetch_sub_explicit(&event->references, 1, memory_order_acq_rel) != 1)
		return;
	release_timeline(event->point.timeline);
	release_stamp(event->stamp);
	free_captured_point(event->captured);
	pthread_mutex_destroy(&event->lock);
	free(event);
}

/* Takes over the references of `point` and `stamp`. */
static void set_record(struct event *event, struct point point, struct stamp *stamp)
{
	pthread_mutex_lock(&event->lock);
	struct point old_point = event->point;
	struct stamp *old_stamp = event->stamp;
	event->point = point;
	event->stamp = stamp;
	free_captured_point(event->captured);
	event->captured = NULL;
	pthread_mutex_unlock(&event->lock);
	release_timeline(old_point.timeline);
	release_stamp(old_stamp);
}

cudaError_t record_event(struct event *event, struct stream *stream)
{
	struct stamp *stamp = NULL;

	if ((event->flags & cudaEventDisableTiming) == 0) {
		struct stamp_operation *operation = create_stamp_operation();
		if (operation == NULL)
			return cudaErrorMemoryAllocation;
		stamp = operation->stamp;
		cudaError_t error = append_operation(stream, &operation->base);
		release_operation(&operation->base);
		if (error != cudaSuccess) {
			release_stamp(stamp);
			return error;
		}
	}
	struct point point;
	cudaError_t error = mark_point(stream, &point);
	if (error != cudaSuccess) {
		release_stamp(stamp);
		return error;
	}
	set_record(event, point, stamp);
	return cudaSuccess;
}

void set_captured_point(struct event *event, struct captured_point *captured)
{
	pthread_mutex_lock(&event->lock);
	free_captured_point(event->captured);
	event->captured = captured;
	pthread_mutex_unlock(&event->lock);
}

bool has_captured_point(struct event *event)
{
	pthread_mutex_lock(&event->lock);
	bool captured = event->captured != NULL;
	pthread_mutex_unlock(&event->lock);
	return captured;
}

struct point find_event_point(struct event *event)
{
	pthread_mutex_lock(&event->lock);
	struct point point = event->point;
	hold_timeline(point.timeline);
	pthread_mutex_unlock(&event->lock);
	return point;
}

bool is_event_complete(struct event *event)
{
	pthread_mutex_lock(&event->lock);
	bool complete = is_reached(event->point);
	pthread_mutex_unlock(&event->lock);
	return complete;
}

void synchronize_event(struct event *event)
{
	struct point point = find_event_point(event);
	wait_for_point(point);
	release_timeline(point.timeline);
}

static cudaError_t read_stamp(struct event *event, uint64_t *nanoseconds)
{
	cudaError_t error = cudaSuccess;

	pthread_mutex_lock(&event->lock);
	if (event->stamp == NULL)
		error = cudaErrorInvalidResourceHandle;
	else
		*nanoseconds =
			atomic_load_explicit(&event->stamp->nanoseconds, memory_order_acquire);
	pthread_mutex_unlock(&event->lock);
	if (error == cudaSuccess && *nanoseconds == 0)
		error = cudaErrorNotReady;
	return error;
}

cudaError_t measure_events(struct event *start, struct event *end, float *milliseconds)
{
	uint64_t from, to;
	cudaError_t error = read_stamp(start, &from);
	if (error == cudaSuccess)
		error = read_stamp(end, &to);
	if (error == cudaSuccess)
		*milliseconds = (float)((double)(int64_t)(to - from) / 1e6);
	return error;
}
