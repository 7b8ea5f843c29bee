/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_PERF_BENCH_H
#define HAWSER_PERF_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/perf/calls.h"
#include "tools/perf/input.h"
#include "tools/perf/mesh.h"
#include "tools/perf/operation.h"
#include "tools/perf/payload.h"
#include "tools/perf/timeline.h"

struct ha_job;
struct ha_options;
struct ha_place;
struct ha_rendezvous;

/*
 * bench - runs an operation at one size: warm-up, measured iterations, verified iterations; collects the numbers
 *
 * Measured iterations follow each other without a barrier, as in nccl-tests. Verified ones start from poisoned
 * buffers and data of their own.
 */

enum ha_placement { HA_OUT_OF_PLACE, HA_IN_PLACE, HA_PLACEMENTS };

#define HA_MESHES 2 /* the plugin and the one it is compared with */

/* One plugin, one placement, all ranks together; at rank 0 only. Microseconds, GB/s (10^9). */
struct ha_figures {
	bool valid;
	double time_us, algbw, busbw;
	uint64_t wrong; /* elements, over all ranks and verified iterations */
	uint64_t iterations; /* measured */
	uint64_t verified; /* iterations whose every element was compared; 0: none was */
	double p50_us, p99_us, max_us; /* of an iteration, over all ranks */
	double cpu_us_per_msg; /* CPU time of all threads of all ranks, per message sent */
	uint64_t messages; /* sent by all ranks in one iteration */
	/* of the calls of test() in all ranks' measured iterations, us; calls 0: not asked for */
	uint64_t test_calls;
	double test_p50_us, test_p99_us, test_p999_us, test_max_us;
};

/* One line of the report. */
struct ha_row {
	size_t bytes, count;
	const struct ha_datatype *type;
	int redop; /* -1: none */
	int root; /* -1: none */
	enum ha_protocol protocol;
	struct ha_figures figures[HA_PLACEMENTS][HA_MESHES];
};

/* What one rank measured; gathered by rank 0. */
struct ha_tally {
	uint64_t elapsed_ns, cpu_ns, iterations, wrong, verified, messages;
};

/* The times of the measured iterations. */
struct ha_samples {
	uint64_t *ns;
	size_t count, room;
};

struct ha_bench {
	const struct ha_options *options;
	const struct ha_place *place;
	struct ha_rendezvous *rendezvous;
	struct ha_mesh meshes[HA_MESHES];
	int meshes_count;
	char *buffers[2]; /* each of buffer_bytes */
	size_t buffer_bytes;
	struct ha_input input; /* of --input; data NULL: none */
	uint64_t wrong; /* of this rank, ever */
	struct ha_timelines timelines; /* of --timeline; at rank 0 */
	uint64_t iterations_timed; /* of --duration */
	/* for the progress line and the detection of standstill */
	const char *phase;
	int iteration, iterations; /* iterations 0: nobody knows */
	size_t bytes;
	int64_t moved_ns, looked_ns, told_ns;
	bool told;
};

/* Buffers for operations up to `bytes`. 0 or -ENOMEM with the fault recorded. */
int ha_bench_allocate(struct ha_bench *bench, size_t bytes);

/*
 * Runs the operation with `bytes` of the type (rounded to what the ranks can share) and fills the row (its figures at
 * rank 0 only). Collective. 0 or a negative errno with the fault recorded.
 */
int ha_bench_run(struct ha_bench *bench, const struct ha_datatype *type, int redop, size_t bytes, struct ha_row *row);

/* Bytes and elements that a request for `bytes` comes down to. */
void ha_bench_size(const struct ha_bench *bench, const struct ha_datatype *type, size_t bytes, size_t *actual,
		   size_t *count);

/* One run of the operation, with an eye on standstill and on the other ranks. 0 or a negative errno. */
int ha_bench_once(struct ha_bench *bench, struct ha_job *job);

/* An iteration from fresh data and poisoned buffers, compared element by element. *elapsed_ns may be NULL. */
int ha_bench_verified(struct ha_bench *bench, struct ha_job *job, uint64_t seed, struct ha_tally *tally,
		      uint64_t *elapsed_ns);

/* Removes the progress line from the terminal, before something else is printed. */
void ha_bench_quiet(struct ha_bench *bench);

#endif
