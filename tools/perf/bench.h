/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_PERF_BENCH_H
#define HAWSER_PERF_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/job/figures.h"
#include "tools/job/payload.h"
#include "tools/job/progress.h"
#include "tools/job/timeline.h"
#include "tools/perf/calls.h"
#include "tools/perf/input.h"
#include "tools/perf/mesh.h"
#include "tools/perf/operation.h"

struct ha_job;
struct perf_options;
struct ha_place;
struct ha_rendezvous;

/*
 * bench - runs an operation at one size: warm-up, measured iterations, verified iterations;
 * collects the numbers
 *
 * Measured iterations follow each other without a barrier, as in nccl-tests. Verified ones start
 * from poisoned buffers and data of their own.
 */

struct ha_bench {
	const struct perf_options *options;
	const struct ha_place *place;
	struct ha_rendezvous *rendezvous;
	struct ha_mesh meshes[HA_SIDES];
	int meshes_count;
	char *buffers[2]; /* each of buffer_bytes */
	size_t buffer_bytes;
	struct ha_input input;         /* of --input; data NULL: none */
	uint64_t wrong;                /* of this rank, ever */
	struct ha_timelines timelines; /* of --timeline; at rank 0 */
	uint64_t iterations_timed;     /* of --duration */
	struct ha_progress progress;
	/* CLOCK_MONOTONIC ns: the last progress, and the last look at the other ranks */
	int64_t moved_ns, looked_ns;
};

/* Buffers for operations up to `bytes`. 0 or -ENOMEM with the fault recorded. */
int ha_bench_allocate(struct ha_bench *bench, size_t bytes);

/*
 * Runs the operation with `bytes` of the type (rounded to what the ranks can share) and fills the
 * row (its figures at rank 0 only). Collective. 0 or a negative errno with the fault recorded.
 */
int ha_bench_run(struct ha_bench *bench, const struct ha_datatype *type, int redop, size_t bytes,
		 struct ha_row *row);

/*
 * One run of the operation, with an eye on standstill and on the other ranks. 0 or a negative
 * errno.
 */
int ha_bench_once(struct ha_bench *bench, struct ha_job *job);

/*
 * An iteration from fresh data and poisoned buffers, compared element by element. *elapsed_ns may
 * be NULL.
 */
int ha_bench_verified(struct ha_bench *bench, struct ha_job *job, uint64_t seed,
		      struct ha_tally *tally, uint64_t *elapsed_ns);

#endif
