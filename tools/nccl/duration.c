/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tools/job/fault.h"
#include "tools/job/pace.h"
#include "tools/job/rendezvous.h"
#include "tools/nccl/bench.h"
#include "tools/nccl/check.h"
#include "tools/nccl/duration.h"
#include "tools/nccl/library.h"
#include "tools/nccl/options.h"
#include "tools/nccl/run.h"
#include "tools/nccl/watch.h"

/* A prime number: what an earlier iteration left in NCCL's own buffers, whose slots come round in
 * powers of two, is never what is expected there. */
#define SETS_MOST 7
#define SETS_LARGE 3 /* where one set is larger than LARGE */
#define LARGE (16u << 20)

/* What the iterations share. */
struct duration {
	const struct nccl_run *run;
	struct ha_tally *tally;
	struct ha_samples *samples;
	struct ha_timeline timeline;
	uint64_t seed;
	int sets;
	struct nccl_buffers *send; /* [set]: what its verified iteration sent */
	/* [set * GPUs + GPU] of result_bytes each: what came out of the verified iteration */
	char *results;
	size_t send_bytes, result_bytes;
};

static char *result_of(const struct duration *d, int set, int gpu)
{
	return d->results +
	       ((size_t)set * (size_t)d->run->bench->gpus.count + (size_t)gpu) * d->result_bytes;
}

/* ---- the sets ---- */

static int results_fetch(const struct duration *d, const struct nccl_gpu *gpu, void *to)
{
	const struct nccl_bench *b = d->run->bench;
	struct nccl_call call = nccl_run_call(d->run, gpu);

	(void)b->library->cuda.set_device(gpu->device);
	return nccl_cuda_check(b->library, gpu,
			       b->library->cuda.memcpy(to, call.recv, d->result_bytes,
						       CUDA_TO_HOST),
			       "cudaMemcpy");
}

/* A GPU's part of a set, out of its buffers, in which a verified iteration has just taken place. */
static int set_keep(struct duration *d, int set, int i)
{
	const struct nccl_bench *b = d->run->bench;
	const struct nccl_gpu *gpu = &b->gpus.each[i];
	char *send = d->send[set].each[i].device;
	struct ha_payload payload = nccl_run_payload(d->run, d->seed + (uint64_t)set);
	int err = results_fetch(d, gpu, result_of(d, set, i));

	ha_payload_fill(&payload, gpu->rank, 0, d->send_bytes / d->run->type->size, b->host);
	if (!err)
		err = nccl_cuda_check(b->library, gpu,
				      b->library->cuda.memcpy(send, b->host, d->send_bytes,
							      CUDA_TO_DEVICE),
				      "cudaMemcpy");
	return err;
}

static int sets_prepare(struct duration *d)
{
	struct nccl_bench *b = d->run->bench;
	size_t parts;
	int err = 0;

	d->send_bytes = nccl_run_send_bytes(d->run);
	d->result_bytes = nccl_run_recv_bytes(d->run);
	d->sets = d->send_bytes + d->result_bytes > LARGE ? SETS_LARGE : SETS_MOST;
	parts = (size_t)d->sets * (size_t)b->gpus.count;
	d->send = calloc((size_t)d->sets, sizeof(*d->send));
	d->results = malloc(parts * d->result_bytes + 1);
	if (!d->send || !d->results)
		return ha_fault(-ENOMEM, "no memory for %d sets of data in each process", d->sets);
	b->progress.phase = "data set";
	b->progress.iterations = d->sets;
	for (int k = 0; k < d->sets && !err; k++) {
		b->progress.iteration = k;
		err = nccl_buffers_open(&b->gpus, d->send_bytes, &d->send[k]);
		if (!err)
			err = nccl_run_verified(d->run, d->seed + (uint64_t)k, d->tally, NULL);
		for (int i = 0; i < b->gpus.count && !err; i++)
			err = set_keep(d, k, i);
	}
	return err;
}

static int sets_release(struct duration *d)
{
	int err = 0;

	for (int k = 0; k < d->sets && !err; k++)
		err = nccl_buffers_close(&d->run->bench->gpus, &d->send[k]);
	free(d->send);
	free(d->results);
	return err;
}

/* ---- iterations ---- */

static int result_check(struct duration *d, int set, int i, uint64_t *wrong)
{
	const struct nccl_bench *b = d->run->bench;
	const char *expected = result_of(d, set, i);
	size_t size = d->run->type->size;
	int err = results_fetch(d, &b->gpus.each[i], b->host);

	if (err || !memcmp(b->host, expected, d->result_bytes))
		return err;
	for (size_t at = 0; at < d->result_bytes; at += size)
		*wrong += memcmp(b->host + at, expected + at, size) != 0;
	return 0;
}

static int results_check(struct duration *d, int set)
{
	struct nccl_bench *b = d->run->bench;
	uint64_t wrong = 0;
	int err = 0;

	for (int i = 0; i < b->gpus.count && !err; i++)
		err = result_check(d, set, i, &wrong);
	d->tally->verified++;
	d->tally->wrong += wrong;
	b->wrong += wrong;
	return err;
}

static int iterate(void *context)
{
	struct duration *d = context;
	struct nccl_bench *b = d->run->bench;
	uint64_t every = (uint64_t)b->options->run.check_every;
	int set = (int)(d->tally->iterations % (uint64_t)d->sets), err, left;
	int64_t cpu = ha_process_cpu_ns(), start = ha_monotonic_ns(), elapsed;

	b->progress.iteration = (int)d->tally->iterations;
	ha_watch_enter(b->watch, b->options->operation->function);
	err = nccl_run_start(d->run, &d->send[set]);
	if (!err)
		err = nccl_gpus_synchronize(&b->gpus);
	left = ha_watch_leave(b->watch);
	err = err ? err : left;
	if (err)
		return err;
	elapsed = ha_monotonic_ns() - start;
	if (b->options->run.timeline) /* a word for each millisecond */
		ha_timeline_progress(&d->timeline, d->result_bytes * (size_t)b->gpus.count);
	d->tally->elapsed_ns += (uint64_t)elapsed;
	d->tally->cpu_ns += (uint64_t)(ha_process_cpu_ns() - cpu);
	if (every && d->tally->iterations % every == 0)
		err = results_check(d, set);
	d->tally->iterations++;
	return err ? err : ha_samples_add(d->samples, (uint64_t)elapsed);
}

int nccl_duration_run(const struct nccl_run *run, struct ha_tally *tally,
		      struct ha_samples *samples)
{
	struct nccl_bench *b = run->bench;
	const struct ha_run_options *o = &b->options->run;
	struct duration d = {
		.run = run, .tally = tally, .samples = samples, .seed = (o->seed << 20) + 1
	};
	struct ha_pace pace = {
		.rendezvous = b->rendezvous,
		.place = b->place,
		.duration_ns = o->duration_ns,
		.compute_ns = o->compute_ns,
		.timeline = &d.timeline,
		.iterate = iterate,
		.context = &d,
	};
	int err = sets_prepare(&d);

	if (!err)
		err = ha_timeline_open(&d.timeline, o->step_ns, o->duration_ns);
	b->progress.phase = "iteration";
	b->progress.iterations = 0;
	if (!err)
		err = ha_pace_run(&pace);
	b->iterations_timed = tally->iterations;
	if (!err && o->timeline)
		err = ha_timelines_gather(&b->timelines, &d.timeline, b->rendezvous, b->place->rank,
					  b->place->ranks);
	ha_timeline_close(&d.timeline);
	if (!err)
		err = sets_release(&d);
	return err;
}
