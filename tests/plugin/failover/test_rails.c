/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections with several data rails: MPIB's two NICs, several queue pairs on one NIC with a
 * standby on another, and a fused device whose members stand by for each other.
 */
#include "tests/plugin/failover/duel.h"

#include <stdio.h>

/* SUP carries everything; without it SOUT does; when it is back it has its share again. */
static void mpib_nics(void)
{
	const struct duel_setup setup = { .env = { "MPIB_HCA_SOUT=soft0", "MPIB_HCA_SUP=soft1" } };
	struct duel d;

	duel_open(&d, &setup);
	duel_await_events(&d, SENDER, EVENT("protected"), NULL, 1);
	for (int end = 0; end < ENDS; end++) {
		duel_cut(&d, end, 1);
		for (int rail = 2; rail < 6; rail++) {
			char which[16];

			snprintf(which, sizeof(which), "\"rail\":%d,", rail);
			duel_await_events(&d, SENDER, EVENT("failed_over"), which, 1 + end);
		}
		duel_flow(&d, 30);
		duel_heal(&d, end, 1);
		duel_await_events(&d, SENDER, EVENT("failed_back"), "\"rail\":5,", 1 + end);
		duel_flow(&d, 30);
	}
	duel_cut(&d, RECEIVER, 0); /* nobody needs SOUT now */
	duel_flow(&d, 30);
	duel_kill(&d, SENDER, 1); /* and nobody has SUP */
	duel_heal(&d, RECEIVER, 0);
	duel_flow(&d, 30);
	duel_close(&d);
}

static void over_queue_pairs(const struct duel_setup *setup)
{
	struct duel d;

	duel_open(&d, setup);
	duel_await_events(&d, SENDER, EVENT("protected"), NULL, 1);
	duel_cut(&d, SENDER, 0);
	for (int rail = 0; rail < 3; rail++) {
		char which[16];

		snprintf(which, sizeof(which), "\"rail\":%d,", rail);
		duel_await_events(&d, SENDER, EVENT("failed_over"), which, 1);
	}
	duel_flow(&d, 30);
	duel_heal(&d, SENDER, 0);
	duel_await_events(&d, SENDER, EVENT("recovered"), "\"rail\":2,", 1);
	duel_cut(&d, RECEIVER, 1);
	duel_await_events(&d, SENDER, EVENT("failed_over"), "\"rail\":3,", 1);
	duel_flow(&d, 30);
	duel_close(&d);
}

static void queue_pairs(void)
{
	over_queue_pairs(&(struct duel_setup) { .env = { "NCCL_IB_QPS_PER_CONNECTION=3" } });
}

/* More than a connection can have: seven, and the standby has its place. */
static void many_queue_pairs(void)
{
	const struct duel_setup setup = { .env = { "NCCL_IB_QPS_PER_CONNECTION=16" } };
	struct duel d;

	duel_open(&d, &setup);
	duel_await_events(&d, SENDER, EVENT("protected"), NULL, 1);
	HOLDS(&d, duel_events(&d, SENDER, EVENT("connected"), "rail 6: soft0:1") == 1, "not seven");
	HOLDS(&d, duel_logged(&d, SENDER, "NCCL_IB_QPS_PER_CONNECTION=16: ") == 1,
	      "fewer queue pairs are no warning, or several");
	duel_cut(&d, SENDER, 0);
	duel_await_events(&d, SENDER, EVENT("failed_over"), "\"rail\":6,", 1);
	duel_flow(&d, 30);
	duel_close(&d);
}

/* Every message is cut over all of them. */
static void split_queue_pairs(void)
{
	over_queue_pairs(&(struct duel_setup) {
		.env = { "NCCL_IB_QPS_PER_CONNECTION=3", "NCCL_IB_SPLIT_DATA_ON_QPS=1" } });
}

/* The two of a fused device stand by for each other: one goes, both go, and each that comes back
 * carries its share again. */
static void fused_device(void)
{
	const struct duel_setup setup = { .fused = true };
	struct duel d;

	duel_open(&d, &setup);
	duel_await_events(&d, SENDER, EVENT("protected"), "soft0:1 ⇄ soft1:1", 1);
	HOLDS(&d, duel_connection(&d, SENDER).gate >= 16384 && !duel_connection(&d, RECEIVER).gate,
	      "from where on messages are shared");
	for (int end = 0; end < ENDS; end++) {
		char rail[16];

		snprintf(rail, sizeof(rail), "\"rail\":%d,", end);
		duel_cut(&d, end, end);
		duel_await_events(&d, SENDER, EVENT("failed_over"), rail, 1);
		duel_flow(&d, 30);
		HOLDS(&d, duel_connection(&d, SENDER).rail[!end].weight == 512,
		      "the survivor's weight is not its share");
		duel_heal(&d, end, end);
		duel_await_events(&d, SENDER, EVENT("failed_back"), rail, 1);
		duel_flow(&d, 30);
	}
	duel_cut(&d, SENDER, 0);
	duel_cut(&d, RECEIVER, 1); /* nothing can move */
	duel_await_events(&d, SENDER, EVENT("fenced"), "\"rail\":0,", 2);
	duel_await_events(&d, SENDER, EVENT("fenced"), "\"rail\":1,", 2);
	duel_heal(&d, RECEIVER, 1);
	duel_flow(&d, 30);
	duel_heal(&d, SENDER, 0);
	duel_await_events(&d, SENDER, EVENT("recovered"), "\"rail\":0,", 2);
	duel_flow(&d, 30);
	duel_close(&d);
}

/* Both of them for good, at one end: an error at both ends, at once. */
static void fused_hopeless(void)
{
	const struct duel_setup setup = { .fused = true, .env = { DUEL_LATE_TIMEOUTS } };
	struct duel d;

	duel_open(&d, &setup);
	duel_kill(&d, RECEIVER, 1);
	duel_await_events(&d, SENDER, EVENT("not_protected"), CAUSE("rail_lost"), 1);
	duel_flow(&d, 30);
	duel_allow_errors(&d);
	duel_kill(&d, RECEIVER, 0);
	duel_await_errors(&d);
	HOLDS(&d, duel_events(&d, RECEIVER, EVENT("lost"), NULL) == 1, "no event");
	duel_expect_no_timeout(&d);
	duel_close(&d);
}

int main(int argc, char **argv)
{
	static const struct duel_test tests[] = { { "mpib", mpib_nics },
						  { "queue_pairs", queue_pairs },
						  { "fused", fused_device },
						  { "split_queue_pairs", split_queue_pairs },
						  { "many_queue_pairs", many_queue_pairs },
						  { "fused_hopeless", fused_hopeless } };

	return duel_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
