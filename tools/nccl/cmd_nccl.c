/* SPDX-License-Identifier: BSD-3-Clause */
/* `ha nccl`: what one process does, from the rendezvous to the exit status. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/ha.h"
#include "tools/job/failure.h"
#include "tools/job/fault.h"
#include "tools/job/launch.h"
#include "tools/job/output.h"
#include "tools/job/rendezvous.h"
#include "tools/job/sweep.h"
#include "tools/job/table.h"
#include "tools/nccl/bench.h"
#include "tools/nccl/environment.h"
#include "tools/nccl/library.h"
#include "tools/nccl/operation.h"
#include "tools/nccl/options.h"
#include "tools/nccl/report.h"
#include "tools/nccl/watch.h"

/* What the parent knows before it forks. */
struct job {
	struct nccl_options options;
	struct ha_probe probe;
	struct nccl_environment environment;
};

static int who_gather(struct nccl_report *report, struct nccl_bench *bench)
{
	struct nccl_who mine;

	report->who = calloc((size_t)bench->place->ranks, sizeof(*report->who));
	if (!report->who)
		return ha_fault(-ENOMEM, "out of memory");
	nccl_who_take(&mine, bench);
	return ha_rendezvous_gather(bench->rendezvous, &mine, sizeof(mine), report->who);
}

static int all_run(struct nccl_bench *b, struct nccl_report *report)
{
	struct ha_sweep s = { .run = &b->options->run,
			      .layout = b->options->operation->layout,
			      .ranks = b->gpus.ranks };
	struct ha_row row;
	int err = 0;

	while (!err && ha_sweep_next(&s)) {
		err = nccl_bench_run(b, s.type, s.redop, s.bytes, &row);
		if (err || b->place->rank)
			continue;
		err = nccl_report_add(report, &row);
		ha_progress_quiet(&b->progress);
		if (!err && ha_run_has_table(s.run))
			nccl_report_row(report, report->rows.count - 1);
	}
	return err;
}

static void networks_add(void *context, void *object)
{
	json_object_set_new(object, "networks", nccl_report_networks(context));
}

static int timeline_write(struct nccl_bench *b, struct nccl_report *report)
{
	struct ha_timeline_file file = {
		.run = &b->options->run,
		.place = b->place,
		.operation = b->options->operation->name,
		.bytes = report->rows.rows[0].bytes,
		.iterations = b->iterations_timed,
		.wrong = ha_rows_wrong(&report->rows),
		.more = networks_add,
		.context = report,
	};

	return ha_timelines_write(&b->timelines, &file);
}

/* What rank 0 writes after the last row. */
static int results_write(struct nccl_bench *b, struct nccl_report *report)
{
	const struct ha_run_options *run = &b->options->run;
	int err = 0;

	if (b->place->rank)
		return 0;
	if (ha_run_has_table(run))
		ha_table_footer(run, &report->rows, b->gpus.sides);
	if (run->json)
		err = nccl_report_json(report);
	if (!err && run->timeline)
		err = timeline_write(b, report);
	return err;
}

/*
 * Everything between rendezvous and exit; *wrong gets the number of wrong elements in all
 * processes.
 */
static int rank_work(struct nccl_bench *b, struct nccl_report *report, uint64_t *wrong)
{
	const struct ha_run_options *run = &b->options->run;
	uint64_t *wrongs = calloc((size_t)b->place->ranks, sizeof(*wrongs));
	int err = wrongs ? nccl_bench_open(b) : ha_fault(-ENOMEM, "out of memory");

	if (!err)
		err = who_gather(report, b);
	if (!err && !b->place->rank && ha_run_has_table(run))
		nccl_report_header(report);
	if (!err)
		err = all_run(b, report);
	if (!err)
		err = results_write(b, report);
	/* nobody ends a communicator that a peer may still be using */
	if (!err)
		err = ha_rendezvous_allgather(b->rendezvous, &b->wrong, sizeof(*wrongs), wrongs);
	if (!err)
		err = nccl_gpus_close(&b->gpus);
	/* a rank that fails to close is a failure of the run: wait for everybody's success */
	if (!err)
		err = ha_rendezvous_barrier(b->rendezvous);
	for (int i = 0; i < b->place->ranks && !err; i++)
		*wrong += wrongs[i];
	nccl_report_release(report);
	free(wrongs);
	return err;
}

/* Ends the process: NCCL and its threads may be in any state. */
static void rank_fail(void *context)
{
	struct nccl_bench *b = context;
	enum ha_exit status;

	ha_progress_quiet(&b->progress);
	status = ha_failure_report(b->rendezvous, b->place, b->options->run.launch.program);
	fflush(NULL);
	_exit(b->place->forked ? (int)status : HA_EXIT_WRONG);
}

static int rank_open(struct nccl_bench *b, const struct job *job,
		     struct nccl_environment *environment, struct ha_library *library)
{
	const struct ha_launch_options *launch = &job->options.run.launch;
	int err = ha_rendezvous_open(&b->rendezvous, b->place, launch->timeout_s);

	if (!err && !b->place->rank)
		err = ha_outputs_check(&job->options.run);
	if (!err)
		err = nccl_environment_rank(environment, &job->options, &job->probe, b->place);
	if (!err)
		err = ha_library_open(library, job->probe.nccl_path);
	if (err)
		return err;
	b->watch = ha_watch_open(b->rendezvous, &b->progress, b->place->rank, launch->timeout_s);
	if (!b->watch)
		return -ENOMEM;
	ha_watch_leaver(b->watch, rank_fail, b);
	return 0;
}

static enum ha_exit rank_body(const void *context, const struct ha_place *place)
{
	const struct job *job = context;
	struct nccl_environment environment = job->environment;
	struct ha_library library;
	struct nccl_bench bench = {
		.options = &job->options,
		.place = place,
		.library = &library,
		.progress = { .program = job->options.run.launch.program,
			      .operation = job->options.operation->name,
			      .phase = "start",
			      .every_ns = job->options.run.progress_ns },
	};
	struct nccl_report report = { .bench = &bench,
				      .environment = &environment,
				      .probe = &job->probe };
	uint64_t wrong = 0;
	int err = rank_open(&bench, job, &environment, &library);

	if (!err)
		err = rank_work(&bench, &report, &wrong);
	if (err)
		rank_fail(&bench);
	ha_watch_close(bench.watch);
	if (bench.host)
		munmap(bench.host, bench.gpus.buffers[0].bytes);
	ha_timelines_release(&bench.timelines);
	ha_rendezvous_close(bench.rendezvous);
	return wrong ? HA_EXIT_WRONG : HA_EXIT_OK;
}

/* NCCL_NET overrides what a communicator asks for. 0 or -EINVAL with the fault recorded. */
static int net_choose(struct job *job)
{
	struct nccl_options *o = &job->options;
	const char *set = getenv("NCCL_NET");

	if (set && o->net && (o->versus || nccl_net_find_by_nccl(set) != o->net))
		return ha_fault(-EINVAL,
				"NCCL_NET=%s is set and overrides --net and --vs: unset it", set);
	if (set || o->net || !job->probe.soft) {
		if (set && !o->net)
			o->net = nccl_net_find_by_nccl(set);
		return 0;
	}
	o->net = nccl_net_find("hawser");
	return 0;
}

/* Which libraries, and in which environment. 0 or a negative errno with the fault recorded. */
static int job_prepare(struct job *job, char **argv)
{
	int err = ha_library_probe(&job->probe, job->options.nccl);

	if (err)
		return err;
	err = net_choose(job);
	if (err)
		return err;
	return nccl_environment_prepare(&job->environment, &job->options, &job->probe, argv);
}

int ha_cmd_nccl(int argc, char **argv)
{
	struct job *job = calloc(1, sizeof(*job));
	int result;

	if (!job)
		return HA_EXIT_WRONG;
	result = nccl_options_parse(&job->options, argc, argv);
	if (result) {
		free(job);
		return result - 1;
	}
	result = job_prepare(job, argv);
	if (result) {
		fprintf(stderr, "%s: %s\n", job->options.run.launch.program, ha_fault_text());
		free(job);
		return result == -EINVAL ? HA_EXIT_USAGE : HA_EXIT_WRONG;
	}
	result = ha_launch(&job->options.run.launch, rank_body, job);
	nccl_environment_release(&job->environment, result != HA_EXIT_OK);
	free(job);
	return result;
}
