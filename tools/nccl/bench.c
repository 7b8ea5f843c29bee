/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "tools/job/fault.h"
#include "tools/job/rendezvous.h"
#include "tools/nccl/bench.h"
#include "tools/nccl/check.h"
#include "tools/nccl/duration.h"
#include "tools/nccl/graph.h"
#include "tools/nccl/library.h"
#include "tools/nccl/options.h"
#include "tools/nccl/run.h"
#include "tools/nccl/watch.h"

#define EVENTS 512 /* iterations that are asked for at a time */

/* ---- measured iterations ---- */

/* Iterations that follow each other on the streams, with an event of the first GPU after each. */
struct chain {
	cuda_event events[EVENTS + 1];
	int made;
};

static int chain_open(const struct nccl_bench *b, struct chain *chain, int iterations)
{
	int want = (iterations < EVENTS ? iterations : EVENTS) + 1, err = 0;

	(void)b->library->cuda.set_device(b->gpus.each[0].device);
	for (; chain->made < want && !err; chain->made += !err)
		err = nccl_cuda_check(b->library, &b->gpus.each[0],
				      b->library->cuda.event_create(&chain->events[chain->made]),
				      "cudaEventCreate");
	return err;
}

static void chain_close(const struct nccl_bench *b, struct chain *chain)
{
	for (int i = 0; i < chain->made; i++)
		(void)b->library->cuda.event_destroy(chain->events[i]);
}

static int event_record(const struct nccl_bench *b, cuda_event event)
{
	const struct nccl_gpu *gpu = &b->gpus.each[0];

	if (b->gpus.count > 1)
		(void)b->library->cuda.set_device(gpu->device);
	return nccl_cuda_check(b->library, gpu, b->library->cuda.event_record(event, gpu->stream),
			       "cudaEventRecord");
}

static int chain_samples(const struct nccl_bench *b, const struct chain *chain, int n,
			 struct ha_samples *samples)
{
	float ms;
	int err = 0;

	for (int i = 0; i < n && !err; i++) {
		err = nccl_cuda_check(b->library, &b->gpus.each[0],
				      b->library->cuda.event_elapsed(&ms, chain->events[i],
								     chain->events[i + 1]),
				      "cudaEventElapsedTime");
		if (!err)
			err = ha_samples_add(samples, ms > 0 ? (uint64_t)((double)ms * 1e6) : 0);
	}
	return err;
}

/* n iterations, at most EVENTS. */
static int chain_run(const struct nccl_run *run, struct chain *chain, int n,
		     struct ha_samples *samples)
{
	struct nccl_bench *b = run->bench;
	int err = event_record(b, chain->events[0]);

	ha_watch_follow(b->watch, chain->events + 1, n);
	for (int i = 0; i < n && !err; i++) {
		err = nccl_run_start(run, NULL);
		if (!err)
			err = event_record(b, chain->events[i + 1]);
		if (!err && b->options->blocking)
			err = nccl_gpus_synchronize(&b->gpus);
	}
	if (!err)
		err = nccl_gpus_synchronize(&b->gpus);
	return err ? err : chain_samples(b, chain, n, samples);
}

static int run_chained(const struct nccl_run *run, int iterations, struct nccl_round *round,
		       struct ha_samples *samples)
{
	struct nccl_bench *b = run->bench;
	struct chain chain = { .made = 0 };
	int err = chain_open(b, &chain, iterations), left;
	int64_t start, cpu;

	if (!err)
		err = ha_rendezvous_barrier(b->rendezvous);
	if (err)
		return err;
	ha_watch_enter(b->watch, b->options->operation->function);
	cpu = ha_process_cpu_ns();
	start = ha_monotonic_ns();
	for (int done = 0; done < iterations && !err; done += EVENTS)
		err = chain_run(run, &chain,
				iterations - done < EVENTS ? iterations - done : EVENTS, samples);
	round->elapsed_ns = (uint64_t)(ha_monotonic_ns() - start);
	round->cpu_ns = (uint64_t)(ha_process_cpu_ns() - cpu);
	round->iterations = (uint64_t)iterations;
	left = ha_watch_leave(b->watch);
	err = err ? err : left;
	if (!err)
		chain_close(b, &chain);
	return err;
}

/* Every measured iteration verified, with a barrier before each. */
static int run_checked(const struct nccl_run *run, int iterations, uint64_t seed,
		       struct ha_tally *tally, struct nccl_round *round, struct ha_samples *samples)
{
	uint64_t elapsed = 0, cpu = tally->cpu_ns;
	int err = 0;

	for (int i = 0; i < iterations && !err; i++) {
		run->bench->progress.iteration = i;
		err = nccl_run_verified(run, seed + (uint64_t)i, tally, &elapsed);
		round->elapsed_ns += elapsed;
		round->iterations++;
		if (!err)
			err = ha_samples_add(samples, elapsed);
	}
	round->cpu_ns = tally->cpu_ns - cpu;
	tally->cpu_ns = cpu;
	return err;
}

/* ---- one size ---- */

/* What one side measured. */
struct side {
	struct nccl_run run;
	struct ha_tally tally;
	struct ha_samples samples;
};

/* Of the samples from `first` on, in their order. 0: none, or no memory for a copy. */
static double middle_us(const struct ha_samples *samples, size_t first)
{
	size_t n = samples->count - first;
	uint64_t *sorted = malloc(n * sizeof(*sorted) + 1);
	double middle;

	if (!sorted)
		return 0;
	memcpy(sorted, samples->ns + first, n * sizeof(*sorted));
	ha_samples_sort(sorted, n);
	middle = ha_percentile_us(sorted, n, 0.5);
	free(sorted);
	return middle;
}

static int run_round(struct side *side, int iterations, uint64_t seed, struct nccl_round *round)
{
	struct nccl_bench *b = side->run.bench;
	size_t first = side->samples.count;
	int err;

	b->progress.phase = "iteration";
	b->progress.iteration = 0;
	b->progress.iterations = iterations;
	if (b->options->run.check_all)
		err = run_checked(&side->run, iterations, seed, &side->tally, round,
				  &side->samples);
	else if (b->options->graphs)
		err = nccl_graph_run(&side->run, iterations, round, &side->samples);
	else
		err = run_chained(&side->run, iterations, round, &side->samples);
	if (!err)
		round->p50_us = middle_us(&side->samples, first);
	side->tally.elapsed_ns += round->elapsed_ns;
	side->tally.cpu_ns += round->cpu_ns;
	side->tally.iterations += round->iterations;
	return err;
}

/* The number of iterations that was asked for, or the time; two sides take turns. */
static int run_measured(struct nccl_bench *b, struct side *sides, uint64_t seed)
{
	struct nccl_round rounds[HA_SIDES][NCCL_ROUNDS_MOST] = { 0 };
	int count = b->gpus.sides > 1 ? b->options->rounds : 1, iters = b->options->run.iters,
	    err = 0;

	if (b->options->run.duration_ns)
		return nccl_duration_run(&sides[0].run, &sides[0].tally, &sides[0].samples);
	for (int r = 0; r < count && !err; r++)
		for (int s = 0; s < b->gpus.sides && !err; s++)
			err = run_round(&sides[s], iters * (r + 1) / count - iters * r / count,
					seed, &rounds[s][r]);
	if (!err && b->gpus.sides > 1)
		err = nccl_rounds_gather(&b->rounds, rounds, count, b->rendezvous, b->place);
	return err;
}

static int run_waited(const struct nccl_run *run, const char *what)
{
	struct nccl_bench *b = run->bench;
	int err, left;

	ha_watch_enter(b->watch, what);
	err = nccl_run_start(run, NULL);
	if (!err)
		err = nccl_gpus_synchronize(&b->gpus);
	left = ha_watch_leave(b->watch);
	return err ? err : left;
}

static int run_unmeasured(struct side *side)
{
	struct nccl_bench *b = side->run.bench;
	int err = nccl_run_fill(&side->run, b->options->run.seed);

	b->progress.phase = "warm-up";
	b->progress.iterations = b->options->run.warmup;
	for (int i = 0; i < b->options->run.warmup && !err; i++) {
		b->progress.iteration = i;
		err = run_waited(&side->run, b->options->operation->function);
	}
	return err;
}

static int run_checks(struct side *side, uint64_t seed)
{
	struct nccl_bench *b = side->run.bench;
	int err = 0;

	b->progress.phase = "verification";
	b->progress.iterations = b->options->run.checks;
	for (int i = 0; i < b->options->run.checks && !err; i++) {
		b->progress.iteration = i;
		err = nccl_run_verified(&side->run, seed + (uint64_t)i, &side->tally, NULL);
	}
	return err;
}

static int figures_gather(struct nccl_bench *b, struct side *side, size_t bytes,
			  struct ha_figures *figures)
{
	struct ha_figures_of of = {
		.run = &b->options->run,
		.place = b->place,
		.rendezvous = b->rendezvous,
		.bus_factor = b->options->operation->layout->bus_factor(b->gpus.ranks),
		.bytes = bytes,
	};

	return ha_figures_gather(&of, &side->tally, &side->samples, figures);
}

static int measure_placement(struct nccl_bench *b, const struct nccl_run *run, size_t bytes,
			     struct ha_figures *figures)
{
	const struct ha_run_options *o = &b->options->run;
	uint64_t seed = (o->seed << 20) + 1;
	struct side sides[HA_SIDES] = { 0 };
	int err = 0;

	for (int s = 0; s < b->gpus.sides && !err; s++) {
		sides[s].run = *run;
		sides[s].run.side = s;
		err = run_unmeasured(&sides[s]);
	}
	if (!err)
		err = run_measured(b, sides, seed);
	seed += (uint64_t)o->iters;
	for (int s = 0; s < b->gpus.sides && !err; s++)
		err = run_checks(&sides[s], seed);
	for (int s = 0; s < b->gpus.sides && !err; s++)
		err = figures_gather(b, &sides[s], bytes, &figures[s]);
	for (int s = 0; s < b->gpus.sides; s++)
		free(sides[s].samples.ns);
	return err;
}

int nccl_bench_run(struct nccl_bench *b, const struct ha_datatype *type, int redop, size_t bytes,
		   struct ha_row *row)
{
	const struct nccl_options *o = b->options;
	const struct ha_layout *layout = o->operation->layout;
	struct nccl_run run = { .bench = b,
				.type = type,
				.redop = redop < 0 ? HA_SUM : (enum ha_redop)redop };
	int placements = layout->in_place && o->run.in_place ? HA_PLACEMENTS : 1, err = 0;

	*row = (struct ha_row) { .type = type,
				 .redop = redop,
				 .root = layout->rooted ? o->run.root : -1 };
	row->count = ha_layout_count(layout, b->gpus.ranks, bytes, type->size);
	row->bytes = row->count * type->size;
	run.block = ha_layout_block(layout, b->gpus.ranks, row->count);
	b->progress.bytes = row->bytes;
	if (run.redop == HA_MULSUM)
		err = nccl_gpus_mulsum(&b->gpus, type);
	for (int p = 0; p < placements && !err; p++) {
		run.placement = (enum ha_placement)p;
		err = measure_placement(b, &run, row->bytes, row->figures[p]);
	}
	return err;
}

/* ---- the start ---- */

static size_t largest_bytes(const struct nccl_bench *b)
{
	const struct ha_run_options *o = &b->options->run;
	size_t largest = 0, bytes;

	for (int t = 0; t < o->types_count; t++) {
		bytes = ha_layout_count(b->options->operation->layout, b->gpus.ranks, o->max_bytes,
					o->types[t]->size) *
			o->types[t]->size;
		largest = bytes > largest ? bytes : largest;
	}
	return largest;
}

/* NCCL connects when an operation first needs it. */
static int first_iteration(struct nccl_bench *b)
{
	const struct ha_datatype *type = b->options->run.types[0];
	struct nccl_run run = { .bench = b, .type = type, .redop = HA_SUM };
	size_t bytes = b->options->run.min_bytes;
	int err = 0;

	run.block = ha_layout_block(b->options->operation->layout, b->gpus.ranks,
				    ha_layout_count(b->options->operation->layout, b->gpus.ranks,
						    bytes, type->size));
	b->progress.phase = "connection";
	b->progress.bytes = bytes;
	for (int s = 0; s < b->gpus.sides && !err; s++) {
		run.side = s;
		err = run_waited(&run, "the first operation, which connects the ranks");
	}
	return err;
}

int nccl_bench_open(struct nccl_bench *b)
{
	const struct nccl_options *o = b->options;
	int err = nccl_gpus_open(&b->gpus, o, b->library, b->place, b->rendezvous, b->watch);

	if (err)
		return err;
	ha_watch_gpus(b->watch, &b->gpus);
	if (o->operation->layout->rooted && o->run.root >= b->gpus.ranks)
		return ha_fault(-EINVAL, "--root %d is not one of the %d ranks", o->run.root,
				b->gpus.ranks);
	err = nccl_gpus_allocate(&b->gpus, largest_bytes(b));
	if (err)
		return err;
	b->host = mmap(NULL, b->gpus.buffers[0].bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (b->host == MAP_FAILED)
		return ha_fault(-ENOMEM, "no memory for a buffer of %zu bytes in each process",
				b->gpus.buffers[0].bytes);
	return first_iteration(b);
}
