/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NICs that fail and come back, again and again: there is nearly always one that works, and never
 * none for longer than HA_NCCL_MAX_RETRIES says, so every message arrives; which of them carries
 * the data afterwards is a setting.
 */
#include "tests/plugin/failover/duel.h"

#include <stdlib.h>
#include <unistd.h>

#define ROUNDS 20

static const struct duel_setup small = { .largest = 300000 };

/* One is cut and heals, then the other one. */
static void alternate_cuts(void)
{
	struct duel d;

	duel_open(&d, &small);
	for (int round = 0; round < ROUNDS; round++) {
		enum duel_end end = round / 2 % ENDS;

		duel_cut(&d, end, round % 2);
		duel_flow(&d, 30);
		duel_heal(&d, end, round % 2);
		duel_flow(&d, 30);
	}
	duel_close(&d);
}

/* Either NIC at either end, up or down, at any moment; several may be down, but not for long. */
static void cut_at_random(unsigned seed)
{
	bool down[ENDS][2] = { 0 };
	struct duel d;

	srandom(seed);
	duel_open(&d, &small);
	for (int step = 0; step < 3 * ROUNDS; step++) {
		long dice = random();
		enum duel_end end = dice / 2 % 2;
		int nic = dice / 4 % 2;

		if (down[end][nic])
			duel_heal(&d, end, nic);
		else
			duel_cut(&d, end, nic);
		down[end][nic] ^= true;
		usleep((useconds_t)(dice / 8 % 40000));
		if (step % ROUNDS == ROUNDS - 1) {
			for (int k = 0; k < 4; k++)
				duel_heal(&d, k / 2, k % 2);
			for (int k = 0; k < 4; k++)
				down[k / 2][k % 2] = false;
			duel_flow(&d, 30);
		}
	}
	duel_close(&d);
}

static void wild_1(void)
{
	cut_at_random(1);
}

static void wild_2(void)
{
	cut_at_random(2);
}

/* While both are away for a moment a further pair may be tried: it stays in the list of rails. */
static unsigned await_weight(struct duel *d, enum duel_end end, int rail)
{
	struct duel_wait wait = duel_wait("two rails that are up, on the status page");
	struct ha_status_connection c;

	for (;; duel_pause(d, &wait)) {
		c = duel_connection(d, end);
		if (c.nrails >= 2 && c.rail[0].state == HA_STATUS_RAIL_UP &&
		    c.rail[1].state == HA_STATUS_RAIL_UP)
			return c.rail[rail].weight;
	}
}

/* With failback the NIC that was cut carries the data again, otherwise it is the standby from then
 * on. */
static void check_roles(const struct duel_setup *setup, bool back)
{
	const char *pair = back ? "soft0:1 ⇄ standby soft1:1" : "soft1:1 ⇄ standby soft0:1";
	struct duel d;

	duel_open(&d, setup);
	duel_await_events(&d, SENDER, EVENT("protected"), NULL, 1);
	duel_cut(&d, SENDER, 0);
	duel_await_events(&d, SENDER, EVENT("failed_over"), "\"rail\":0", 1);
	duel_flow(&d, 30);
	duel_heal(&d, SENDER, 0);
	for (int end = 0; end < ENDS; end++) {
		duel_await_events(&d, end, EVENT("recovered"), "\"rail\":0", 1);
		duel_await_events(&d, end, EVENT("protected"), pair, back ? 2 : 1);
		HOLDS(&d, duel_events(&d, end, EVENT("failed_back"), "\"rail\":0") == back,
		      "end %d", end);
		HOLDS(&d, !await_weight(&d, end, back) && await_weight(&d, end, !back),
		      "end %d: rail %d carries data", end, back);
	}
	duel_flow(&d, 30);
	duel_close(&d);
}

/* The cut is an event of the port; no other path may seem lost to a busy machine. */
static void failback_0(void)
{
	check_roles(&(const struct duel_setup) { .env = { "HA_NCCL_ENABLE_FAILBACK=0",
							  DUEL_LATE_TIMEOUTS } },
		    false);
}

static void failback_1(void)
{
	check_roles(&(const struct duel_setup) { .env = { "HA_NCCL_ENABLE_FAILBACK=1",
							  DUEL_LATE_TIMEOUTS } },
		    true);
}

static const struct duel_test tests[] = {
	{ "alternate", alternate_cuts }, { "wild_1", wild_1 },         { "wild_2", wild_2 },
	{ "failback_0", failback_0 },    { "failback_1", failback_1 },
};

int main(int argc, char **argv)
{
	return duel_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
