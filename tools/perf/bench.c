/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "tools/job/fault.h"
#include "tools/job/rendezvous.h"
#include "tools/perf/bench.h"
#include "tools/perf/calls.h"
#include "tools/perf/dataset.h"
#include "tools/perf/duration.h"
#include "tools/perf/options.h"
#include "tools/perf/proxy.h"
#include "tools/perf/stream.h"

#define ROUNDS 4 /* how often two plugins take turns in the measured iterations of a size */

int ha_bench_allocate(struct ha_bench *bench, size_t bytes)
{
	bench->progress.printed_ns = ha_monotonic_ns();
	bench->buffer_bytes = (bytes + 4095) / 4096 * 4096 + 4096;
	for (int i = 0; i < 2; i++) {
		bench->buffers[i] = mmap(NULL, bench->buffer_bytes, PROT_READ | PROT_WRITE,
					 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (bench->buffers[i] == MAP_FAILED)
			return ha_fault(-ENOMEM,
					"no memory for two buffers of %zu bytes in each rank",
					bench->buffer_bytes);
	}
	return 0;
}

/* ---- measuring ---- */

/* Iterations first..end-1, their times into samples. */
static int run_measured(struct ha_bench *bench, struct ha_job *job, int first, int end,
			uint64_t seed, struct ha_tally *tally, uint64_t *samples)
{
	int64_t start, before, now, cpu;
	int err = ha_rendezvous_barrier(bench->rendezvous);

	bench->progress.phase = "iteration";
	bench->progress.iterations = bench->options->run.iters;
	for (int i = first; bench->options->run.check_all && i < end && !err; i++) {
		bench->progress.iteration = i;
		err = ha_bench_verified(bench, job, seed + (uint64_t)i, tally, &samples[i]);
		tally->elapsed_ns += samples[i];
		tally->iterations++;
	}
	if (err || bench->options->run.check_all)
		return err;
	cpu = ha_process_cpu_ns();
	start = before = ha_monotonic_ns();
	for (int i = first; i < end && !err; i++) {
		bench->progress.iteration = i;
		err = ha_bench_once(bench, job);
		now = ha_monotonic_ns();
		samples[i] = (uint64_t)(now - before);
		before = now;
	}
	tally->elapsed_ns += (uint64_t)(before - start);
	tally->cpu_ns += (uint64_t)(ha_process_cpu_ns() - cpu);
	tally->iterations += (uint64_t)(end - first);
	return err;
}

static int run_warmup(struct ha_bench *bench, struct ha_job *job)
{
	struct ha_payload payload = ha_dataset_payload(bench, job, bench->options->run.seed);
	int err = 0;

	ha_dataset_fill(job, &payload);
	bench->progress.phase = "warm-up";
	bench->progress.iterations = bench->options->run.warmup;
	for (int i = 0; i < bench->options->run.warmup && !err; i++) {
		bench->progress.iteration = i;
		err = ha_bench_once(bench, job);
	}
	return err;
}

static int run_checks(struct ha_bench *bench, struct ha_job *job, uint64_t seed,
		      struct ha_tally *tally)
{
	int err = 0;

	bench->progress.phase = "verification";
	bench->progress.iterations = bench->options->run.checks;
	for (int i = 0; i < bench->options->run.checks && !err; i++) {
		bench->progress.iteration = i;
		err = ha_bench_verified(bench, job, seed + (uint64_t)i, tally, NULL);
	}
	return err;
}

/* ---- figures ---- */

/* All ranks' calls of test() as one. Collective. */
static int calls_gather(struct ha_bench *bench, const struct ha_calls *mine, struct ha_figures *f)
{
	struct ha_calls *all = calloc((size_t)bench->place->ranks, sizeof(*all));
	int err = all ? ha_rendezvous_gather(bench->rendezvous, mine, sizeof(*mine), all)
		      : ha_fault(-ENOMEM, "out of memory");

	if (!err && !bench->place->rank) {
		for (int i = 1; i < bench->place->ranks; i++)
			ha_calls_sum(&all[0], &all[i]);
		f->test_calls = all[0].count;
		f->test_p50_us = (double)ha_calls_percentile(&all[0], 0.50) / 1000;
		f->test_p99_us = (double)ha_calls_percentile(&all[0], 0.99) / 1000;
		f->test_p999_us = (double)ha_calls_percentile(&all[0], 0.999) / 1000;
		f->test_max_us = (double)all[0].longest / 1000;
	}
	free(all);
	return err;
}

static int figures_gather(struct ha_bench *bench, const struct ha_job *job, struct ha_tally *mine,
			  const struct ha_samples *samples, size_t bytes,
			  struct ha_figures *figures)
{
	struct ha_figures_of of = {
		.run = &bench->options->run,
		.place = bench->place,
		.rendezvous = bench->rendezvous,
		.half_trip = job->operation->half_trip,
		.bus_factor = job->operation->layout->bus_factor(bench->place->ranks),
		.bytes = bytes,
	};

	mine->messages = job->messages;
	return ha_figures_gather(&of, mine, samples, figures);
}

/* ---- one size ---- */

static void shape_place(struct ha_bench *bench, struct ha_shape *shape, enum ha_placement placement)
{
	struct ha_extent extent = ha_shape_extent(shape);
	size_t send_at = 0, recv_at = 0;

	if (placement == HA_IN_PLACE)
		bench->options->operation->layout->overlap(&extent, &send_at, &recv_at);
	shape->send = bench->buffers[0] + send_at * shape->type->size;
	shape->recv =
		bench->buffers[placement == HA_IN_PLACE ? 0 : 1] + recv_at * shape->type->size;
}

/* The number of iterations that was asked for, or the time; two plugins take turns. */
static int run_all_measured(struct ha_bench *bench, struct ha_job *jobs, struct ha_tally *tallies,
			    struct ha_samples *samples, uint64_t seed)
{
	const struct perf_options *o = bench->options;
	int meshes = bench->meshes_count, rounds = meshes > 1 ? ROUNDS : 1, err = 0;

	if (o->run.duration_ns)
		return ha_duration_run(bench, &jobs[0], &tallies[0], &samples[0]);
	for (int m = 0; m < meshes; m++) {
		samples[m].ns = calloc((size_t)o->run.iters + 1, sizeof(*samples[m].ns));
		if (!samples[m].ns)
			return ha_fault(-ENOMEM, "out of memory");
	}
	for (int r = 0; r < rounds && !err; r++)
		for (int m = 0; m < meshes && !err; m++)
			err = run_measured(bench, &jobs[m], o->run.iters * r / rounds,
					   o->run.iters * (r + 1) / rounds, seed, &tallies[m],
					   samples[m].ns);
	return err;
}

/* The same with the times of test(), when they are asked for. */
static int run_all_timed(struct ha_bench *bench, struct ha_job *jobs, struct ha_tally *tallies,
			 struct ha_samples *samples, uint64_t seed, struct ha_calls *calls)
{
	int err;

	for (int m = 0; calls && m < bench->meshes_count; m++)
		jobs[m].mesh->calls = &calls[m];
	err = run_all_measured(bench, jobs, tallies, samples, seed);
	for (int m = 0; m < bench->meshes_count; m++)
		jobs[m].mesh->calls = NULL;
	return err;
}

static int measure_placement(struct ha_bench *bench, struct ha_job *jobs, size_t bytes,
			     struct ha_figures *figures)
{
	const struct perf_options *o = bench->options;
	struct ha_samples samples[HA_SIDES] = { 0 };
	struct ha_tally tallies[HA_SIDES] = { 0 };
	struct ha_calls *calls = o->time_test ? calloc(HA_SIDES, sizeof(*calls)) : NULL;
	uint64_t seed = (o->run.seed << 20) + 1;
	int meshes = bench->meshes_count,
	    err = o->time_test && !calls ? ha_fault(-ENOMEM, "out of memory") : 0;

	for (int m = 0; m < meshes && !err; m++)
		err = run_warmup(bench, &jobs[m]);
	if (!err)
		err = run_all_timed(bench, jobs, tallies, samples, seed, calls);
	seed += (uint64_t)o->run.iters;
	for (int m = 0; m < meshes && !err; m++)
		err = run_checks(bench, &jobs[m], seed, &tallies[m]);
	for (int m = 0; m < meshes && !err; m++)
		err = figures_gather(bench, &jobs[m], &tallies[m], &samples[m], bytes, &figures[m]);
	for (int m = 0; m < meshes && calls && !err; m++)
		err = calls_gather(bench, &calls[m], &figures[m]);
	free(calls);
	for (int m = 0; m < meshes; m++)
		free(samples[m].ns);
	return err;
}

int ha_bench_run(struct ha_bench *bench, const struct ha_datatype *type, int redop, size_t bytes,
		 struct ha_row *row)
{
	const struct perf_options *o = bench->options;
	struct ha_job jobs[HA_SIDES] = { 0 };
	struct ha_shape shape = {
		.rank = bench->place->rank,
		.ranks = bench->place->ranks,
		.root = o->run.root,
		.channels = o->channels,
		.type = type,
		.redop = redop < 0 ? HA_SUM : (enum ha_redop)redop,
	};
	int placements = o->operation->layout->in_place && o->run.in_place ? HA_PLACEMENTS : 1,
	    err = 0;

	*row = (struct ha_row) { .type = type,
				 .redop = redop,
				 .root = o->operation->layout->rooted ? o->run.root : -1 };
	row->count = ha_layout_count(o->operation->layout, shape.ranks, bytes, type->size);
	row->bytes = row->count * type->size;
	shape.block = ha_layout_block(o->operation->layout, shape.ranks, row->count);
	bench->progress.bytes = row->bytes;
	for (int p = 0; p < placements && !err; p++) {
		shape_place(bench, &shape, p);
		for (int m = 0; m < bench->meshes_count && !err; m++)
			err = ha_job_prepare(&jobs[m], &bench->meshes[m], o->operation, &shape);
		row->protocol = jobs[0].protocol == HA_LL ? "ll" : "simple";
		if (!err)
			err = measure_placement(bench, jobs, row->bytes, row->figures[p]);
		for (int m = 0; m < bench->meshes_count; m++)
			ha_job_release(&jobs[m]);
	}
	return err;
}
