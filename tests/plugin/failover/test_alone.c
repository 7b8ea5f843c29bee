/* SPDX-License-Identifier: BSD-3-Clause */
/* One NIC alone: what breaks is built anew on the same port, and the messages wait for it. */
#include "tests/plugin/failover/duel.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

static const struct duel_setup alone = { .env = { "NCCL_IB_HCA=soft0", "HA_NCCL_QP_TIMEOUT=12" } };

static void open_alone(struct duel *d, const struct duel_setup *setup)
{
	duel_open(d, setup);
	for (int end = 0; end < ENDS; end++)
		HOLDS(d, duel_events(d, end, EVENT("not_protected"), CAUSE("no_standby")) == 1,
		      "end %d", end);
}

static void alone_flap(void)
{
	struct duel d;

	open_alone(&d, &alone);
	for (int round = 0; round < 8; round++) {
		duel_cut(&d, round % ENDS, 0);
		duel_await_events(&d, round % ENDS, EVENT("device"), CAUSE("port_down"),
				  round / 2 + 1);
		duel_heal(&d, round % ENDS, 0);
		duel_flow(&d, 30);
	}
	HOLDS(&d, duel_events(&d, SENDER, EVENT("recovered"), "\"rail\":0"), "never built anew");
	HOLDS(&d, duel_events(&d, RECEIVER, EVENT("recovered"), "\"rail\":0"), "never built anew");
	duel_close(&d);
}

/* Retries run out although the port is up all the time. Nobody but the sender's NIC can be the
 * first to notice. */
static void alone_error(void)
{
	const struct duel_setup short_timeout = {
		.env = { "NCCL_IB_HCA=soft0", "HA_NCCL_HEARTBEAT_MS=20000",
			 "HA_NCCL_RTO_MS=60000" },
		.env_of = { [SENDER] = { "HA_NCCL_QP_TIMEOUT=12" },
			    [RECEIVER] = { "HA_NCCL_QP_TIMEOUT=20" } },
	};
	struct duel d;

	open_alone(&d, &short_timeout);
	duel_blackhole(&d, SENDER, 0, true);
	duel_await_events(&d, SENDER, EVENT("suspected"), CAUSE("work_failed"), 1);
	duel_heal(&d, SENDER, 0);
	duel_flow(&d, 50);
	duel_await_events(&d, SENDER, EVENT("recovered"), "\"rail\":0", 1);
	duel_await_events(&d, SENDER, EVENT("failed_over"), "\"rail\":0", 1);
	duel_close(&d);
}

/*
 * It is gone for good: nothing to wait for. The receiver's device reports it and the receiver
 * notifies the sender, before any time-out.
 */
static void alone_kill(void)
{
	const struct duel_setup setup = { .env = { "NCCL_IB_HCA=soft0", DUEL_LATE_TIMEOUTS } };
	struct duel d;

	open_alone(&d, &setup);
	duel_allow_errors(&d);
	duel_kill(&d, RECEIVER, 0);
	duel_await_errors(&d);
	HOLDS(&d, duel_events(&d, RECEIVER, EVENT("lost"), CAUSE("device_failed")) == 1,
	      "the cause");
	HOLDS(&d, duel_events(&d, SENDER, EVENT("lost"), NULL) == 1, "the cause");
	duel_expect_no_timeout(&d);
	duel_close(&d);
}

/* The port gets another address: the old GID is gone, the next incarnation has the new one.
 * Interfaces of a network of our own. */
static void alone_gid(void)
{
	const struct duel_setup setup = { .env_of = { { "SOFTROCE_DEVICES=ha_a" },
						      { "SOFTROCE_DEVICES=ha_b" } } };
	struct duel d;

	if (unshare(CLONE_NEWNET) ||
	    system("ip link set lo up && ip link add ha_a type veth peer name ha_b && ip addr add "
		   "10.9.1.1/24 dev ha_a && "
		   "ip addr add 10.9.2.1/24 dev ha_b && ip link set ha_a up && ip link set ha_b up "
		   "&& "
		   "for i in $(seq 1200); do ip link show ha_a | grep -q 'state UP' && ip link "
		   "show ha_b | "
		   "grep -q 'state UP' && exit 0; sleep 0.05; done; exit 1")) {
		printf("skipped: no network namespaces or veth interfaces here\n");
		exit(77);
	}
	duel_open(&d, &setup);
	HOLDS(&d, !system("ip addr add 10.9.3.1/24 dev ha_a && ip addr del 10.9.1.1/24 dev ha_a"),
	      "another address");
	duel_await_events(&d, SENDER, EVENT("recovered"), "\"rail\":0", 1);
	duel_flow(&d, 50);
	HOLDS(&d, !system("ip addr add 10.9.4.1/24 dev ha_b && ip addr del 10.9.2.1/24 dev ha_b"),
	      "another address");
	duel_await_events(&d, RECEIVER, EVENT("recovered"), "\"rail\":0", 2);
	duel_flow(&d, 50);
	duel_close(&d);
}

static const struct duel_test tests[] = {
	{ "alone_flap", alone_flap },
	{ "alone_error", alone_error },
	{ "alone_kill", alone_kill },
	{ "alone_gid", alone_gid },
};

int main(int argc, char **argv)
{
	return duel_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
