/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_TOOL_NCCL_BENCH_H
#define HAWSER_TOOL_NCCL_BENCH_H

#include "tools/job/figures.h"
#include "tools/job/progress.h"
#include "tools/job/timeline.h"
#include "tools/nccl/gpus.h"
#include "tools/nccl/rounds.h"

struct ha_library;
struct ha_place;
struct ha_rendezvous;
struct ha_watch;
struct nccl_options;

/*
 * bench - runs an operation at one size: warm-up, measured iterations, verified iterations;
 * collects the numbers
 *
 * Measured iterations follow each other on the stream, as in nccl-tests. Verified ones start from
 * poisoned buffers and data of their own.
 */
struct nccl_bench {
	const struct nccl_options *options;
	const struct ha_place *place;
	struct ha_rendezvous *rendezvous;
	const struct ha_library *library;
	struct ha_watch *watch;
	struct nccl_gpus gpus;
	char *host;     /* of gpus.buffers[0].bytes: data on its way to and from a GPU */
	uint64_t wrong; /* of this process, ever */
	struct ha_timelines timelines; /* of --timeline; at rank 0 */
	uint64_t iterations_timed;     /* of --duration */
	struct nccl_rounds rounds;     /* of --vs, the last size; at rank 0 */
	struct ha_progress progress;
};

/*
 * Buffers for operations up to `bytes`, communicators, and one iteration, which makes the
 * connections.
 */
int nccl_bench_open(struct nccl_bench *bench);

/*
 * Runs the operation with `bytes` of the type (rounded to what the ranks can share) and fills the
 * row (its figures at rank 0 only). Collective. 0 or a negative errno with the fault recorded.
 */
int nccl_bench_run(struct nccl_bench *bench, const struct ha_datatype *type, int redop,
		   size_t bytes, struct ha_row *row);

#endif
