/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tools/perf/bench.h"
#include "tools/perf/calls.h"
#include "tools/perf/dataset.h"
#include "tools/perf/duration.h"
#include "tools/perf/fault.h"
#include "tools/perf/options.h"
#include "tools/perf/proxy.h"
#include "tools/perf/rendezvous.h"
#include "tools/perf/stream.h"

#define ROUNDS	4 /* how often two plugins take turns in the measured iterations of a size */
#define LOOK_NS 5000000 /* between looks whether another rank failed */
#define TTY_NS	1000000000L /* between progress lines on a terminal ... */
#define LOG_NS	10000000000L /* ... and elsewhere */

static int64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int ha_bench_allocate(struct ha_bench *bench, size_t bytes)
{
	bench->told_ns = clock_ns(CLOCK_MONOTONIC);
	bench->buffer_bytes = (bytes + 4095) / 4096 * 4096 + 4096;
	for (int i = 0; i < 2; i++) {
		bench->buffers[i] =
			mmap(NULL, bench->buffer_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (bench->buffers[i] == MAP_FAILED)
			return ha_fault(-ENOMEM, "no memory for two buffers of %zu bytes in each rank",
					bench->buffer_bytes);
	}
	return 0;
}

void ha_bench_size(const struct ha_bench *bench, const struct ha_datatype *type, size_t bytes, size_t *actual,
		   size_t *count)
{
	size_t share = bench->options->operation->splits ? (size_t)bench->place->ranks : 1;
	size_t block = bytes / type->size / share;

	if (!block && bytes)
		block = 1;
	*count = block * share;
	*actual = *count * type->size;
}

/* --- progress, standstill ---------------------------------------------------------------------------------------- */

void ha_bench_quiet(struct ha_bench *bench)
{
	if (bench->told && isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[K");
	bench->told = false;
}

static void tell_progress(struct ha_bench *bench, int64_t now)
{
	bool tty = isatty(STDERR_FILENO);

	if (bench->place->rank || now - bench->told_ns < (tty ? TTY_NS : LOG_NS))
		return;
	bench->told_ns = now;
	bench->told = true;
	fprintf(stderr, "%sha perf: %s, %zu bytes, %s %d", tty ? "\r" : "", bench->options->operation->name,
		bench->bytes, bench->phase, bench->iteration + 1);
	if (bench->iterations)
		fprintf(stderr, " of %d", bench->iterations);
	fprintf(stderr, "%s", tty ? "\033[K" : "\n");
	fflush(stderr);
}

static int idle(void *context, const struct ha_job *job, bool moved)
{
	struct ha_bench *bench = context;
	int64_t now = clock_ns(CLOCK_MONOTONIC);
	char waiting[200];
	int err;

	if (moved)
		bench->moved_ns = now;
	if (now - bench->looked_ns < LOOK_NS)
		return 0;
	bench->looked_ns = now;
	tell_progress(bench, now);
	err = ha_rendezvous_poll(bench->rendezvous);
	if (err || now - bench->moved_ns < (int64_t)bench->options->timeout_s * 1000000000)
		return err;
	ha_proxy_describe(job->mesh, waiting, sizeof(waiting));
	return ha_fault(-ETIMEDOUT, "nothing has moved for %d s: %s (%s of %zu bytes, plugin '%s')",
			bench->options->timeout_s, waiting, bench->options->operation->name, bench->bytes,
			job->mesh->plugin.name);
}

int ha_bench_once(struct ha_bench *bench, struct ha_job *job)
{
	bench->moved_ns = clock_ns(CLOCK_MONOTONIC);
	return ha_job_run(job, idle, bench);
}

int ha_bench_verified(struct ha_bench *bench, struct ha_job *job, uint64_t seed, struct ha_tally *tally,
		      uint64_t *elapsed_ns)
{
	struct ha_payload payload = ha_dataset_payload(bench, job, seed);
	int64_t start, cpu;
	uint64_t wrong;
	int err;

	ha_dataset_fill(job, &payload);
	ha_mesh_poison(job->mesh, HA_POISON);
	err = ha_rendezvous_barrier(bench->rendezvous);
	if (err)
		return err;
	start = clock_ns(CLOCK_MONOTONIC);
	cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	err = ha_bench_once(bench, job);
	if (err)
		return err;
	if (elapsed_ns) {
		tally->cpu_ns += (uint64_t)(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu);
		*elapsed_ns = (uint64_t)(clock_ns(CLOCK_MONOTONIC) - start);
	}
	wrong = ha_dataset_verify(job, &payload);
	tally->wrong += wrong;
	tally->verified++;
	bench->wrong += wrong;
	return 0;
}

/* --- measuring --------------------------------------------------------------------------------------------------- */

/* Iterations first..end-1, their times into samples. */
static int run_measured(struct ha_bench *bench, struct ha_job *job, int first, int end, uint64_t seed,
			struct ha_tally *tally, uint64_t *samples)
{
	int64_t start, before, now, cpu;
	int err = ha_rendezvous_barrier(bench->rendezvous);

	bench->phase = "iteration";
	bench->iterations = bench->options->iters;
	for (int i = first; bench->options->check_all && i < end && !err; i++) {
		bench->iteration = i;
		err = ha_bench_verified(bench, job, seed + (uint64_t)i, tally, &samples[i]);
		tally->elapsed_ns += samples[i];
		tally->iterations++;
	}
	if (err || bench->options->check_all)
		return err;
	cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	start = before = clock_ns(CLOCK_MONOTONIC);
	for (int i = first; i < end && !err; i++) {
		bench->iteration = i;
		err = ha_bench_once(bench, job);
		now = clock_ns(CLOCK_MONOTONIC);
		samples[i] = (uint64_t)(now - before);
		before = now;
	}
	tally->elapsed_ns += (uint64_t)(before - start);
	tally->cpu_ns += (uint64_t)(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu);
	tally->iterations += (uint64_t)(end - first);
	return err;
}

static int run_warmup(struct ha_bench *bench, struct ha_job *job)
{
	struct ha_payload payload = ha_dataset_payload(bench, job, bench->options->seed);
	int err = 0;

	ha_dataset_fill(job, &payload);
	bench->phase = "warm-up";
	bench->iterations = bench->options->warmup;
	for (int i = 0; i < bench->options->warmup && !err; i++) {
		bench->iteration = i;
		err = ha_bench_once(bench, job);
	}
	return err;
}

static int run_checks(struct ha_bench *bench, struct ha_job *job, uint64_t seed, struct ha_tally *tally)
{
	int err = 0;

	bench->phase = "verification";
	bench->iterations = bench->options->checks;
	for (int i = 0; i < bench->options->checks && !err; i++) {
		bench->iteration = i;
		err = ha_bench_verified(bench, job, seed + (uint64_t)i, tally, NULL);
	}
	return err;
}

/* --- figures ----------------------------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* The smallest sample that at least the given part of all is not above (nearest rank). */
static double percentile_us(const uint64_t *sorted, size_t n, double part)
{
	size_t at = (size_t)(part * (double)n + 0.999999);

	return n ? (double)sorted[(at < 1 ? 1 : at > n ? n : at) - 1] / 1000 : 0;
}

/* nccl-tests' -a over the ranks' mean time of an iteration. */
static double time_over_ranks(const struct ha_options *options, const struct ha_tally *tallies, int ranks)
{
	double sum = 0, low = 1e300, high = 0;

	for (int i = 0; i < ranks; i++) {
		double t = (double)tallies[i].elapsed_ns / (double)tallies[i].iterations / 1000;

		sum += t;
		low = t < low ? t : low;
		high = t > high ? t : high;
	}
	switch (options->average) {
	case 0:
		return (double)tallies[0].elapsed_ns / (double)tallies[0].iterations / 1000;
	case 2:
		return low;
	case 3:
		return high;
	default:
		return sum / ranks;
	}
}

static void figures_compute(const struct ha_bench *bench, const struct ha_job *job, const struct ha_tally *tallies,
			    uint64_t *samples, size_t bytes, struct ha_figures *f)
{
	const struct ha_options *o = bench->options;
	int ranks = bench->place->ranks;
	size_t n = (size_t)tallies[0].iterations * (size_t)ranks;
	double half = job->operation->half_trip ? 0.5 : 1;
	uint64_t cpu_ns = 0;

	*f = (struct ha_figures){ .valid = true };
	for (int i = 0; i < ranks; i++) {
		f->wrong += tallies[i].wrong;
		f->messages += tallies[i].messages;
		cpu_ns += tallies[i].cpu_ns;
	}
	f->verified = tallies[0].verified;
	f->iterations = tallies[0].iterations;
	if (!n)
		return;
	qsort(samples, n, sizeof(*samples), by_value);
	f->time_us = time_over_ranks(o, tallies, ranks) * half;
	f->p50_us = percentile_us(samples, n, 0.50) * half;
	f->p99_us = percentile_us(samples, n, 0.99) * half;
	f->max_us = percentile_us(samples, n, 1) * half;
	f->algbw = f->time_us > 0 ? (double)bytes / f->time_us / 1000 : 0;
	f->busbw = f->algbw * job->operation->bus_factor(ranks);
	if (f->messages)
		f->cpu_us_per_msg = (double)cpu_ns / 1000 / ((double)f->messages * (double)tallies[0].iterations);
}

/* All ranks' calls of test() as one. Collective. */
static int calls_gather(struct ha_bench *bench, const struct ha_calls *mine, struct ha_figures *f)
{
	struct ha_calls *all = calloc((size_t)bench->place->ranks, sizeof(*all));
	int err = all ? ha_rendezvous_gather(bench->rendezvous, mine, sizeof(*mine), all) : ha_fault(-ENOMEM, "out of memory");

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
			  const struct ha_samples *samples, size_t bytes, struct ha_figures *figures)
{
	size_t ranks = (size_t)bench->place->ranks, n = (size_t)mine->iterations; /* the same in all ranks */
	struct ha_tally *tallies = calloc(ranks, sizeof(*tallies));
	uint64_t *all = calloc(ranks * n + 1, sizeof(*all));
	int err = tallies && all ? 0 : ha_fault(-ENOMEM, "out of memory");

	mine->messages = job->messages;
	if (!err)
		err = ha_rendezvous_gather(bench->rendezvous, mine, sizeof(*mine), tallies);
	if (!err && n)
		err = ha_rendezvous_gather(bench->rendezvous, samples->ns, n * sizeof(*all), all);
	if (!err && !bench->place->rank)
		figures_compute(bench, job, tallies, all, bytes, figures);
	free(tallies);
	free(all);
	return err;
}

/* --- one size ---------------------------------------------------------------------------------------------------- */

static void shape_place(struct ha_bench *bench, struct ha_shape *shape, enum ha_placement placement)
{
	size_t send_at = 0, recv_at = 0;

	if (placement == HA_IN_PLACE)
		bench->options->operation->overlap(shape, &send_at, &recv_at);
	shape->send = bench->buffers[0] + send_at;
	shape->recv = bench->buffers[placement == HA_IN_PLACE ? 0 : 1] + recv_at;
}

/* The number of iterations that was asked for, or the time; two plugins take turns. */
static int run_all_measured(struct ha_bench *bench, struct ha_job *jobs, struct ha_tally *tallies,
			    struct ha_samples *samples, uint64_t seed)
{
	const struct ha_options *o = bench->options;
	int meshes = bench->meshes_count, rounds = meshes > 1 ? ROUNDS : 1, err = 0;

	if (o->duration_ns)
		return ha_duration_run(bench, &jobs[0], &tallies[0], &samples[0]);
	for (int m = 0; m < meshes; m++) {
		samples[m].ns = calloc((size_t)o->iters + 1, sizeof(*samples[m].ns));
		if (!samples[m].ns)
			return ha_fault(-ENOMEM, "out of memory");
	}
	for (int r = 0; r < rounds && !err; r++)
		for (int m = 0; m < meshes && !err; m++)
			err = run_measured(bench, &jobs[m], o->iters * r / rounds, o->iters * (r + 1) / rounds, seed,
					   &tallies[m], samples[m].ns);
	return err;
}

/* The same with the times of test(), when they are asked for. */
static int run_all_timed(struct ha_bench *bench, struct ha_job *jobs, struct ha_tally *tallies, struct ha_samples *samples, uint64_t seed,
			 struct ha_calls *calls)
{
	int err;

	for (int m = 0; calls && m < bench->meshes_count; m++)
		jobs[m].mesh->calls = &calls[m];
	err = run_all_measured(bench, jobs, tallies, samples, seed);
	for (int m = 0; m < bench->meshes_count; m++)
		jobs[m].mesh->calls = NULL;
	return err;
}

static int measure_placement(struct ha_bench *bench, struct ha_job *jobs, size_t bytes, struct ha_figures *figures)
{
	const struct ha_options *o = bench->options;
	struct ha_samples samples[HA_MESHES] = { 0 };
	struct ha_tally tallies[HA_MESHES] = { 0 };
	struct ha_calls *calls = o->time_test ? calloc(HA_MESHES, sizeof(*calls)) : NULL;
	uint64_t seed = (o->seed << 20) + 1;
	int meshes = bench->meshes_count, err = o->time_test && !calls ? ha_fault(-ENOMEM, "out of memory") : 0;

	for (int m = 0; m < meshes && !err; m++)
		err = run_warmup(bench, &jobs[m]);
	if (!err)
		err = run_all_timed(bench, jobs, tallies, samples, seed, calls);
	seed += (uint64_t)o->iters;
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

int ha_bench_run(struct ha_bench *bench, const struct ha_datatype *type, int redop, size_t bytes, struct ha_row *row)
{
	const struct ha_options *o = bench->options;
	struct ha_job jobs[HA_MESHES] = { 0 };
	struct ha_shape shape = {
		.rank = bench->place->rank,
		.ranks = bench->place->ranks,
		.root = o->root,
		.channels = o->channels,
		.type = type,
		.redop = redop < 0 ? HA_SUM : (enum ha_redop)redop,
	};
	int placements = o->operation->in_place && o->in_place ? HA_PLACEMENTS : 1, err = 0;

	*row = (struct ha_row){ .type = type, .redop = redop, .root = o->operation->rooted ? o->root : -1 };
	ha_bench_size(bench, type, bytes, &row->bytes, &row->count);
	shape.block = row->count / (o->operation->splits ? (size_t)shape.ranks : 1);
	bench->bytes = row->bytes;
	for (int p = 0; p < placements && !err; p++) {
		shape_place(bench, &shape, p);
		for (int m = 0; m < bench->meshes_count && !err; m++)
			err = ha_job_prepare(&jobs[m], &bench->meshes[m], o->operation, &shape);
		row->protocol = jobs[0].protocol;
		if (!err)
			err = measure_placement(bench, jobs, row->bytes, row->figures[p]);
		for (int m = 0; m < bench->meshes_count; m++)
			ha_job_release(&jobs[m]);
	}
	return err;
}
