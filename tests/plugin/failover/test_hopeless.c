/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * No NIC is left for longer than HA_NCCL_MAX_RETRIES allows, or the failover is off: an error at
 * both ends, never a hang, and a line that says why.
 */
#include "tests/plugin/failover/duel.h"

/* Without failover nobody notifies the peer: an end that only waits finds out when it writes a
 * word, and a busy machine must not be taken for a cut in the 4 s that its NIC then tries. */
#define HEARTBEAT "HA_NCCL_HEARTBEAT_MS=300", "HA_NCCL_QP_TIMEOUT=17"

static void both_gone(enum duel_end end)
{
	const struct duel_setup setup = { .env = { "HA_NCCL_MAX_RETRIES=1", DUEL_LATE_TIMEOUTS } };
	struct duel d;

	duel_open(&d, &setup);
	duel_await_events(&d, SENDER, EVENT("protected"), NULL, 1);
	duel_allow_errors(&d);
	duel_cut(&d, end, 0);
	duel_cut(&d, end, 1);
	duel_await_errors(&d);
	for (int end = 0; end < ENDS; end++)
		HOLDS(&d, duel_events(&d, end, EVENT("lost"), NULL) == 1, "end %d does not say why",
		      end);
	HOLDS(&d,
	      duel_events(&d, SENDER, EVENT("lost"), CAUSE("retries")) ||
		      duel_events(&d, RECEIVER, EVENT("lost"), CAUSE("retries")),
	      "HA_NCCL_MAX_RETRIES is named nowhere");
	duel_expect_no_timeout(&d);
	duel_close(&d);
}

static void both_gone_here(void)
{
	both_gone(SENDER);
}

static void both_gone_there(void)
{
	both_gone(RECEIVER);
}

/* One end without failover is enough for both. A cut path ends the connection, as without this
 * plugin's failover. */
static void switched_off(const struct duel_setup *setup, const char *cause[ENDS])
{
	struct duel d;

	duel_open(&d, setup);
	for (int end = 0; end < ENDS; end++) {
		HOLDS(&d, duel_events(&d, end, EVENT("not_protected"), NULL) == 1,
		      "end %d says nothing, or more", end);
		HOLDS(&d, duel_events(&d, end, EVENT("not_protected"), cause[end]) == 1,
		      "end %d: not %s", end, cause[end]);
	}
	HOLDS(&d, duel_connection(&d, SENDER).nrails == 1, "a standby");
	duel_allow_errors(&d);
	duel_cut(&d, SENDER, 0);
	duel_await_errors(&d);
	for (int end = 0; end < ENDS; end++)
		HOLDS(&d, duel_events(&d, end, EVENT("lost"), NULL) == 1, "end %d does not say why",
		      end);
	duel_close(&d);
}

static void off_at_sender(void)
{
	switched_off(&(const struct duel_setup) { .env = { HEARTBEAT },
						  .env_of[SENDER] = { "HA_NCCL_ENABLE_BACKUP=0" } },
		     (const char *[]) { CAUSE("disabled"), CAUSE("peer_without") });
}

static void off_at_receiver(void)
{
	switched_off(
		&(const struct duel_setup) { .env = { HEARTBEAT },
					     .env_of[RECEIVER] = { "HA_NCCL_ENABLE_BACKUP=0" } },
		(const char *[]) { CAUSE("peer_without"), CAUSE("disabled") });
}

static void off_at_both(void)
{
	switched_off(&(const struct duel_setup) { .env = { HEARTBEAT, "HA_NCCL_ENABLE_BACKUP=0" } },
		     (const char *[]) { CAUSE("disabled"), CAUSE("disabled") });
}

static const struct duel_test tests[] = {
	{ "both_gone_here", both_gone_here }, { "both_gone_there", both_gone_there },
	{ "off_at_sender", off_at_sender },   { "off_at_receiver", off_at_receiver },
	{ "off_at_both", off_at_both },
};

int main(int argc, char **argv)
{
	return duel_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
