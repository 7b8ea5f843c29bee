/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_PERF_STREAM_H
#define HAWSER_PERF_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/perf/mesh.h"
#include "tools/perf/operation.h"

/*
 * stream - carries out a plan slice by slice: what a GPU kernel does between the user's buffers and
 * the slots
 *
 * A slice is taken when its receive slot has arrived and its send slot is free. It knows nothing of
 * the network but the counters of its two lanes.
 */
struct ha_stream {
	struct ha_plan plan;
	struct ha_conn *from, *to;
	struct ha_lane *in, *out; /* NULL: the plan does not receive, or send */
	uint64_t done;            /* actions */
	struct ha_action action;  /* the current one */
	size_t slice, slices, slice_bytes;
};

/*
 * One operation on one mesh, prepared once and run many times. Owner of the streams.
 */
struct ha_job {
	struct ha_mesh *mesh;
	const struct ha_operation *operation;
	struct ha_shape shape;
	enum ha_protocol protocol;
	struct ha_stream *streams;
	int streams_count;
	char *scratch;     /* LL: payload of one received and one sent slot */
	uint64_t messages; /* sent by this rank in one run */
};

/*
 * Makes the streams for the shape; chooses slot_bytes, steps, protocol. 0 or a negative errno,
 * fault recorded.
 */
int ha_job_prepare(struct ha_job *job, struct ha_mesh *mesh, const struct ha_operation *operation,
		   const struct ha_shape *shape);

/* Called now and then while nothing moves; a negative errno ends the run. */
typedef int (*ha_job_idle)(void *context, const struct ha_job *job, bool moved);

/* Runs the operation to its local completion. 0 or a negative errno with the fault recorded. */
int ha_job_run(struct ha_job *job, ha_job_idle idle, void *context);

void ha_job_release(struct ha_job *job);

#endif
