/* SPDX-License-Identifier: BSD-3-Clause */
/* `ha perf`: what one rank does, from the rendezvous to the exit status. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
#include "tools/perf/bench.h"
#include "tools/perf/collnet.h"
#include "tools/perf/logger.h"
#include "tools/perf/onesided.h"
#include "tools/perf/options.h"
#include "tools/perf/report.h"

static int bench_open(struct ha_bench *bench)
{
	const struct perf_options *o = bench->options;
	size_t largest = 0, bytes;
	int err = 0;

	if (bench->place->ranks < 2)
		return ha_fault(-EINVAL, "one rank alone has no peer");
	if (o->operation->layout->rooted && o->run.root >= bench->place->ranks)
		return ha_fault(-EINVAL, "--root %d is not one of the %d ranks", o->run.root,
				bench->place->ranks);
	if (o->input)
		err = ha_input_open(&bench->input, o->input);
	for (int t = 0; t < o->run.types_count; t++) {
		bytes = ha_layout_count(o->operation->layout, bench->place->ranks, o->run.max_bytes,
					o->run.types[t]->size) *
			o->run.types[t]->size;
		largest = bytes > largest ? bytes : largest;
	}
	if (!err)
		err = ha_bench_allocate(bench, largest);
	if (!err)
		err = ha_mesh_open(&bench->meshes[0], o, bench->place, bench->rendezvous, o->plugin,
				   o->net_version);
	bench->meshes_count = 1;
	if (!err && o->versus) {
		err = ha_mesh_open(&bench->meshes[1], o, bench->place, bench->rendezvous, o->versus,
				   o->versus_version);
		bench->meshes_count = 2;
	}
	return err;
}

static int ranks_gather(struct ha_bench *bench, struct ha_rank_info *ranks)
{
	const struct ha_mesh *mesh = &bench->meshes[0];
	struct ha_rank_info mine = { .pid = getpid(), .speed = mesh->props.speed };

	if (mesh->senders_count)
		mine.dev = mesh->senders[0].dev;
	else if (mesh->receivers_count)
		mine.dev = mesh->receivers[0].dev;
	snprintf(mine.device, sizeof(mine.device), "%s", mesh->props.name);
	if (gethostname(mine.host, sizeof(mine.host) - 1))
		strcpy(mine.host, "?");
	return ha_rendezvous_gather(bench->rendezvous, &mine, sizeof(mine), ranks);
}

static int all_run(struct ha_bench *bench, struct ha_rows *rows)
{
	struct ha_sweep s = { .run = &bench->options->run,
			      .layout = bench->options->operation->layout,
			      .ranks = bench->place->ranks };
	struct ha_row row;
	int err = 0;

	while (!err && ha_sweep_next(&s)) {
		err = ha_bench_run(bench, s.type, s.redop, s.bytes, &row);
		if (err || bench->place->rank)
			continue;
		err = ha_rows_add(rows, &row);
		ha_progress_quiet(&bench->progress);
		if (!err && ha_run_has_table(s.run))
			ha_report_row(bench, &row);
	}
	return err;
}

static int timeline_write(const struct ha_bench *bench, const struct ha_rows *rows)
{
	struct ha_timeline_file file = {
		.run = &bench->options->run,
		.place = bench->place,
		.operation = bench->options->operation->name,
		.bytes = rows->rows[0].bytes,
		.iterations = bench->iterations_timed,
		.wrong = ha_rows_wrong(rows),
	};

	return ha_timelines_write(&bench->timelines, &file);
}

/* What --json and --timeline ask for; in rank 0. */
static int reports_write(struct ha_bench *bench, struct ha_rank_info *ranks, struct ha_rows *rows)
{
	const struct ha_run_options *run = &bench->options->run;
	int err = 0;

	if (run->json)
		err = ha_report_json(bench, ranks, rows);
	if (!err && run->timeline)
		err = timeline_write(bench, rows);
	return err;
}

/* All sizes, between the table's header and its footer. */
static int sizes_report(struct ha_bench *bench, struct ha_rank_info *ranks, struct ha_rows *rows)
{
	const struct ha_run_options *run = &bench->options->run;
	bool first = !bench->place->rank;
	bool table = first && ha_run_has_table(run);
	int err;

	if (table)
		ha_report_header(bench, ranks);
	err = all_run(bench, rows);
	if (!err && table)
		ha_table_footer(run, rows, bench->meshes_count);
	if (!err && first)
		err = reports_write(bench, ranks, rows);
	return err;
}

/* Nobody closes a connection that a peer may still be using; wrongs[] gets each rank's count. */
static int ranks_part(struct ha_bench *bench, uint64_t *wrongs)
{
	int err =
		ha_rendezvous_allgather(bench->rendezvous, &bench->wrong, sizeof(*wrongs), wrongs);

	for (int m = 0; m < bench->meshes_count && !err; m++)
		err = ha_mesh_close(&bench->meshes[m]);
	/* a rank that fails to close is a failure of the run: wait for everybody's success */
	return err ? err : ha_rendezvous_barrier(bench->rendezvous);
}

/* Everything between rendezvous and exit; *wrong gets the number of wrong elements in all ranks. */
static int rank_work(struct ha_bench *bench, uint64_t *wrong)
{
	struct ha_rank_info *ranks = calloc((size_t)bench->place->ranks, sizeof(*ranks));
	uint64_t *wrongs = calloc((size_t)bench->place->ranks, sizeof(*wrongs));
	struct ha_rows rows = { 0 };
	int err = ranks && wrongs ? 0 : -ENOMEM;

	if (!err && !bench->place->rank)
		err = ha_outputs_check(&bench->options->run);
	if (!err)
		err = bench_open(bench);
	if (!err)
		err = ranks_gather(bench, ranks);
	if (!err)
		err = sizes_report(bench, ranks, &rows);
	if (!err)
		err = ranks_part(bench, wrongs);
	for (int i = 0; i < bench->place->ranks && !err; i++)
		*wrong += wrongs[i];
	free(rows.rows);
	free(ranks);
	free(wrongs);
	return err;
}

static enum ha_exit rank_body(const void *context, const struct ha_place *place)
{
	const struct perf_options *options = context;
	const char *program = options->run.launch.program;
	struct ha_bench bench = {
		.options = options,
		.place = place,
		.progress = { .program = program,
			      .operation = options->operation->name,
			      .every_ns = options->run.progress_ns },
	};
	enum ha_exit status;
	uint64_t wrong = 0;
	int err;

	ha_logger_open(place->rank);
	err = ha_rendezvous_open(&bench.rendezvous, place, options->run.launch.timeout_s);
	if (!err)
		err = rank_work(&bench, &wrong);
	ha_progress_quiet(&bench.progress);
	status = wrong ? HA_EXIT_WRONG : HA_EXIT_OK;
	/*
	 * after a failure the plugin may be in any state: it is not touched again, nor are its
	 * threads waited for
	 */
	if (err) {
		status = ha_failure_report(bench.rendezvous, place, program);
		fflush(NULL);
		_exit(place->forked ? status : HA_EXIT_WRONG);
	}
	for (int i = 0; i < 2; i++)
		if (bench.buffers[i])
			munmap(bench.buffers[i], bench.buffer_bytes);
	ha_input_close(&bench.input);
	ha_timelines_release(&bench.timelines);
	ha_rendezvous_close(bench.rendezvous);
	return status;
}

int ha_cmd_perf(int argc, char **argv)
{
	struct perf_options options;
	int result = perf_options_parse(&options, argc, argv);
	ha_rank_body body = rank_body;

	if (result)
		return result - 1;
	if (options.operation->collnet)
		body = ha_collnet_rank;
	else if (options.operation->one_sided)
		body = ha_onesided_rank;
	return ha_launch(&options.run.launch, body, &options);
}
