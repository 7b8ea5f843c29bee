/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A NIC dies (IBV_EVENT_DEVICE_FATAL) and comes back, under its name or another: the connections
 * that were there are protected by it again, with the buffers they have (registered before its
 * death, while it was away, and after), and go on over it when the other NIC dies.
 */
#include "tests/plugin/failover/duel.h"

#define BACK EVENT("device"), CAUSE("device_back")
#define WHOLE EVENT("protected"), "against the loss of a NIC\""

static const struct duel_setup two = { .env = { DUEL_LATE_TIMEOUTS } };

static int count_events(struct duel *d, enum duel_end end, const char *event)
{
	return duel_events(d, end, event, NULL);
}

/* A NIC of these ends dies, and what was on it moves. */
static void lose_nic(struct duel *d, unsigned ends, int nic)
{
	int moved[ENDS], end;

	for (end = 0; end < ENDS; end++)
		moved[end] = count_events(d, end, EVENT("failed_over"));
	for (end = 0; end < ENDS; end++)
		if (ends >> end & 1)
			duel_kill(d, end, nic);
	for (end = 0; end < ENDS; end++)
		duel_await_events(d, end, EVENT("failed_over"), NULL, moved[end] + 1);
	duel_flow(d, 20);
}

/* It is back, and protects. */
static void regain_nic(struct duel *d, unsigned ends, int nic, const char *name)
{
	int whole[ENDS], back[ENDS], end;

	for (end = 0; end < ENDS; end++) {
		whole[end] = duel_events(d, end, WHOLE);
		back[end] = duel_events(d, end, BACK);
	}
	for (end = 0; end < ENDS; end++)
		if (ends >> end & 1)
			duel_restore(d, end, nic, name);
	for (end = 0; end < ENDS; end++)
		if (ends >> end & 1)
			duel_await_events(d, end, BACK, back[end] + 1);
	for (end = 0; end < ENDS; end++)
		duel_await_events(d, end, WHOLE, whole[end] + 1);
	duel_flow(d, 20);
}

static void open_protected(struct duel *d, const struct duel_setup *setup)
{
	duel_open(d, setup);
	for (int end = 0; end < ENDS; end++)
		duel_await_events(d, end, WHOLE, 1);
}

/* The one dies, is back, and then the other dies. */
static void there_and_back(const struct duel_setup *setup, unsigned ends, int first,
			   const char *name)
{
	struct duel d;

	open_protected(&d, setup);
	lose_nic(&d, ends, first);
	regain_nic(&d, ends, first, name);
	lose_nic(&d, ends, !first);
	HOLDS(&d,
	      !count_events(&d, SENDER, EVENT("lost")) &&
		      !count_events(&d, RECEIVER, EVENT("lost")),
	      "a connection was given up");
	duel_close(&d);
}

static void back_at_sender(void)
{
	there_and_back(&two, 1 << SENDER, 0, NULL);
}

static void back_at_receiver(void)
{
	there_and_back(&two, 1 << RECEIVER, 0, NULL);
}

static void back_at_both(void)
{
	there_and_back(&two, 1 << SENDER | 1 << RECEIVER, 0, NULL);
}

static void back_as_another(void)
{
	there_and_back(&two, 1 << SENDER | 1 << RECEIVER, 0, "mlx5_4");
}

static void back_without_thread(void)
{
	static const struct duel_setup setup = {
		.env = { DUEL_LATE_TIMEOUTS, "HA_NCCL_USE_PROGRESS_THREAD=0",
			 /* a call of many makes a round: the tests' ends sleep between them */
			 "HA_NCCL_POLL_STANDBY_INTERVAL=2" }
	};

	there_and_back(&setup, 1 << SENDER | 1 << RECEIVER, 0, NULL);
}

static void back_of_many(void)
{
	static const struct duel_setup setup = {
		.lanes = 12, .threads = 3, .largest = 65536, .env = { DUEL_LATE_TIMEOUTS }
	};

	there_and_back(&setup, 1 << SENDER | 1 << RECEIVER, 0, NULL);
}

/* The standby's: nothing moves, but it is missing until it is back. */
static void back_of_standby(void)
{
	struct duel d;

	open_protected(&d, &two);
	for (int end = 0; end < ENDS; end++) {
		duel_kill(&d, end, 1);
		duel_await_events(&d, end, EVENT("device"), CAUSE("device_failed"), 1);
	}
	duel_await_events(&d, SENDER, EVENT("not_protected"), NULL, 1);
	duel_await_events(&d, RECEIVER, EVENT("not_protected"), NULL, 1);
	duel_flow(&d, 20);
	regain_nic(&d, 1 << SENDER | 1 << RECEIVER, 1, NULL);
	lose_nic(&d, 1 << SENDER | 1 << RECEIVER, 0);
	duel_close(&d);
}

/* Again and again, by turns. */
static void back_and_back(void)
{
	struct duel d;

	open_protected(&d, &two);
	for (int i = 0; i < 4; i++) {
		lose_nic(&d, 1 << SENDER, i % 2);
		regain_nic(&d, 1 << SENDER, i % 2, NULL);
	}
	HOLDS(&d, duel_events(&d, SENDER, BACK) == 4, "it was reported %d times",
	      duel_events(&d, SENDER, BACK));
	duel_close(&d);
}

/* All NICs of a fused device are wanted: the one that is back carries its share again. */
static void back_fused(void)
{
	static const struct duel_setup fused = { .fused = true, .env = { DUEL_LATE_TIMEOUTS } };
	struct duel d;

	duel_open(&d, &fused);
	lose_nic(&d, 1 << SENDER, 0);
	duel_restore(&d, SENDER, 0, NULL);
	duel_await_events(&d, SENDER, BACK, 1);
	duel_await_events(&d, SENDER, EVENT("failed_back"), "\"rail\":0", 1);
	duel_flow(&d, 20);
	lose_nic(&d, 1 << SENDER, 1);
	duel_close(&d);
}

int main(int argc, char **argv)
{
	static const struct duel_test tests[] = {
		{ "back_at_sender", back_at_sender },
		{ "back_at_receiver", back_at_receiver },
		{ "back_at_both", back_at_both },
		{ "back_as_another", back_as_another },
		{ "back_of_standby", back_of_standby },
		{ "back_and_back", back_and_back },
		{ "back_fused", back_fused },
		{ "back_without_thread", back_without_thread },
		{ "back_of_many", back_of_many },
	};

	return duel_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
