/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * event.h - events: the point of a stream where an event was recorded last, and when it was reached
 *
 * A wait means the record that was asked for last before the wait; a later record changes nothing
 * for it. An event that was never recorded is complete.
 */
#ifndef SOFTCUDA_EVENT_H
#define SOFTCUDA_EVENT_H

#include <pthread.h>
#include <stdbool.h>

#include "softcuda/runtime/node_set.h"
#include "softcuda/runtime/stream.h"

struct stamp;

struct event {
	/* the program's, and one of each node of a graph that names it */
	_Atomic unsigned references;
	unsigned flags;
	int device;           /* that was current when it was created */
	pthread_mutex_t lock; /* protects what follows */
	struct point point;
	struct stamp *stamp;             /* NULL: not recorded, or no timing */
	struct captured_point *captured; /* not NULL: it was recorded last in a capture */
};

cudaError_t create_event(unsigned flags, struct event **event);
void hold_event(struct event *event);
void release_event(struct event *event);

/* Record it in `stream`, after all that was asked for. */
cudaError_t record_event(struct event *event, struct stream *stream);
/* Remember that it was recorded last in a capture. Takes over `captured`. */
void set_captured_point(struct event *event, struct captured_point *captured);
bool has_captured_point(struct event *event);
/* Where it was recorded last; the caller gets a reference to the timeline. */
struct point find_event_point(struct event *event);
bool is_event_complete(struct event *event);
void synchronize_event(struct event *event);
cudaError_t measure_events(struct event *start, struct event *end, float *milliseconds);

#endif
