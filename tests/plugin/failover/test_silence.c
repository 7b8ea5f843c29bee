/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A path that falls silent is left because its standby answers and it does not, long before any
 * time-out (HA_NCCL_SILENCE_MS). What decides is the cause that the ends name: the NICs' own
 * time-outs are set to minutes, so a failover that waited for them shows. A software NIC is no
 * faster than its process: the limit is longer than the default, and a false alarm of a busy
 * machine decides nothing.
 */
#include "tests/base/share.h"
#include "tests/plugin/failover/duel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EARLY "HA_NCCL_SILENCE_MS=100"
/* A driver that looks more rarely than the limit, for want of a processor, asks again each time. A
 * rail without work is looked at once in a heartbeat: where that was so before the first message of
 * a test, the fault is seen at the next one. */
#define NEVER "HA_NCCL_QP_TIMEOUT=24", "HA_NCCL_HEARTBEAT_MS=5000", "HA_NCCL_RTO_MS=60000"
#define SILENT EVENT("suspected"), CAUSE("silence")
#define OF_RAIL_0 CAUSE("silence"), "\"rail\":0" /* the first of them is the suspicion */

/* How often an event was reported, at both ends. */
static int count_both_ends(struct duel *d, const char *a, const char *b)
{
	return duel_events(d, SENDER, a, b) + duel_events(d, RECEIVER, a, b);
}

static void end_undecided(struct duel *d, const char *what)
{
	printf("machine too busy: %s\n", what);
	duel_allow_errors(d);
	duel_close(d);
	exit(SHARE_BUSY_STATUS);
}

static void open_protected(struct duel *d, const struct duel_setup *setup)
{
	duel_open(d, setup);
	for (int end = 0; end < ENDS; end++)
		duel_await_events(d, end, EVENT("protected"), NULL, (int)d->setup.lanes);
	duel_flow(d, 50);
	if (count_both_ends(d, SILENT))
		end_undecided(d, "a path was taken for silent before the fault");
}

static void blackhole_end(enum duel_end end, bool tx)
{
	const struct duel_setup setup = { .lanes = 2, .env = { EARLY, NEVER } };
	char line[2048], status[65536];
	struct duel d;
	int reporter;

	open_protected(&d, &setup);
	duel_blackhole(&d, end, 0, tx);
	duel_await_events(&d, SENDER, EVENT("failed_over"), "\"rail\":0", 2);
	duel_await_events(&d, RECEIVER, EVENT("failed_over"), "\"rail\":0", 2);
	duel_flow(&d, 100);
	if (count_both_ends(&d, EVENT("false_alarm"), NULL))
		end_undecided(&d, "a path was taken for silent that was not");
	duel_expect_no_timeout(&d);
	HOLDS(&d, count_both_ends(&d, SILENT) >= 1, "nobody names the silence");
	/* of this rail: on a busy machine others may fall silent later */
	reporter = duel_events(&d, SENDER, OF_RAIL_0) ? SENDER : RECEIVER;
	HOLDS(&d, duel_event(&d, reporter, OF_RAIL_0, line, sizeof(line)), "the event");
	HOLDS(&d, strstr(line, "silent for ") && strstr(line, "rail 1 (soft1:1) answered"), "%s",
	      line);
	duel_status(&d, reporter, status, sizeof(status));
	HOLDS(&d, strstr(status, "silence: silent for "), "%s", status);
	duel_heal(&d, end, 0);
	duel_close(&d);
}

static void silent_sender_tx(void)
{
	blackhole_end(SENDER, true);
}

static void silent_sender_rx(void)
{
	blackhole_end(SENDER, false);
}

static void silent_receiver_tx(void)
{
	blackhole_end(RECEIVER, true);
}

static void silent_receiver_rx(void)
{
	blackhole_end(RECEIVER, false);
}

/* 0 switches it off: the NIC decides, as ever. */
static void silent_off(void)
{
	const struct duel_setup setup = { .env = { "HA_NCCL_SILENCE_MS=0",
						   "HA_NCCL_QP_TIMEOUT=12" } };
	struct duel d;

	duel_open(&d, &setup);
	duel_await_events(&d, SENDER, EVENT("protected"), NULL, 1);
	duel_blackhole(&d, RECEIVER, 0, false);
	duel_await_events(&d, SENDER, EVENT("failed_over"), "\"rail\":0", 1);
	duel_await_events(&d, RECEIVER, EVENT("failed_over"), "\"rail\":0", 1);
	HOLDS(&d, !count_both_ends(&d, SILENT), "it is not off");
	duel_heal(&d, RECEIVER, 0);
	duel_close(&d);
}

/* It answers again while it is being left: counted, logged, and in `ha status`. */
static void silent_and_back(void)
{
	const struct duel_setup setup = { .env = { EARLY, "HA_NCCL_QP_TIMEOUT=16",
						   "HA_NCCL_HEARTBEAT_MS=5000",
						   "HA_NCCL_RTO_MS=60000" } };
	struct duel_wait wait = duel_wait("a silence");
	char status[65536];
	struct duel d;
	int reporter;

	open_protected(&d, &setup);
	duel_blackhole(&d, RECEIVER, 0, false);
	while (!count_both_ends(&d, OF_RAIL_0)) {
		if (count_both_ends(&d, EVENT("suspected"), CAUSE("work_failed")))
			end_undecided(&d,
				      "the NIC's retries ended before 100 ms of silence were seen");
		duel_pause(&d, &wait);
	}
	duel_heal(&d, RECEIVER, 0);
	reporter = duel_events(&d, SENDER, OF_RAIL_0) ? SENDER : RECEIVER;
	duel_await_events(&d, reporter, EVENT("recovered"), "\"rail\":0", 1);
	duel_flow(&d, 50);
	if (!duel_events(&d, reporter, EVENT("false_alarm"), CAUSE("silence")))
		end_undecided(&d, "it took more than a second to come back");
	duel_status(&d, reporter, status, sizeof(status));
	/* one, or more on a busy machine, whose other rail falls silent, too */
	HOLDS(&d, strstr(status, " of a silent path"), "%s", status);
	duel_close(&d);
}

/* A peer that is stopped answers on no path: whoever waits for it stays. */
static void silent_peer(enum duel_end end)
{
	const struct duel_setup setup = { .lanes = 2, .env = { EARLY, NEVER } };
	struct duel d;

	open_protected(&d, &setup);
	duel_stop(&d, end, 2);
	HOLDS(&d, !duel_events(&d, !end, EVENT("suspected"), NULL),
	      "a path was suspected while the peer was stopped");
	duel_flow(&d, 100);
	if (count_both_ends(&d, EVENT("false_alarm"), NULL))
		end_undecided(&d, "one of its NICs went on long before the other");
	HOLDS(&d, !count_both_ends(&d, EVENT("suspected"), NULL), "somebody has moved");
	duel_close(&d);
}

static void silent_stopped_sender(void)
{
	silent_peer(SENDER);
}

static void silent_stopped_receiver(void)
{
	silent_peer(RECEIVER);
}

/* Packets get lost, one in a hundred; whatever is taken for a silence by that is so once at most.
 */
static void silent_loss(void)
{
	const struct duel_setup setup = { .env = { "HA_NCCL_SILENCE_MS=5" } };
	struct duel d;

	duel_open(&d, &setup);
	duel_await_events(&d, SENDER, EVENT("protected"), NULL, 1);
	for (int end = 0; end < ENDS; end++)
		for (int nic = 0; nic < 2; nic++)
			duel_drop(&d, end, nic, 1);
	duel_flow(&d, 500);
	for (int end = 0; end < ENDS; end++)
		for (int nic = 0; nic < 2; nic++) {
			char device[32];

			snprintf(device, sizeof(device), "\"device\":\"soft%d:1\"", nic);
			HOLDS(&d, duel_events(&d, end, EVENT("false_alarm"), device) <= 1,
			      "more than one false alarm of soft%d", nic);
		}
	duel_close(&d);
}

static const struct duel_test tests[] = {
	{ "silent_sender_tx", silent_sender_tx },
	{ "silent_sender_rx", silent_sender_rx },
	{ "silent_receiver_tx", silent_receiver_tx },
	{ "silent_receiver_rx", silent_receiver_rx },
	{ "silent_off", silent_off },
	{ "silent_and_back", silent_and_back },
	{ "silent_stopped_sender", silent_stopped_sender },
	{ "silent_stopped_receiver", silent_stopped_receiver },
	{ "silent_loss", silent_loss },
};

int main(int argc, char **argv)
{
	return duel_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
