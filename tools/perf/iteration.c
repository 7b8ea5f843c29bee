/* SPDX-License-Identifier: BSD-3-Clause */
/* iteration.c - one run of an operation, with an eye on standstill; and one that is verified */
#include <errno.h>

#include "base/clock.h"
#include "tools/job/fault.h"
#include "tools/job/rendezvous.h"
#include "tools/perf/bench.h"
#include "tools/perf/calls.h"
#include "tools/perf/dataset.h"
#include "tools/perf/options.h"
#include "tools/perf/proxy.h"
#include "tools/perf/stream.h"

#define LOOK_NS 5000000 /* between looks whether another rank failed */

static int check_progress(void *context, const struct ha_job *job, bool moved)
{
	struct ha_bench *bench = context;
	int64_t now = ha_monotonic_ns();
	char waiting[200];
	int err;

	if (moved)
		bench->moved_ns = now;
	if (now - bench->looked_ns < LOOK_NS)
		return 0;
	bench->looked_ns = now;
	if (!bench->place->rank)
		ha_progress_print(&bench->progress, now);
	err = ha_rendezvous_poll(bench->rendezvous);
	if (err ||
	    now - bench->moved_ns < (int64_t)bench->options->run.launch.timeout_s * 1000000000)
		return err;
	ha_proxy_describe(job->mesh, waiting, sizeof(waiting));
	return ha_fault(-ETIMEDOUT, "nothing has moved for %d s: %s (%s of %zu bytes, plugin '%s')",
			bench->options->run.launch.timeout_s, waiting,
			bench->options->operation->name, bench->progress.bytes,
			job->mesh->plugin.name);
}

int ha_bench_once(struct ha_bench *bench, struct ha_job *job)
{
	/* Once here, since a busy machine may make no pass in which nothing moves. */
	int err = check_progress(bench, job, true);

	return err ? err : ha_job_run(job, check_progress, bench);
}

int ha_bench_verified(struct ha_bench *bench, struct ha_job *job, uint64_t seed,
		      struct ha_tally *tally, uint64_t *elapsed_ns)
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
	start = ha_monotonic_ns();
	cpu = ha_process_cpu_ns();
	err = ha_bench_once(bench, job);
	if (err)
		return err;
	if (elapsed_ns) {
		tally->cpu_ns += (uint64_t)(ha_process_cpu_ns() - cpu);
		*elapsed_ns = (uint64_t)(ha_monotonic_ns() - start);
	}
	wrong = ha_dataset_verify(job, &payload);
	tally->wrong += wrong;
	tally->verified++;
	bench->wrong += wrong;
	return 0;
}
