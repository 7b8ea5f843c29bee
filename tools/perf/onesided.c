/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * onesided.c - `ha perf put`, putsignal, get and moe: drives the one-sided table of a plugin, or of
 * two in turns, as NCCL's proxy does
 *
 * Iterations are those of onesided_round.c. Between them a rank waits for others; its table still
 * makes progress then, in a thread.
 */
#include "tools/perf/onesided.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "tools/job/cues.h"
#include "tools/job/failure.h"
#include "tools/job/fault.h"
#include "tools/job/figures.h"
#include "tools/job/interrupt.h"
#include "tools/job/rendezvous.h"
#include "tools/perf/logger.h"
#include "tools/perf/onesided_round.h"

#define TURNS 6 /* of each side, with --vs */

/* What one rank saw of one side. */
struct result {
	uint64_t iterations, ns, longest, wrong, verified, sent;
	uint64_t check_ns; /* of the measured iterations, not in ns */
	double p50, p99;   /* of an iteration, us */
};

struct drive {
	const struct perf_options *options;
	const struct ha_place *place;
	struct ha_rendezvous *rendezvous;
	struct ha_side side[HA_SIDES];
	int sides;
	size_t bytes;
	struct result result[HA_SIDES];
	struct ha_samples samples[HA_SIDES];
};

static struct ha_round round_of(struct drive *d, int s, bool check)
{
	return (struct ha_round) { .options = d->options,
				   .place = d->place,
				   .rendezvous = d->rendezvous,
				   .side = &d->side[s],
				   .kind = d->options->operation->one_sided,
				   .bytes = d->bytes,
				   .check = check };
}

static void add_round(struct result *result, const struct ha_round *round)
{
	result->wrong += round->wrong;
	result->verified += round->verified;
}

/* Not measured. */
static int run_some(struct drive *d, int s, int n, bool check)
{
	struct ha_round round = round_of(d, s, check);
	int err = ha_side_return(&d->side[s]);

	for (int i = 0; i < n && !err; i++)
		err = ha_round_run(&round);
	ha_side_leave(&d->side[s]);
	add_round(&d->result[s], &round);
	return err;
}

/* Every `every`-th iteration is verified; 0: none. */
static int measure_some(struct drive *d, int s, uint64_t n, uint64_t every)
{
	struct ha_round round = round_of(d, s, false);
	struct result *result = &d->result[s];
	int err = ha_side_return(&d->side[s]);

	for (uint64_t i = 0; i < n && !err; i++) {
		round.check = every && result->iterations % every == 0;
		err = ha_round_run(&round);
		result->iterations++;
		result->ns += round.took;
		result->longest = round.took > result->longest ? round.took : result->longest;
		if (!err)
			err = ha_samples_add(&d->samples[s], round.took);
	}
	ha_side_leave(&d->side[s]);
	result->sent += round.sent;
	result->check_ns += round.check_ns;
	add_round(result, &round);
	return err;
}

/* Rank 0 says how many come next: iterations of about 20 ms, none when the time is over. */
static int ask_for_more(struct drive *d, int64_t begin, uint64_t *more)
{
	uint64_t *all = calloc((size_t)d->place->ranks, sizeof(*all));
	int64_t passed = ha_monotonic_ns() - begin;
	const struct result *r = &d->result[0];
	int err = all ? 0 : ha_fault(-ENOMEM, "out of memory");

	*more = passed > 0 ? 1 + 20000000 * r->iterations / (uint64_t)passed : 1;
	if (passed >= d->options->run.duration_ns || ha_interrupted())
		*more = 0;
	if (!err)
		err = ha_rendezvous_allgather(d->rendezvous, more, sizeof(*more), all);
	*more = err ? 0 : all[0];
	free(all);
	return err;
}

static int measure_time(struct drive *d)
{
	int64_t begin = ha_monotonic_ns();
	uint64_t more = 1;
	int err = 0;

	if (!d->place->rank)
		ha_cues_start(d->place->cues, begin);
	while (more && !err) {
		err = measure_some(d, 0, more, (uint64_t)d->options->run.check_every);
		if (!err)
			err = ask_for_more(d, begin, &more);
	}
	return err;
}

/* By number: with --vs both sides take turns. */
static int measure_number(struct drive *d)
{
	int turns = d->sides > 1 ? TURNS : 1, iters = d->options->run.iters, err = 0;

	for (int turn = 0; turn < turns && !err; turn++)
		for (int i = 0; i < d->sides && !err; i++) {
			int s = (i + turn) % d->sides;
			int n = iters * (turn + 1) / turns - iters * turn / turns;

			err = measure_some(d, s, (uint64_t)n, d->options->run.check_all ? 1 : 0);
			if (!err)
				err = ha_rendezvous_barrier(d->rendezvous);
		}
	return err;
}

/* ---- sizes ---- */

static int prepare_rounds(struct drive *d)
{
	for (int s = 0; s < d->sides; s++) {
		struct ha_round round = round_of(d, s, false);

		d->result[s] = (struct result) { 0 };
		d->samples[s].count = 0;
		ha_round_prepare(&round);
	}
	return ha_rendezvous_barrier(d->rendezvous);
}

/* Nothing is on its way any more; no counter may have anything but its due. */
static int settle_rounds(struct drive *d)
{
	int err = 0;

	for (int s = 0; s < d->sides && !err; s++) {
		struct ha_round round = round_of(d, s, false);

		err = ha_side_return(&d->side[s]);
		if (!err)
			err = ha_round_settle(&round);
		ha_side_leave(&d->side[s]);
	}
	if (!err)
		err = ha_rendezvous_barrier(d->rendezvous);
	for (int s = 0; s < d->sides && !err; s++) {
		struct ha_round round = round_of(d, s, false);

		d->result[s].wrong += ha_round_miscounted(&round);
	}
	return err;
}

static int join_results(struct drive *d, int s)
{
	struct result *mine = &d->result[s], *all = calloc((size_t)d->place->ranks, sizeof(*all));
	int err = all ? 0 : ha_fault(-ENOMEM, "out of memory");

	ha_samples_sort(d->samples[s].ns, d->samples[s].count);
	mine->p50 = ha_percentile_us(d->samples[s].ns, d->samples[s].count, 0.5);
	mine->p99 = ha_percentile_us(d->samples[s].ns, d->samples[s].count, 0.99);
	if (!err)
		err = ha_rendezvous_allgather(d->rendezvous, mine, sizeof(*mine), all);
	for (int r = 0; r < d->place->ranks && !err; r++) {
		if (r == d->place->rank)
			continue;
		mine->longest = all[r].longest > mine->longest ? all[r].longest : mine->longest;
		mine->wrong += all[r].wrong;
		mine->verified += all[r].verified;
	}
	free(all);
	return err;
}

static void print_row(const struct drive *d, int s)
{
	const struct result *r = &d->result[s];
	const struct perf_options *o = d->options;
	double messages = (double)r->iterations *
			  ha_round_messages(o->operation->one_sided, d->place->ranks, o->steps);
	double us = (double)r->ns / 1000;

	printf("%12zu %4s %10.2f %10.0f %9.3f %10.2f %10.2f %10.1f %10.1f %10llu %10llu %8llu",
	       d->bytes, s ? "vs" : "", us / messages, messages / us * 1e6,
	       (double)r->sent / us / 1000, r->p50, r->p99, (double)r->longest / 1e6,
	       (double)r->check_ns / 1e6, (unsigned long long)r->iterations,
	       (unsigned long long)r->verified, (unsigned long long)r->wrong);
	if (s)
		printf("   ratio %.2f", (double)r->ns / (double)d->result[0].ns);
	printf("\n");
	fflush(stdout);
}

static int run_size(struct drive *d, uint64_t *wrong)
{
	const struct perf_options *o = d->options;
	int err = prepare_rounds(d);

	for (int s = 0; s < d->sides && !err; s++)
		err = run_some(d, s, o->run.warmup, false);
	if (!err)
		err = ha_rendezvous_barrier(d->rendezvous);
	if (!err)
		err = o->run.duration_ns ? measure_time(d) : measure_number(d);
	for (int s = 0; s < d->sides && !err; s++)
		err = run_some(d, s, o->run.checks, true);
	if (!err)
		err = settle_rounds(d);
	for (int s = 0; s < d->sides && !err; s++) {
		err = join_results(d, s);
		if (!err && !d->place->rank)
			print_row(d, s);
		*wrong += d->result[s].wrong;
	}
	return err;
}

static void print_header(const struct drive *d)
{
	for (int s = 0; s < d->sides; s++) {
		const struct ha_side *side = &d->side[s];

		printf("# %splugin: %s, nccl%sPlugin_v%d, %s\n", s ? "vs " : "", side->gin.name,
		       side->gin.version >= HA_GIN_RMA ? "Rma" : "Gin", side->gin.version,
		       side->plugin.path);
	}
	printf("# %d ranks, %s, %d steps; times and rates of rank 0's own operations%s\n",
	       d->place->ranks, d->options->operation->name, d->options->steps,
	       d->sides > 1 ? "; ratio: above 1 the first is faster" : "");
	printf("# check ms: its filling and comparing, beside those times\n");
	printf("%12s %4s %10s %10s %9s %10s %10s %10s %10s %10s %10s %8s\n", "# bytes", "", "us/op",
	       "op/s", "GB/s", "p50 us", "p99 us", "longest ms", "check ms", "iterations",
	       "verified", "#wrong");
	fflush(stdout);
}

static int open_sides(struct drive *d)
{
	const struct perf_options *o = d->options;
	struct ha_side_setting setting = {
		.options = o,
		.place = d->place,
		.rendezvous = d->rendezvous,
		.name = o->plugin,
		.version = o->gin_version,
		.data_bytes = ha_round_window(o->operation->one_sided, d->place->ranks, o->steps,
					      o->run.max_bytes),
		.counters = ha_round_counters(d->place->ranks),
	};
	int err = ha_side_open(&d->side[0], &setting);

	ha_side_leave(&d->side[0]);
	d->sides = 1;
	if (!err && o->versus) {
		setting.name = o->versus;
		err = ha_side_open(&d->side[1], &setting);
		ha_side_leave(&d->side[1]);
		d->sides = 2;
	}
	return err;
}

static int drive_all(struct drive *d, uint64_t *wrong)
{
	const struct ha_run_options *run = &d->options->run;
	int err;

	if (d->place->ranks < 2)
		return ha_fault(-EINVAL, "one rank alone has no peer");
	err = open_sides(d);
	if (!err && !d->place->rank)
		print_header(d);
	for (d->bytes = run->min_bytes; d->bytes <= run->max_bytes && !err;
	     d->bytes = ha_run_size_next(run, d->bytes))
		err = run_size(d, wrong);
	if (!err)
		err = ha_rendezvous_barrier(d->rendezvous);
	for (int s = 0; s < d->sides && !err; s++)
		err = ha_side_close(&d->side[s]);
	if (!err)
		err = ha_rendezvous_barrier(d->rendezvous);
	if (!err && !d->place->rank)
		printf("# Out of bounds values : %llu %s\n", (unsigned long long)*wrong,
		       *wrong ? "FAILED" : "OK");
	return err;
}

enum ha_exit ha_onesided_rank(const void *context, const struct ha_place *place)
{
	const struct perf_options *options = context;
	struct drive d = { .options = options, .place = place };
	enum ha_exit status;
	uint64_t wrong = 0;
	int err;

	ha_logger_open(place->rank);
	if (options->run.duration_ns)
		ha_interrupt_take(place);
	err = ha_rendezvous_open(&d.rendezvous, place, options->run.launch.timeout_s);
	if (!err)
		err = drive_all(&d, &wrong);
	status = wrong ? HA_EXIT_WRONG : HA_EXIT_OK;
	if (err) { /* the plugin may be in any state */
		status = ha_failure_report(d.rendezvous, place, options->run.launch.program);
		fflush(NULL);
		_exit(place->forked ? status : HA_EXIT_WRONG);
	}
	for (int s = 0; s < HA_SIDES; s++)
		free(d.samples[s].ns);
	ha_rendezvous_close(d.rendezvous);
	return status;
}
