/* SPDX-License-Identifier: BSD-3-Clause */
/* `ha perf`: what one rank does, from the rendezvous to the exit status. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/ha.h"
#include "tools/perf/bench.h"
#include "tools/perf/collnet.h"
#include "tools/perf/fault.h"
#include "tools/perf/launch.h"
#include "tools/perf/logger.h"
#include "tools/perf/options.h"
#include "tools/perf/rendezvous.h"
#include "tools/perf/report.h"

#define LINGER_MS 500 /* for the news of another rank's end, before and after blaming oneself */

struct rows {
	struct ha_row *rows;
	size_t count, room;
};

static int bench_open(struct ha_bench *bench)
{
	const struct ha_options *o = bench->options;
	size_t largest = 0, bytes, count;
	int err = 0;

	if (bench->place->ranks < 2)
		return ha_fault(-EINVAL, "one rank alone has nobody to talk to");
	if (o->operation->rooted && o->root >= bench->place->ranks)
		return ha_fault(-EINVAL, "--root %d is not one of the %d ranks", o->root, bench->place->ranks);
	if (o->input)
		err = ha_input_open(&bench->input, o->input);
	for (int t = 0; t < o->types_count; t++) {
		ha_bench_size(bench, o->types[t], o->max_bytes, &bytes, &count);
		largest = bytes > largest ? bytes : largest;
	}
	if (!err)
		err = ha_bench_allocate(bench, largest);
	if (!err)
		err = ha_mesh_open(&bench->meshes[0], o, bench->place, bench->rendezvous, o->plugin, o->net_version);
	bench->meshes_count = 1;
	if (!err && o->versus) {
		err = ha_mesh_open(&bench->meshes[1], o, bench->place, bench->rendezvous, o->versus, o->versus_version);
		bench->meshes_count = 2;
	}
	return err;
}

static int ranks_gather(struct ha_bench *bench, struct ha_rank_info *ranks)
{
	const struct ha_mesh *mesh = &bench->meshes[0];
	struct ha_rank_info mine = { .pid = getpid(), .speed = mesh->props.speed };

	mine.dev = mesh->senders_count ? mesh->senders[0].dev : mesh->receivers_count ? mesh->receivers[0].dev : 0;
	snprintf(mine.device, sizeof(mine.device), "%s", mesh->props.name);
	if (gethostname(mine.host, sizeof(mine.host) - 1))
		strcpy(mine.host, "?");
	return ha_rendezvous_gather(bench->rendezvous, &mine, sizeof(mine), ranks);
}

static size_t size_next(const struct ha_options *o, size_t bytes)
{
	size_t next = o->step_bytes ? bytes + o->step_bytes : (size_t)((double)bytes * o->step_factor);

	return next > bytes ? next : bytes + 1;
}

/* All sizes of one type and reduction; sizes that come down to the same number of elements are run once. */
static int sizes_run(struct ha_bench *bench, const struct ha_datatype *type, int redop, struct rows *rows)
{
	const struct ha_options *o = bench->options;
	size_t last = (size_t)-1, actual, count;
	struct ha_row row;
	int err = 0;

	for (size_t bytes = o->min_bytes; bytes <= o->max_bytes && !err; bytes = size_next(o, bytes)) {
		ha_bench_size(bench, type, bytes, &actual, &count);
		if (count == last)
			continue;
		last = count;
		err = ha_bench_run(bench, type, redop, bytes, &row);
		if (err || bench->place->rank)
			continue;
		if (rows->count == rows->room) {
			rows->room = rows->room * 2 + 32;
			rows->rows = realloc(rows->rows, rows->room * sizeof(*rows->rows));
			if (!rows->rows)
				return ha_fault(-ENOMEM, "out of memory");
		}
		rows->rows[rows->count++] = row;
		ha_bench_quiet(bench);
		if (!o->json || o->json_file)
			ha_report_row(bench, &row);
	}
	return err;
}

static int all_run(struct ha_bench *bench, struct rows *rows)
{
	const struct ha_options *o = bench->options;
	int err = 0, redops = o->operation->reduces ? o->redops_count : 1;

	for (int t = 0; t < o->types_count && !err; t++)
		for (int r = 0; r < redops && !err; r++)
			err = sizes_run(bench, o->types[t], o->operation->reduces ? (int)o->redops[r] : -1, rows);
	return err;
}

/* Everything between rendezvous and exit; *wrong gets the number of wrong elements in all ranks. */
static int rank_work(struct ha_bench *bench, uint64_t *wrong)
{
	const struct ha_options *o = bench->options;
	struct ha_rank_info *ranks = calloc((size_t)bench->place->ranks, sizeof(*ranks));
	uint64_t *wrongs = calloc((size_t)bench->place->ranks, sizeof(*wrongs));
	bool table = !bench->place->rank && (!o->json || o->json_file);
	struct rows rows = { 0 };
	int err = ranks && wrongs ? bench_open(bench) : -ENOMEM;

	if (!err)
		err = ranks_gather(bench, ranks);
	if (!err && table)
		ha_report_header(bench, ranks);
	if (!err)
		err = all_run(bench, &rows);
	if (!err && table)
		ha_report_footer(bench, rows.rows, rows.count);
	if (!err && o->json && !bench->place->rank)
		err = ha_report_json(bench, ranks, rows.rows, rows.count);
	if (!err && o->timeline && !bench->place->rank)
		err = ha_timelines_write(bench, rows.rows[0].bytes, ha_report_wrong(bench, rows.rows, rows.count));
	/* nobody closes a connection that a peer may still be using */
	if (!err)
		err = ha_rendezvous_allgather(bench->rendezvous, &bench->wrong, sizeof(*wrongs), wrongs);
	for (int m = 0; m < bench->meshes_count && !err; m++)
		err = ha_mesh_close(&bench->meshes[m]);
	/* a rank that fails to close is a failure of the run: wait for everybody's success */
	if (!err)
		err = ha_rendezvous_barrier(bench->rendezvous);
	for (int i = 0; i < bench->place->ranks && !err; i++)
		*wrong += wrongs[i];
	free(rows.rows);
	free(ranks);
	free(wrongs);
	return err;
}

/*
 * A failure: was it another rank's? The first look lets the news of a death overtake the errors that it causes; the
 * second lets rank 0 choose one of several ranks that failed alike.
 */
static enum ha_exit rank_failed(struct ha_bench *bench)
{
	char cause[1024];

	snprintf(cause, sizeof(cause), "%s", ha_fault_text());
	if (bench->rendezvous && !ha_rendezvous_linger(bench->rendezvous, LINGER_MS)) {
		ha_rendezvous_abort(bench->rendezvous);
		if (bench->place->rank)
			(void)ha_rendezvous_linger(bench->rendezvous, LINGER_MS);
	}
	ha_bench_quiet(bench);
	if (!ha_rendezvous_tells(bench->rendezvous))
		return HA_EXIT_FOLLOWED;
	fflush(stdout);
	if (ha_fault_text()[0])
		snprintf(cause, sizeof(cause), "%s", ha_fault_text());
	if (bench->place->last_words)
		snprintf(bench->place->last_words, HA_LAST_WORDS, "%s", cause);
	else
		fprintf(stderr, "ha perf: rank %d: %s\n", bench->place->rank, cause);
	return HA_EXIT_FAILED;
}

static enum ha_exit rank_body(const struct ha_options *options, const struct ha_place *place)
{
	struct ha_bench bench = { .options = options, .place = place };
	enum ha_exit status;
	uint64_t wrong = 0;
	int err;

	ha_logger_open(place->rank);
	err = ha_rendezvous_open(&bench.rendezvous, place, options->timeout_s);
	if (!err)
		err = rank_work(&bench, &wrong);
	status = err ? rank_failed(&bench) : wrong ? HA_EXIT_WRONG : HA_EXIT_OK;
	/* after a failure the plugin may be in any state: it is not touched again, nor are its threads waited for */
	if (err) {
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
	struct ha_options options;
	int result = ha_options_parse(&options, argc, argv);

	if (result)
		return result < 0 ? HA_EXIT_USAGE : HA_EXIT_OK;
	return ha_launch(&options, options.operation->collnet ? ha_collnet_rank : rank_body);
}
