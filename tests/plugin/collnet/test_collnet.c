/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_collnet.c - the switch, the rails, and the change from one to the other at every segment and
 * in every state
 */
#include "plugin/collnet/comm.h"
#include "plugin/ctx.h"
#include "tests/plugin/collnet/team.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

#define SEGMENT (HA_INA_SEGMENT / 4) /* words */

static struct team team;

static const size_t sizes[] = {
	1,     2,     3,      0,           5,       64,          1000,
	32768, 32769, 262144, SEGMENT - 1, SEGMENT, SEGMENT + 1, 2 * SEGMENT + 777
};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static void plan_sizes(void)
{
	for (unsigned i = 0; i < SIZES; i++)
		team_plan(&team, i, 1, sizes[i]);
}

static void on_the_switch(void)
{
	for (int ranks = 2; ranks <= 5; ranks++) {
		team_open(&team, ranks, false);
		team.in_place = ranks & 1;
		plan_sizes();
		team_run(&team, SIZES, ranks & 1 ? 8 : 1);
		for (int r = 0; r < ranks; r++) {
			CHECK_INT(team.error[r], 0);
			CHECK_INT(team_stats(&team, r).switched, SIZES);
			CHECK_INT(team_stats(&team, r).railed, 0);
		}
		CHECK_INT(team.ringed, 0);
		team_close(&team);
	}
}

/* HA_NCCL_COLLNET=1, and no backend anywhere. */
static void on_the_rails(void)
{
	for (int ranks = 1; ranks <= 5; ranks++) {
		for (int r = 0; r < ranks; r++)
			HUB(hub.rank[r].down = true);
		team_open(&team, ranks, true);
		team.in_place = ranks & 1;
		plan_sizes();
		team_run(&team, SIZES, ranks & 1 ? 8 : 1);
		for (int r = 0; r < ranks; r++)
			CHECK_INT(team.error[r], 0);
		CHECK_INT(team.switched, 0);
		team_close(&team);
	}
}

static void all_refused(int ranks, int error)
{
	team_open(&team, ranks, false);
	for (int r = 0; r < ranks; r++)
		CHECK_INT(team.error[r], error);
	team_close(&team);
	hub_reset();
}

/* Whatever is missing, and wherever: all ranks fail, or none. */
static void no_switch(void)
{
	for (int r = 0; r < 4; r++) {
		HUB(hub.rank[r].down = true);
		all_refused(4, -ENOTCONN);
		HUB(hub.rank[r].join_error = -ETIMEDOUT);
		all_refused(4, -ENOTCONN);
	}
	HUB(hub.create_error = -EAGAIN);
	all_refused(3, -ENOTCONN);
}

static void clear_faults(void)
{
	for (int r = 0; r < HA_COLLNET_RANKS; r++)
		HUB(hub.rank[r] = (struct hub_rank) { .limit = HUB_FOREVER });
}

/* Rank r gets limit[r] segments of the group, then the rank that has least of them fails. Two
 * operations are in flight. */
static void cut_after_segments(int ranks, const uint64_t *limit, bool in_place, bool back)
{
	struct ha_collnet_stats s;
	unsigned n;
	int failing = 0;

	clear_faults();
	team_open(&team, ranks, false);
	team.in_place = in_place;
	for (int r = 0; r < ranks; r++) {
		HUB(hub.rank[r].limit = limit[r]);
		failing = limit[r] < limit[failing] ? r : failing;
	}
	HUB(hub.rank[failing].fail = -ETIMEDOUT);
	HUB(hub.rank[failing].at_limit = true);
	team_plan(&team, 0, 2, 2 * SEGMENT + 100);
	team_plan(&team, 2, 1, 50);
	team_run(&team, 3, 2);
	clear_faults();
	s = team_stats(&team, 0);
	CHECK_INT(s.breaks, 1);
	if (back) {
		n = team_until_on_switch(&team, 3);
		team_plan(&team, n, 1, SEGMENT + 1);
		team_run(&team, n + 1, 2);
	}
	for (int r = 0; r < ranks; r++) {
		CHECK(team_stats(&team, r).epochs >= 1u + back);
		CHECK_INT(team_stats(&team, r).breaks, 1);
		CHECK(!back || team_stats(&team, r).on_switch);
	}
	team_close(&team);
}

/* What any rank had is everybody's, what nobody had is the ring's. */
static void at_every_segment(void)
{
	for (uint64_t a = 0; a <= 6; a++) {
		uint64_t limit[3] = { a, (a + 3) % 7, a / 2 }, most = 0;

		cut_after_segments(3, limit, a & 1, a == 3);
		for (int r = 0; r < 3; r++)
			most = limit[r] > most ? limit[r] : most;
		/* of six; the rest is what came after the break and after the return */
		CHECK(team.switched >= most);
		CHECK(team.ringed >= 6 - most);
	}
	for (uint64_t a = 0; a <= 6; a++) {
		uint64_t limit[2] = { a, 6 - a };

		cut_after_segments(2, limit, !(a & 1), a == 0);
		CHECK(team.switched >= (a > 6 - a ? a : 6 - a));
	}
}

/* Rank 1 has it all and rank 0 nothing: the bits are the switch's, everywhere. */
static void one_has_all(void)
{
	uint64_t limit[4] = { 0, 6, 0, 0 };

	cut_after_segments(4, limit, true, false);
	CHECK(team.switched >= 6);
}

/* A backend that hangs: nothing comes, and nothing fails. */
static void backend_hangs(void)
{
	hub_reset();
	/* what the others get takes its time under a sanitizer, and beside other work */
	team_silence_ns = 5000000000;
	team_open(&team, 3, false);
	HUB(hub.rank[1].limit = 1);
	team_plan(&team, 0, 2, SEGMENT + 10);
	team_run(&team, 2, 2);
	CHECK_INT(team_stats(&team, 1).breaks, 1);
	CHECK_INT(team.switched, 4); /* the others had them */
	team_close(&team);
}

/* A rank that has not posted yet what the others have in flight. */
static void late_rank(void)
{
	hub_reset();
	team_open(&team, 3, false);
	team_plan(&team, 0, 6, SEGMENT / 2);
	team_run(&team, 1, 1);
	for (int i = 0; i < 3; i++) {
		CHECK(team_post(&team, 0));
		if (i < 2)
			CHECK(team_post(&team, 2));
	}
	HUB(hub.rank[0].limit = 0);
	HUB(hub.rank[0].fail = -ENOTCONN);
	for (int i = 0; i < 2000; i++) {
		team_test(&team, 0);
		team_test(&team, 2);
	}
	CHECK_INT(team.tested[0], 1);
	clear_faults();
	team_run(&team, 6, 4);
	CHECK(team_stats(&team, 1).breaks == 1);
	CHECK(team.ringed >= 3);
	team_close(&team);
}

/* All have the results, and the group breaks before everybody knows that. */
static void results_unconfirmed(void)
{
	for (int idle = 0; idle < 3; idle++) {
		hub_reset();
		team_open(&team, 3, false);
		team_plan(&team, 0, 3, 1000);
		for (int r = 0; r < 3; r++)
			CHECK(team_post(&team, r));
		while (team.tested[idle] < 1)
			for (int r = 0; r < 3; r++)
				team_test(&team, r);
		/* from here on `idle` is called by nobody, until the others are through with their
		 * first */
		for (int r = 0; r < 3; r++)
			if (r != idle)
				CHECK(team_post(&team, r));
		for (int r = 0; r < 3; r++)
			HUB(hub.rank[r].down = true);
		for (double end = team_now() + TEAM_WAIT_S;
		     team_now() < end &&
		     (team.tested[(idle + 1) % 3] < 1 || team.tested[(idle + 2) % 3] < 1);)
			for (int r = 0; r < 3; r++)
				if (r != idle)
					team_test(&team, r);
		CHECK(team.tested[(idle + 1) % 3] >= 1 && team.tested[(idle + 2) % 3] >= 1);
		team_run(&team, 3, 2);
		hub_reset();
		team_close(&team);
	}
}

/* The way back fails in every way there is, and then does not. */
static void the_way_back(void)
{
	static const struct {
		int rank, join, down;
	} ways[] = { { 0, -ETIMEDOUT, 0 }, { 2, -ETIMEDOUT, 0 }, { 1, 0, 1 }, { 0, 0, 1 } };
	unsigned n = 1;

	hub_reset();
	team_open(&team, 3, false);
	team_plan(&team, 0, TEAM_OPS, 100);
	team_run(&team, 1, 1);
	for (size_t w = 0; w < sizeof(ways) / sizeof(ways[0]); w++) {
		uint64_t attempts = team_stats(&team, 0).attempts;
		double end = team_now() + TEAM_WAIT_S;

		HUB(hub.rank[ways[w].rank].join_error = ways[w].join);
		HUB(hub.rank[ways[w].rank].down = ways[w].down);
		HUB(hub.rank[1].limit = 0);
		HUB(hub.rank[1].fail = -ETIMEDOUT);
		while (team_stats(&team, 0).attempts < attempts + 2) {
			CHECK(team_now() < end && n < TEAM_OPS - 50);
			team_run(&team, ++n, 2);
			struct timespec some = { .tv_nsec = team_stats(&team, 0).on_switch
								    ? 0
								    : 50000000 };

			nanosleep(&some, NULL);
		}
		CHECK(!team_stats(&team, 0).on_switch);
		hub_reset();
		n = team_until_on_switch(&team, n);
	}
	for (int r = 0; r < 3; r++)
		CHECK_INT(team_stats(&team, r).epochs, 1 + sizeof(ways) / sizeof(ways[0]));
	team_close(&team);
}

/* A peer that closes in the middle is an error at all others, and at none that is through. */
static void a_rank_closes(void)
{
	struct ha_collnet_op *op[4] = { NULL };
	static float data[4][25];
	int errors = 0, err, done = 0;

	hub_reset();
	team_open(&team, 4, false);
	team_plan(&team, 0, 3, 100);
	team_run(&team, 2, 1);
	ha_collnet_close(team.comm[2]);
	team.gone[2] = true;
	for (double end = team_now() + TEAM_WAIT_S; errors < 3 && team_now() < end;) {
		errors = 0;
		for (int r = 0; r < 4; r++) {
			if (r == 2)
				continue;
			if (op[r])
				err = ha_collnet_test(op[r], &done, NULL);
			else
				err = ha_collnet_iallreduce(team.comm[r], data[r], data[r],
							    sizeof(data[r]), &op[r]);
			CHECK(!done);
			errors += err != 0;
		}
	}
	CHECK_INT(errors, 3);
	team_close(&team);
}

/* Closing right after the last operation, ranks in any order: the slower ones still get to its
 * end. */
static void closing_early(void)
{
	for (int first = 0; first < 3; first++) {
		hub_reset();
		HUB(hub.lazy = 50);
		team_open(&team, 3, false);
		team_plan(&team, 0, 2, 1000);
		for (int r = 0; r < 3; r++)
			CHECK(team_post(&team, r) && team_post(&team, r));
		while (team.tested[first] < 2)
			for (int r = 0; r < 3; r++)
				team_test(&team, r);
		ha_collnet_close(team.comm[first]);
		team.gone[first] = true;
		while (team.tested[(first + 1) % 3] < 2 || team.tested[(first + 2) % 3] < 2)
			for (int r = 0; r < 3; r++)
				if (r != first)
					team_test(&team, r);
		team_close(&team);
	}
}

/* A communicator that ends with an error leaves the switch's group at once: what is in flight there
 * writes nowhere any more. */
static void failed_leaves(void)
{
	hub_reset();
	team_open(&team, 3, false);
	team_plan(&team, 0, 1, SEGMENT);
	for (int r = 0; r < 3; r++)
		HUB(hub.rank[r].limit = 0);
	CHECK(team_post(&team, 0));
	CHECK_INT(hub.joined, 3);
	ha_collnet_fail(team.comm[0], -EIO, "the test's end");
	CHECK_INT(hub.joined, 2);
	team_close(&team);
}

/* It asks, and there is no answer; an attempt that began before the backend hung is soon over. */
static bool is_without_answer(int r)
{
	struct ha_pilot *p = &team.comm[r]->join.pilot;

	if (p->running)
		usleep(50000);
	return p->running && !p->ready;
}

/*
 * A backend that hangs while it is asked for a group, for a place in one, or attached to: whoever
 * closes then waits no longer than closing may take. Before, it waited for the backend's answer: 60
 * s.
 */
static void hung_pilot(void)
{
	static const struct {
		int rank;  /* whose backend hangs; rank 0's is asked for groups */
		bool gone; /* it was away before: the way back begins with attaching */
	} ways[] = { { 0, false }, { 0, true }, { 2, false } };

	for (size_t w = 0; w < sizeof(ways) / sizeof(ways[0]); w++) {
		struct hub_rank *h = &hub.rank[ways[w].rank];
		unsigned n = 1;
		double begin, end;

		hub_reset();
		team_open(&team, 3, false);
		team_plan(&team, 0, TEAM_OPS, 100);
		team_run(&team, 1, 1);
		HUB(h->down = ways[w].gone);
		HUB(h->limit = 0);
		HUB(h->fail = -ETIMEDOUT);
		team_run(&team, ++n, 1);
		CHECK_INT(team_stats(&team, 1).breaks, 1);
		if (ways[w].gone)
			for (end = team_now() + 0.3; team_now() < end && n < TEAM_OPS;
			     usleep(10000))
				team_run(&team, ++n, 1);
		HUB(h->hung = true);
		HUB(h->down = false);
		for (end = team_now() + TEAM_WAIT_S; !is_without_answer(ways[w].rank);) {
			CHECK(team_now() < end && n < TEAM_OPS);
			team_run(&team, ++n, 1);
			usleep(10000);
		}
		begin = team_now();
		ha_collnet_close(team.comm[ways[w].rank]);
		team.gone[ways[w].rank] = true;
		CHECK(team_now() - begin < 30);
		HUB(h->hung = false);
		team_close(&team);
	}
}

/* A backend that hangs is asked to let its rank in again: the others' sums, which must wait for the
 * answer at some point, do not stand still for it. */
static void hung_join(void)
{
	double longest = 0, begin;
	unsigned n = 1;

	hub_reset();
	team_open(&team, 3, false);
	team_plan(&team, 0, TEAM_OPS, 100);
	team_run(&team, 1, 1);
	HUB(hub.rank[2].limit = 0);
	HUB(hub.rank[2].fail = -ETIMEDOUT);
	HUB(hub.rank[2].hung = true);
	for (double start = team_now(); (team_now() < start + 6 || n <= 20) &&
					team_now() < start + TEAM_WAIT_S && n < TEAM_OPS - 400;) {
		begin = team_now();
		team_run(&team, ++n, 1);
		longest = team_now() - begin > longest ? team_now() - begin : longest;
		usleep(5000);
	}
	CHECK(n > 20);
	CHECK(longest < 30); /* a stop for the backend would be its time limit, 60 s */
	CHECK_INT(team_stats(&team, 0).epochs, 1);
	hub_reset();
	n = team_until_on_switch(&team, n);
	CHECK_INT(team_stats(&team, 2).epochs, 2);
	team_close(&team);
}

/* A group that ended with -EAGAIN is no group that is full for a moment. */
static void ended_with_eagain(void)
{
	hub_reset();
	team_open(&team, 3, false);
	team_plan(&team, 0, 2, 100);
	team_run(&team, 1, 1);
	for (int r = 0; r < 3; r++)
		HUB(hub.rank[r].ended = -EAGAIN);
	team_run(&team, 2, 1);
	hub_reset();
	CHECK_INT(team_stats(&team, 0).breaks, 1);
	CHECK_INT(team_stats(&team, 2).railed, 1);
	team_close(&team);
}

/* A rank that is alone gives up: of the connections that it was making nothing stays. */
static void given_up(void)
{
	struct ha_ctx *core;

	hub_reset();
	team_begin(&team, 3, true);
	core = team.comm[0]->params.core;
	CHECK_INT(ha_collnet_connect_step(team.comm[0]), -EAGAIN);
	CHECK(!LIST_EMPTY(&core->setup.connects));
	team_close(&team);
	CHECK(LIST_EMPTY(&core->setup.connects));
}

static void wrong_calls_refused(void)
{
	struct ha_collnet_op *op;
	static float data[4];

	hub_reset();
	team_open(&team, 2, false);
	CHECK_INT(ha_collnet_iallreduce(team.comm[0], NULL, data, 4, &op), -EINVAL);
	CHECK_INT(ha_collnet_iallreduce(team.comm[0], data, NULL, 4, &op), -EINVAL);
	CHECK_INT(ha_collnet_iallreduce(team.comm[0], data, data, 3, &op), -EINVAL);
	CHECK_INT(ha_collnet_iallreduce(team.comm[0], data, data, (1ull << 30) + 4, &op),
		  -EMSGSIZE);
	CHECK(!op);
	team_plan(&team, 0, 40, 4);
	for (int i = 0; i < HA_COLLNET_DEPTH; i++)
		CHECK(team_post(&team, 0));
	CHECK(!team_post(&team, 0)); /* full: later */
	team_run(&team, 40, HA_COLLNET_DEPTH);
	team_close(&team);
}

/* ---- chaos ---- */

static uint64_t dice;

static unsigned roll_dice(unsigned n)
{
	dice = dice * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(dice >> 33) % n;
}

static void cause_fault(int ranks)
{
	struct hub_rank *h = &hub.rank[roll_dice((unsigned)ranks)];

	switch (roll_dice(6)) {
	case 0:
		HUB(h->down = true);
		break;
	case 1:
		HUB(h->limit = roll_dice(20));
		HUB(h->fail = -ETIMEDOUT);
		break;
	case 2:
		HUB(h->join_error = -ECANCELED);
		break;
	case 3:
		HUB(hub.create_error = -EAGAIN);
		break;
	default:
		hub_reset();
	}
	HUB(hub.lazy = 1 + roll_dice(20));
}

static void run_random_faults(uint64_t seed)
{
	unsigned n = 60, window, failure;
	int ranks;
	double end = team_now() + 250;

	dice = seed * 0x9e3779b97f4a7c15ull;
	ranks = 2 + (int)roll_dice(4);
	window = 1 + roll_dice(12);
	failure = 3 + roll_dice(60);
	hub_reset();
	team_open(&team, ranks, false);
	team.in_place = roll_dice(2);
	for (unsigned i = 0; i < n; i++)
		team_plan(&team, i, 1, roll_dice(12) ? roll_dice(3000) : roll_dice(2 * SEGMENT));
	for (bool over = false; !over;) {
		int r = (int)roll_dice((unsigned)ranks);
		unsigned few = roll_dice(40); /* a rank's turn, and the others idle */

		for (unsigned k = 0; k < few; k++) {
			if (team.posted[r] < n && team.posted[r] - team.tested[r] < window &&
			    roll_dice(2))
				team_post(&team, r);
			team_test(&team, r);
		}
		if (!roll_dice(failure))
			cause_fault(ranks);
		over = true;
		for (int q = 0; q < ranks; q++)
			over &= team.tested[q] == n;
		if (team_now() > end) {
			fprintf(stderr, "seed %llu: %d ranks\n", (unsigned long long)seed, ranks);
			for (int q = 0; q < ranks; q++)
				fprintf(stderr, "rank %d: posted %u, done %u of %u\n", q,
					team.posted[q], team.tested[q], n);
			CHECK(!"a standstill");
		}
	}
	printf("seed %llu: %d ranks, window %u, %llu breaks, %llu epochs; segments: %llu of the "
	       "switch, %llu of the ring\n",
	       (unsigned long long)seed, ranks, window,
	       (unsigned long long)team_stats(&team, 0).breaks,
	       (unsigned long long)team_stats(&team, 0).epochs, (unsigned long long)team.switched,
	       (unsigned long long)team.ringed);
	fflush(stdout);
	hub_reset();
	team_close(&team);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} tests[] = {
		{ "on_the_switch", on_the_switch }, { "on_the_rails", on_the_rails },
		{ "no_switch", no_switch },         { "at_every_segment", at_every_segment },
		{ "one_has_all", one_has_all },     { "late_rank", late_rank },
		{ "silence", backend_hangs },       { "unconfirmed", results_unconfirmed },
		{ "the_way_back", the_way_back },   { "a_rank_closes", a_rank_closes },
		{ "closing_early", closing_early }, { "refused", wrong_calls_refused },
		{ "failed_leaves", failed_leaves }, { "ended_with_eagain", ended_with_eagain },
		{ "hung_pilot", hung_pilot },       { "hung_join", hung_join },
		{ "given_up", given_up },
	};

	hub_reset();
	if (argc == 4 && !strcmp(argv[1], "chaos")) {
		for (uint64_t s = strtoull(argv[2], NULL, 0), e = s + strtoull(argv[3], NULL, 0);
		     s < e; s++)
			run_random_faults(s);
		return 0;
	}
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		if (argc == 2 && !strcmp(argv[1], tests[i].name)) {
			tests[i].run();
			return 0;
		}
	}
	fprintf(stderr, "usage: %s NAME | chaos FIRST COUNT\n", argv[0]);
	return 2;
}
