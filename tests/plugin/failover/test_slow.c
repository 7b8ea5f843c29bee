/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A NIC that works and is far too slow becomes the standby while it stays so
 * (HA_NCCL_SLOW_FACTOR). Nothing is lost, so no other detector may move the traffic: their
 * time-outs are set to minutes. A NIC that is limited takes thousands of times as long and the
 * factor is 100: a busy machine alone hardly reaches it, nor half of it, above which the path does
 * not return; where it does, that decides nothing or takes longer.
 */
#include "tests/base/share.h"
#include "tests/plugin/failover/duel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FACTOR 100
#define FACTOR_TEXT "HA_NCCL_SLOW_FACTOR=100"
#define OTHERS_OFF "HA_NCCL_QP_TIMEOUT=24", "HA_NCCL_RTO_MS=60000", "HA_NCCL_SILENCE_MS=0"
#define RATE_KBS 100 /* of a NIC that moves hundreds of MB/s */
#define LARGEST 16384
#define ROUNDED 0.1 /* the event has one decimal place */
#define ROW 8       /* messages in a row that are quick again before the path carries again */
#define OF_RAIL_0 "\"rail\":0"

static void end_undecided(struct duel *d, const char *what)
{
	printf("machine too busy: %s\n", what);
	duel_allow_errors(d);
	duel_close(d);
	exit(SHARE_BUSY_STATUS);
}

/* The numbers of the event: how many times as long as before it takes here, and there. */
static void read_times(struct duel *d, const char *line, double *here, double *there)
{
	const char *first = strstr(line, "messages take "), *second = strstr(line, " queue), ");

	HOLDS(d, first && sscanf(first, "messages take %lf times as long", here) == 1, "%s", line);
	HOLDS(d, second && sscanf(second, " queue), %lf times on rail 1 (soft1:1)", there) == 1,
	      "%s", line);
}

static void check_slow_event(struct duel *d)
{
	double here = 0, there = 0;
	char line[2048];

	HOLDS(d, duel_event(d, SENDER, EVENT("slow"), NULL, line, sizeof(line)), "the event");
	HOLDS(d, strstr(line, OF_RAIL_0) && strstr(line, "\"device\":\"soft0:1\""), "%s", line);
	read_times(d, line, &here, &there);
	HOLDS(d, here >= FACTOR && here >= FACTOR * (there - ROUNDED), "%s", line);
}

/* It stays away while the NIC is slow; what is measured on the other path bears it out. */
static void check_it_stays(struct duel *d)
{
	duel_flow(d, 1000);
	if (duel_events(d, SENDER, EVENT("failed_back"), "with all of the traffic"))
		end_undecided(d, "messages were as slow on the other path");
	HOLDS(d, !duel_events(d, SENDER, EVENT("failed_back"), NULL), "it is back while slow");
}

static void check_return(struct duel *d)
{
	char line[2048];
	unsigned row = 0;
	const char *text;

	duel_await_events(d, SENDER, EVENT("failed_back"), OF_RAIL_0, 1);
	HOLDS(d, duel_event(d, SENDER, EVENT("failed_back"), NULL, line, sizeof(line)), "it");
	if (strstr(line, "with all of the traffic"))
		end_undecided(d, "messages were as slow on the other path");
	text = strstr(line, "\"text\":\"");
	HOLDS(d, text && sscanf(text, "\"text\":\"%u messages in a row took", &row) == 1, "%s",
	      line);
	HOLDS(d, row >= ROW, "%s", line);
}

static void slow_rate(void)
{
	const struct duel_setup setup = {
		.largest = LARGEST,
		.env = { FACTOR_TEXT, "HA_NCCL_HEARTBEAT_MS=50", OTHERS_OFF },
	};
	struct duel d;

	duel_open(&d, &setup);
	for (int end = 0; end < ENDS; end++)
		duel_await_events(&d, end, EVENT("protected"), NULL, 1);
	duel_flow(&d, 3000); /* it learns how long messages of each size take */
	if (duel_events(&d, SENDER, EVENT("slow"), NULL))
		end_undecided(&d, "a path was slow before it was limited");
	duel_rate(&d, SENDER, 0, RATE_KBS);
	duel_await_events(&d, SENDER, EVENT("slow"), NULL, 1);
	check_slow_event(&d);
	check_it_stays(&d);
	duel_heal(&d, SENDER, 0);
	check_return(&d);
	duel_flow(&d, 100);
	for (int end = 0; end < ENDS; end++)
		HOLDS(&d, !duel_events(&d, end, EVENT("failed_over"), NULL), "a path was lost");
	duel_close(&d);
}

static const struct duel_test tests[] = {
	{ "slow_rate", slow_rate },
};

int main(int argc, char **argv)
{
	return duel_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
