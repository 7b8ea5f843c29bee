/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One of two NICs fails while messages flow, in every way and at either end: the other one carries
 * what is left, nothing is lost, doubled or late.
 */
#include "tests/plugin/failover/duel.h"

#include <unistd.h>

/* Acknowledgements that stay away are noticed after about half a second. */
#define QUICK .env = { "HA_NCCL_QP_TIMEOUT=12" }

static const struct duel_setup plain = { 0 }, quick = { QUICK };

/* Both ends have left rail 0, and messages go on flowing. */
static void must_fail_over(struct duel *d)
{
	duel_await_events(d, SENDER, EVENT("failed_over"), "\"rail\":0", 1);
	duel_await_events(d, RECEIVER, EVENT("failed_over"), "\"rail\":0", 1);
	duel_flow(d, 100);
}

static void cut_end(enum duel_end end)
{
	struct duel d;

	duel_open(&d, &plain);
	duel_cut(&d, end, 0);
	must_fail_over(&d);
	duel_heal(&d, end, 0);
	duel_await_events(&d, end, EVENT("recovered"), "\"rail\":0", 1);
	duel_flow(&d, 20);
	duel_close(&d);
}

static void cut_sender(void)
{
	cut_end(SENDER);
}

static void cut_receiver(void)
{
	cut_end(RECEIVER);
}

/* The standby's end: nothing but a word of it. */
static void cut_standby(void)
{
	struct duel d;

	duel_open(&d, &plain);
	duel_await_events(&d, SENDER, EVENT("protected"), NULL, 1);
	duel_cut(&d, RECEIVER, 1);
	duel_await_events(&d, SENDER, EVENT("not_protected"), CAUSE("rail_lost"), 1);
	duel_await_events(&d, RECEIVER, EVENT("not_protected"), CAUSE("rail_lost"), 1);
	duel_flow(&d, 50);
	HOLDS(&d, !duel_events(&d, SENDER, EVENT("suspected"), "\"rail\":0"), "rail 0 was left");
	duel_heal(&d, RECEIVER, 1);
	duel_await_events(&d, SENDER, EVENT("protected"), NULL, 2);
	duel_close(&d);
}

/* The standby works in one direction only. The pings of each new incarnation arrive, their pongs do
 * not: nobody calls a rail with that end recovered. Another may, on a machine so busy that the data
 * path seemed dead, too. */
static void half_standby(void)
{
	struct duel d;

	duel_open(&d, &plain);
	duel_await_events(&d, SENDER, EVENT("protected"), NULL, 1);
	duel_blackhole(&d, RECEIVER, 1, true);
	duel_await_events(&d, SENDER, EVENT("not_protected"), CAUSE("rail_lost"), 1);
	duel_await_events(&d, RECEIVER, EVENT("not_protected"), CAUSE("rail_lost"), 1);
	usleep(1500000); /* some incarnations are offered meanwhile */
	duel_flow(&d, 20);
	HOLDS(&d, !duel_events(&d, RECEIVER, EVENT("recovered"), "\"device\":\"soft1:1\""),
	      "the receiver believes in it");
	HOLDS(&d, !duel_events(&d, SENDER, EVENT("recovered"), "\"peer_device\":\"soft1:1\""),
	      "the sender believes in it");
	duel_heal(&d, RECEIVER, 1);
	duel_await_events(&d, SENDER, EVENT("protected"), NULL, 2);
	duel_await_events(&d, RECEIVER, EVENT("protected"), NULL, 2);
	duel_close(&d);
}

static void kill_nic(enum duel_end end)
{
	struct duel d;

	duel_open(&d, &plain);
	duel_kill(&d, end, 0);
	must_fail_over(&d);
	duel_close(&d);
}

static void kill_sender(void)
{
	kill_nic(SENDER);
}

static void kill_receiver(void)
{
	kill_nic(RECEIVER);
}

static void blackhole_end(enum duel_end end, bool tx)
{
	struct duel d;

	duel_open(&d, &quick);
	duel_blackhole(&d, end, 0, tx);
	must_fail_over(&d);
	duel_heal(&d, end, 0);
	duel_close(&d);
}

static void blackhole_sender_tx(void)
{
	blackhole_end(SENDER, true);
}

static void blackhole_sender_rx(void)
{
	blackhole_end(SENDER, false);
}

static void blackhole_receiver_tx(void)
{
	blackhole_end(RECEIVER, true);
}

static void blackhole_receiver_rx(void)
{
	blackhole_end(RECEIVER, false);
}

/* So many packets are lost that retries run out. */
static void packets_lost(void)
{
	struct duel d;

	duel_open(&d, &quick);
	duel_drop(&d, RECEIVER, 0, 90);
	must_fail_over(&d);
	duel_heal(&d, RECEIVER, 0);
	duel_close(&d);
}

static const struct duel_test tests[] = {
	{ "cut_sender", cut_sender },
	{ "cut_receiver", cut_receiver },
	{ "cut_standby", cut_standby },
	{ "half_standby", half_standby },
	{ "kill_sender", kill_sender },
	{ "kill_receiver", kill_receiver },
	{ "blackhole_sender_tx", blackhole_sender_tx },
	{ "blackhole_sender_rx", blackhole_sender_rx },
	{ "blackhole_receiver_tx", blackhole_receiver_tx },
	{ "blackhole_receiver_rx", blackhole_receiver_rx },
	{ "loss", packets_lost },
};

int main(int argc, char **argv)
{
	return duel_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
