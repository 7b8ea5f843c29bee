/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/perf/bench.h"
#include "tools/perf/cues.h"
#include "tools/perf/dataset.h"
#include "tools/perf/duration.h"
#include "tools/perf/fault.h"
#include "tools/perf/interrupt.h"
#include "tools/perf/options.h"
#include "tools/perf/rendezvous.h"
#include "tools/perf/stream.h"

#define BATCH_NS 50000000 /* between two words of rank 0 */

static int64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* One verified iteration for each set, whose result is what is expected from now on. */
static int sets_prepare(struct ha_bench *bench, struct ha_job *job, struct ha_datasets *sets, uint64_t seed,
			struct ha_tally *tally)
{
	int err = ha_datasets_open(sets, job);

	bench->phase = "data set";
	bench->iterations = sets->count;
	for (int k = 0; k < sets->count && !err; k++) {
		bench->iteration = k;
		job->shape.send = ha_datasets_send(sets, k);
		err = ha_bench_verified(bench, job, seed + (uint64_t)k, tally, NULL);
		memcpy(ha_datasets_result(sets, k), job->shape.recv, sets->recv_bytes);
	}
	return err;
}

static int sample_add(struct ha_samples *samples, uint64_t ns)
{
	if (samples->count == samples->room) {
		samples->room = samples->room * 2 + 1024;
		samples->ns = realloc(samples->ns, samples->room * sizeof(*samples->ns));
		if (!samples->ns) {
			samples->room = samples->count = 0;
			return ha_fault(-ENOMEM, "out of memory");
		}
	}
	samples->ns[samples->count++] = ns;
	return 0;
}

static void result_check(struct ha_bench *bench, const struct ha_job *job, const struct ha_datasets *sets, int k,
			 uint64_t seed, struct ha_tally *tally)
{
	struct ha_payload payload = ha_dataset_payload(bench, job, seed + (uint64_t)k);
	uint64_t wrong;

	tally->verified++;
	if (!memcmp(job->shape.recv, ha_datasets_result(sets, k), sets->recv_bytes))
		return;
	wrong = ha_dataset_verify(job, &payload);
	tally->wrong += wrong;
	bench->wrong += wrong;
}

static int iteration_run(struct ha_bench *bench, struct ha_job *job, const struct ha_datasets *sets, uint64_t seed,
			 struct ha_tally *tally, struct ha_samples *samples)
{
	int64_t start = clock_ns(CLOCK_MONOTONIC), cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID), elapsed;
	int every = bench->options->check_every, k = (int)(tally->iterations % (uint64_t)sets->count), err;

	job->shape.send = ha_datasets_send(sets, k);
	err = ha_bench_once(bench, job);
	if (err)
		return err;
	elapsed = clock_ns(CLOCK_MONOTONIC) - start;
	tally->elapsed_ns += (uint64_t)elapsed;
	tally->cpu_ns += (uint64_t)(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu);
	if (every && tally->iterations % (uint64_t)every == 0)
		result_check(bench, job, sets, k, seed, tally);
	tally->iterations++;
	return sample_add(samples, (uint64_t)elapsed);
}

/* How many iterations come next, as rank 0 sees it: enough for a batch, not beyond the end. */
static int64_t batch_next(const struct ha_bench *bench, int64_t zero, int64_t done, int64_t took)
{
	int64_t left = bench->options->duration_ns - (clock_ns(CLOCK_MONOTONIC) - zero), n;

	if (left <= 0 || ha_interrupted())
		return 0;
	if (!done || took <= 0)
		return 1;
	n = (left < BATCH_NS ? left : BATCH_NS) / (took / done + 1);
	return n > 1 ? n : 1;
}

/* Rank 0's number, in all ranks. */
static int agree(struct ha_bench *bench, int64_t *value)
{
	int64_t *all = calloc((size_t)bench->place->ranks, sizeof(*all));
	int err = all ? ha_rendezvous_allgather(bench->rendezvous, value, sizeof(*value), all) : -ENOMEM;

	if (!err)
		*value = all[0];
	free(all);
	return err;
}

/* The start: at the same moment in all ranks where they have the same clock. */
static int measurement_start(struct ha_bench *bench, struct ha_timeline *timeline, int64_t *zero)
{
	int err = ha_rendezvous_barrier(bench->rendezvous);

	*zero = clock_ns(CLOCK_MONOTONIC);
	if (!err)
		err = agree(bench, zero);
	if (!bench->place->forked)
		*zero = clock_ns(CLOCK_MONOTONIC);
	ha_interrupt_take(bench->place);
	if (!bench->place->rank)
		ha_cues_start(bench->place->cues, *zero);
	ha_timeline_start(timeline, *zero);
	return err;
}

static int batches_run(struct ha_bench *bench, struct ha_job *job, const struct ha_datasets *sets, uint64_t seed,
		       struct ha_tally *tally, struct ha_samples *samples, struct ha_timeline *timeline)
{
	int64_t zero, start, n = 0, took = 0;
	int err = measurement_start(bench, timeline, &zero);

	bench->phase = "iteration";
	bench->iterations = 0;
	while (!err) {
		n = batch_next(bench, zero, n, took);
		err = agree(bench, &n);
		if (err || !n)
			break;
		start = clock_ns(CLOCK_MONOTONIC);
		for (int64_t i = 0; i < n && !err; i++) {
			bench->iteration = (int)tally->iterations;
			err = iteration_run(bench, job, sets, seed, tally, samples);
		}
		took = clock_ns(CLOCK_MONOTONIC) - start;
	}
	ha_timeline_stop(timeline);
	return err;
}

int ha_duration_run(struct ha_bench *bench, struct ha_job *job, struct ha_tally *tally, struct ha_samples *samples)
{
	const struct ha_options *o = bench->options;
	const char *send = job->shape.send;
	struct ha_timeline timeline = { 0 };
	struct ha_datasets sets = { 0 };
	uint64_t seed = (o->seed << 20) + 1;
	int err = sets_prepare(bench, job, &sets, seed, tally);

	if (!err)
		err = ha_timeline_open(&timeline, o->step_ns, o->duration_ns);
	job->mesh->timeline = o->timeline ? &timeline : NULL;
	if (!err)
		err = batches_run(bench, job, &sets, seed, tally, samples, &timeline);
	job->mesh->timeline = NULL;
	bench->iterations_timed = tally->iterations;
	if (!err && o->timeline)
		err = ha_timelines_gather(&bench->timelines, &timeline, bench->rendezvous, bench->place->rank,
					  bench->place->ranks);
	job->shape.send = send;
	ha_timeline_close(&timeline);
	ha_datasets_close(&sets);
	return err;
}
