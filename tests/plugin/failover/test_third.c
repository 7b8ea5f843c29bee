/* SPDX-License-Identifier: BSD-3-Clause */
/* Three NICs at each end, of which two go: the messages take the third. */
#include "tests/plugin/failover/duel.h"

static const struct duel_setup three = { .nics = 3, .env = { "HA_NCCL_QP_TIMEOUT=12" } };

static void open_three(struct duel *d)
{
	duel_open(d, &three);
	duel_await_events(d, SENDER, EVENT("protected"), NULL, 1);
	duel_await_events(d, RECEIVER, EVENT("protected"), NULL, 1);
}

/* The NIC that carries dies, then the standby's port goes down. */
static void lose_two(enum duel_end first, enum duel_end second)
{
	struct duel d;

	open_three(&d);
	duel_kill(&d, first, 0);
	duel_await_events(&d, SENDER, EVENT("failed_over"), "\"rail\":0", 1);
	duel_await_events(&d, RECEIVER, EVENT("failed_over"), "\"rail\":0", 1);
	duel_cut(&d, second, 1);
	duel_await_events(&d, SENDER, EVENT("failed_over"), "\"rail\":1", 1);
	duel_await_events(&d, RECEIVER, EVENT("failed_over"), "\"rail\":1", 1);
	duel_flow(&d, 50);
	HOLDS(&d, !duel_events(&d, SENDER, EVENT("lost"), NULL), "the sender gave up");
	duel_close(&d);
}

static void third_of_sender(void)
{
	lose_two(SENDER, SENDER);
}

static void third_of_receiver(void)
{
	lose_two(RECEIVER, RECEIVER);
}

static void third_of_both(void)
{
	lose_two(SENDER, RECEIVER);
}

/* The standby's port goes down and stays down: another becomes the standby, and carries when the
 * first NIC goes, too. */
static void third_stands_by(void)
{
	struct duel d;

	open_three(&d);
	duel_cut(&d, RECEIVER, 1);
	duel_await_events(&d, RECEIVER, EVENT("protected"), "standby soft2:1", 1);
	duel_await_events(&d, SENDER, EVENT("protected"), NULL, 2);
	duel_cut(&d, SENDER, 0);
	duel_await_events(&d, SENDER, EVENT("failed_over"), "\"rail\":0", 1);
	duel_await_events(&d, RECEIVER, EVENT("failed_over"), "\"rail\":0", 1);
	duel_flow(&d, 50);
	duel_close(&d);
}

int main(int argc, char **argv)
{
	static const struct duel_test tests[] = {
		{ "third_of_sender", third_of_sender },
		{ "third_of_receiver", third_of_receiver },
		{ "third_of_both", third_of_both },
		{ "third_stands_by", third_stands_by },
	};

	return duel_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
