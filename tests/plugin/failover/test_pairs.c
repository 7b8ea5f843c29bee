/* SPDX-License-Identifier: BSD-3-Clause */
/* Any NIC to any NIC: no two NICs that were connected are left, and messages go on over two that
 * were not. */
#include "tests/plugin/failover/duel.h"

#include <stdio.h>
#include <string.h>

/* Messages arrive, and the connection is protected no more than one pair of NICs can be. */
static void goes_on(struct duel *d)
{
	duel_flow(d, 100);
	for (int end = 0; end < ENDS; end++)
		HOLDS(d, !duel_events(d, end, EVENT("lost"), NULL), "end %d gave up", end);
}

/* From soft0 to soft1, with soft1 to soft0 as the standby: the switch that NIC 0 of both hangs on
 * takes both along. */
static void leaf_lost(void)
{
	const struct duel_setup setup = { .nic = { 0, 1 }, .env = { "HA_NCCL_STANDBYS=1" } };
	struct duel d;

	duel_open(&d, &setup);
	duel_await_events(&d, SENDER, EVENT("protected"), "soft0:1 ⇄ standby soft1:1", 1);
	duel_await_events(&d, RECEIVER, EVENT("protected"), "soft1:1 ⇄ standby soft0:1", 1);
	for (int round = 1; round <= 2; round++) {
		for (int end = 0; end < ENDS; end++)
			duel_cut(&d, end, 0);
		goes_on(&d);
		for (int end = 0; end < ENDS; end++)
			duel_heal(&d, end, 0);
		for (int end = 0; end < ENDS; end++)
			duel_await_events(&d, end, EVENT("protected"),
					  "against the loss of a NIC\"", 1 + round);
		duel_flow(&d, 30);
	}
	duel_close(&d);
}

/* The same switch, and it says nothing: a further pair comes up while both paths still count as up,
 * and both ends report it. The NICs' own time-outs are minutes away. */
static void leaf_silent(void)
{
	const struct duel_setup setup = {
		.nic = { 0, 1 },
		.env = { "HA_NCCL_STANDBYS=1", "HA_NCCL_SILENCE_MS=100", "HA_NCCL_QP_TIMEOUT=24",
			 "HA_NCCL_HEARTBEAT_MS=5000", "HA_NCCL_RTO_MS=60000" }
	};
	char line[2048], status[65536];
	struct duel d;

	duel_open(&d, &setup);
	for (int end = 0; end < ENDS; end++)
		duel_await_events(&d, end, EVENT("protected"), NULL, 1);
	duel_flow(&d, 50);
	for (int end = 0; end < ENDS; end++) {
		duel_blackhole(&d, end, 0, true);
		duel_blackhole(&d, end, 0, false);
	}
	for (int end = 0; end < ENDS; end++)
		duel_await_events(&d, end, EVENT("added"), "\"device\":\"soft1:1\"", 1);
	goes_on(&d);
	HOLDS(&d, duel_event(&d, SENDER, EVENT("added"), CAUSE("silence"), line, sizeof(line)),
	      "the sender's event has no cause");
	HOLDS(&d, strstr(line, "no path that was up gave a sign"), "%s", line);
	duel_status(&d, SENDER, status, sizeof(status));
	HOLDS(&d, strstr(status, "added"), "%s", status);
	duel_close(&d);
}

/* All pairs are up before the switch goes: what carries next was. */
static void keep_all_pairs(const char *standbys, const char *reason)
{
	const struct duel_setup setup = { .nic = { 0, 1 },
					  .env = { standbys, DUEL_LATE_TIMEOUTS } };
	struct duel d;

	duel_open(&d, &setup);
	for (int end = 0; end < ENDS; end++) {
		duel_await_events(&d, end, EVENT("protected"), NULL, 1);
		duel_await_events(&d, end, EVENT("added"), NULL, 2);
	}
	HOLDS(&d, duel_events(&d, SENDER, EVENT("added"), reason) == 2, "no reason");
	for (int end = 0; end < ENDS; end++)
		duel_cut(&d, end, 0);
	goes_on(&d);
	for (int end = 0; end < ENDS; end++)
		HOLDS(&d, !duel_events(&d, end, "no rail was up for", NULL),
		      "end %d had to make a path", end);
	for (int end = 0; end < ENDS; end++)
		duel_heal(&d, end, 0);
	duel_await_events(&d, SENDER, EVENT("protected"), "against the loss of a NIC\"", 2);
	duel_flow(&d, 30);
	duel_close(&d);
}

static void further_standbys(void)
{
	keep_all_pairs("HA_NCCL_STANDBYS=3", "HA_NCCL_STANDBYS");
}

/* By default, since the data path leads from one switch to another, as the NICs' names have it. */
static void crossed_standbys(void)
{
	keep_all_pairs("HA_NCCL_STANDBYS=0", "from one leaf switch to another");
}

/* From soft0 to soft0, standby soft1 to soft1: one of each is lost. */
static void lost_crosswise(void)
{
	struct duel d;

	duel_open(&d, &(const struct duel_setup) { 0 });
	duel_await_events(&d, SENDER, EVENT("protected"), NULL, 1);
	duel_cut(&d, SENDER, 0);
	duel_cut(&d, RECEIVER, 1);
	goes_on(&d);
	duel_close(&d);
}

/* The two rails of a fused device stand by for each other, and lose an end each. */
static void fused_crosswise(void)
{
	struct duel d;

	duel_open(&d, &(const struct duel_setup) { .fused = true });
	duel_await_events(&d, SENDER, EVENT("protected"), NULL, 1);
	duel_cut(&d, RECEIVER, 0);
	duel_cut(&d, SENDER, 1);
	goes_on(&d);
	duel_close(&d);
}

/*
 * SOUT is lost at one end and SUP at the other, then the other way round: no rail has two ends that
 * are left, and messages go between the two NICs that are. Each has its share again afterwards.
 */
static void mpib_crosswise(void)
{
	const struct duel_setup setup = { .env = { "MPIB_HCA_SOUT=soft0", "MPIB_HCA_SUP=soft1",
						   DUEL_LATE_TIMEOUTS } };
	struct duel d;

	duel_open(&d, &setup);
	duel_await_events(&d, SENDER, EVENT("protected"), NULL, 1);
	for (int end = 0; end < ENDS; end++) {
		duel_cut(&d, end, 0);
		duel_cut(&d, !end, 1);
		goes_on(&d);
		duel_heal(&d, end, 0);
		duel_heal(&d, !end, 1);
		duel_await_events(&d, SENDER, EVENT("failed_back"), "\"rail\":5,", 1 + end);
		duel_flow(&d, 30);
	}
	duel_close(&d);
}

int main(int argc, char **argv)
{
	static const struct duel_test tests[] = {
		{ "leaf_lost", leaf_lost },
		{ "leaf_silent", leaf_silent },
		{ "further_standbys", further_standbys },
		{ "crossed_standbys", crossed_standbys },
		{ "crosswise", lost_crosswise },
		{ "fused_crosswise", fused_crosswise },
		{ "mpib_crosswise", mpib_crosswise },
	};

	return duel_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
