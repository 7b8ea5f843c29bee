/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tools/job/fault.h"
#include "tools/job/pace.h"
#include "tools/job/rendezvous.h"
#include "tools/job/timeline.h"
#include "tools/perf/bench.h"
#include "tools/perf/dataset.h"
#include "tools/perf/duration.h"
#include "tools/perf/options.h"
#include "tools/perf/stream.h"

/* One verified iteration for each set, whose result is what is expected from now on. */
static int sets_prepare(struct ha_bench *bench, struct ha_job *job, struct ha_datasets *sets,
			uint64_t seed, struct ha_tally *tally)
{
	int err = ha_datasets_open(sets, job);

	bench->progress.phase = "data set";
	bench->progress.iterations = sets->count;
	for (int k = 0; k < sets->count && !err; k++) {
		bench->progress.iteration = k;
		job->shape.send = ha_datasets_send(sets, k);
		err = ha_bench_verified(bench, job, seed + (uint64_t)k, tally, NULL);
		memcpy(ha_datasets_result(sets, k), job->shape.recv, sets->recv_bytes);
	}
	return err;
}

static void result_check(struct ha_bench *bench, const struct ha_job *job,
			 const struct ha_datasets *sets, int k, uint64_t seed,
			 struct ha_tally *tally)
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

/* What the iterations share. */
struct duration {
	struct ha_bench *bench;
	struct ha_job *job;
	const struct ha_datasets *sets;
	uint64_t seed;
	struct ha_tally *tally;
	struct ha_samples *samples;
};

static int iteration_run(void *context)
{
	struct duration *d = context;
	struct ha_tally *tally = d->tally;
	int64_t start = ha_monotonic_ns(), cpu = ha_process_cpu_ns(), elapsed;
	int k = (int)(tally->iterations % (uint64_t)d->sets->count), err;
	uint64_t every = (uint64_t)d->bench->options->run.check_every;

	d->bench->progress.iteration = (int)tally->iterations;
	d->job->shape.send = ha_datasets_send(d->sets, k);
	err = ha_bench_once(d->bench, d->job);
	if (err)
		return err;
	elapsed = ha_monotonic_ns() - start;
	tally->elapsed_ns += (uint64_t)elapsed;
	tally->cpu_ns += (uint64_t)(ha_process_cpu_ns() - cpu);
	if (every && tally->iterations % every == 0)
		result_check(d->bench, d->job, d->sets, k, d->seed, tally);
	tally->iterations++;
	return ha_samples_add(d->samples, (uint64_t)elapsed);
}

static int iterations_run(struct duration *d, struct ha_timeline *timeline)
{
	struct ha_pace pace = {
		.rendezvous = d->bench->rendezvous,
		.place = d->bench->place,
		.duration_ns = d->bench->options->run.duration_ns,
		.compute_ns = d->bench->options->run.compute_ns,
		.timeline = timeline,
		.iterate = iteration_run,
		.context = d,
	};

	d->bench->progress.phase = "iteration";
	d->bench->progress.iterations = 0;
	return ha_pace_run(&pace);
}

int ha_duration_run(struct ha_bench *bench, struct ha_job *job, struct ha_tally *tally,
		    struct ha_samples *samples)
{
	const struct ha_run_options *run = &bench->options->run;
	const char *send = job->shape.send;
	struct ha_timeline timeline = { 0 };
	struct ha_datasets sets = { 0 };
	struct duration d = { bench, job, &sets, (run->seed << 20) + 1, tally, samples };
	int err = sets_prepare(bench, job, &sets, d.seed, tally);

	if (!err)
		err = ha_timeline_open(&timeline, run->step_ns, run->duration_ns);
	job->mesh->timeline = run->timeline ? &timeline : NULL;
	if (!err)
		err = iterations_run(&d, &timeline);
	job->mesh->timeline = NULL;
	bench->iterations_timed = tally->iterations;
	if (!err && run->timeline)
		err = ha_timelines_gather(&bench->timelines, &timeline, bench->rendezvous,
					  bench->place->rank, bench->place->ranks);
	job->shape.send = send;
	ha_timeline_close(&timeline);
	ha_datasets_close(&sets);
	return err;
}
