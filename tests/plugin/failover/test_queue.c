/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues that fail, which no incarnation on them survives, and ports that come back
 * with another speed. */
#include "tests/plugin/failover/duel.h"

#include <stdio.h>

/* With a standby: it takes over, and the rail comes back on another queue. As often as there are
 * places for failed ones, and more. */
static void srq_error(void)
{
	const struct duel_setup setup = { .lanes = 3 };
	struct duel d;

	duel_open(&d, &setup);
	duel_await_events(&d, SENDER, EVENT("protected"), NULL, 3);
	for (int round = 1; round <= 6; round++) {
		int nic = (round + 1) % 2; /* the one that carries: there is no fail-back */

		duel_fail_srqs(&d, RECEIVER, nic);
		duel_await_events(&d, RECEIVER, EVENT("failed_over"), CAUSE("queue_error"),
				  3 * round);
		duel_flow(&d, 30);
		duel_await_events(&d, RECEIVER, EVENT("recovered"), NULL, 3 * round);
		duel_flow(&d, 30);
	}
	HOLDS(&d, duel_logged(&d, RECEIVER, "another shared receive queue") == 6,
	      "not replaced each time");
	duel_close(&d);
}

/* One NIC alone: the messages wait until the queue and the incarnations on it are made anew. At
 * both ends: a sender's queue pair is on such a queue too. */
static void srq_error_alone(void)
{
	const struct duel_setup setup = { .env = { "NCCL_IB_HCA=soft0" } };
	struct duel d;

	duel_open(&d, &setup);
	for (int round = 1; round <= 2; round++)
		for (int end = 0; end < ENDS; end++) {
			duel_fail_srqs(&d, end, 0);
			duel_await_events(&d, end, EVENT("recovered"), "\"rail\":0,",
					  2 * round - 1 + end);
			duel_flow(&d, 30);
		}
	duel_close(&d);
}

/* The shares of a fused device follow the speeds of its ports. */
static void port_changes_speed(void)
{
	const struct duel_setup setup = { .fused = true };
	struct duel d;
	char line[1024];

	duel_open(&d, &setup);
	duel_await_events(&d, SENDER, EVENT("protected"), NULL, 1);
	HOLDS(&d, duel_connection(&d, SENDER).rail[0].weight == 512, "they do not begin equal");
	duel_negotiate(&d, SENDER, 0, 2500);
	duel_await_events(&d, SENDER, EVENT("device"), "its speed is 2500 Mb/s now and was", 1);
	duel_await_events(&d, SENDER, EVENT("failed_back"), "\"rail\":0,", 1);
	duel_flow(&d, 30);
	HOLDS(&d,
	      duel_event(&d, SENDER, EVENT("device"), "its speed is", line, sizeof(line)) &&
		      duel_logged(&d, SENDER, "look at its cable"),
	      "no advice");
	HOLDS(&d, duel_connection(&d, SENDER).rail[0].weight < 512, "weight %u on the slow port",
	      duel_connection(&d, SENDER).rail[0].weight);
	HOLDS(&d,
	      duel_connection(&d, SENDER).rail[0].weight +
			      duel_connection(&d, SENDER).rail[1].weight ==
		      1024,
	      "not all of it");
	duel_heal(&d, SENDER, 0);
	duel_await_events(&d, SENDER, EVENT("failed_back"), "\"rail\":0,", 2);
	duel_flow(&d, 30);
	HOLDS(&d, duel_connection(&d, SENDER).rail[0].weight == 512, "weight %u on the mended port",
	      duel_connection(&d, SENDER).rail[0].weight);
	duel_close(&d);
}

int main(int argc, char **argv)
{
	static const struct duel_test tests[] = { { "srq_error", srq_error },
						  { "srq_error_alone", srq_error_alone },
						  { "speed", port_changes_speed } };

	return duel_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
