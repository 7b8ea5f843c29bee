/* SPDX-License-Identifier: BSD-3-Clause */
/* A cut, then one of the other NIC, under each setting that changes how a failover is done, and
 * with many connections. */
#include "tests/plugin/failover/duel.h"

#include <stdlib.h>
#include <string.h>

static void run_cuts(const struct duel_setup *setup)
{
	unsigned lanes = setup->lanes + !setup->lanes;
	struct duel d;

	duel_open(&d, setup);
	duel_await_events(&d, SENDER, EVENT("protected"), NULL, (int)lanes);
	duel_cut(&d, RECEIVER, 0);
	duel_await_events(&d, SENDER, EVENT("failed_over"), "\"rail\":0", (int)lanes);
	duel_flow(&d, 30);
	duel_heal(&d, RECEIVER, 0);
	duel_await_events(&d, SENDER, EVENT("recovered"), "\"rail\":0", (int)lanes);
	duel_cut(&d, SENDER, 1);
	duel_await_events(&d, RECEIVER, EVENT("failed_over"), "\"rail\":1", (int)lanes);
	duel_flow(&d, 30);
	duel_close(&d);
}

static void ack_memory(void)
{
	run_cuts(&(const struct duel_setup) { .env = { "HA_NCCL_ACK=memory" } });
}

static void eager_registration(void)
{
	run_cuts(&(const struct duel_setup) { .env = { "HA_NCCL_MR_MODE=eager" } });
}

static void no_thread(void)
{
	run_cuts(&(const struct duel_setup) { .env = { "HA_NCCL_USE_PROGRESS_THREAD=0" } });
}

/* As on a software NIC: receives are complete when their data is there, and whoever waits polls. */
static void always_polls(void)
{
	run_cuts(&(const struct duel_setup) { .env = { "HA_NCCL_POLL_ALWAYS=1" } });
}

/* An interface without optional receives. */
static void old_interface(void)
{
	run_cuts(&(const struct duel_setup) { .version = 8 });
}

/* Many connections lose the same NIC at once, while four threads at each end drive them. */
static void many_connections(void)
{
	run_cuts(&(const struct duel_setup) { .lanes = 16, .threads = 4, .largest = 70000 });
}

static void many_kill(void)
{
	struct duel d;

	duel_open(&d, &(const struct duel_setup) { .lanes = 16, .threads = 3, .largest = 70000 });
	duel_kill(&d, SENDER, 0);
	duel_await_events(&d, SENDER, EVENT("failed_over"), "\"rail\":0", 16);
	duel_await_events(&d, RECEIVER, EVENT("failed_over"), "\"rail\":0", 16);
	duel_flow(&d, 30);
	duel_close(&d);
}

/* NCCL's variables of recovery: a path that failed is left alone for so long, while another
 * carries, and then carries again. */
static void recovery_variables(void)
{
	const struct duel_setup setup = {
		.env = { "NCCL_IB_RESILIENCY_PORT_RECOVERY=1",
			 "NCCL_IB_RESILIENCY_PORT_RECOVERY_START_DELAY=1500" },
	};
	char line[1024];
	const char *down;
	struct duel d;

	duel_open(&d, &setup);
	duel_await_events(&d, SENDER, EVENT("protected"), NULL, 1);
	duel_cut(&d, SENDER, 0);
	duel_await_events(&d, SENDER, EVENT("failed_over"), "\"rail\":0,", 1);
	duel_heal(&d, SENDER, 0);
	duel_flow(&d, 30);
	duel_await_events(&d, SENDER, EVENT("failed_back"), "\"rail\":0,", 1);
	duel_await_events(&d, SENDER, EVENT("recovered"), "\"rail\":0,", 1);
	HOLDS(&d, duel_event(&d, SENDER, EVENT("recovered"), "\"rail\":0,", line, sizeof(line)),
	      "no event");
	down = strstr(line, "it was down for ");
	HOLDS(&d, down && atof(down + strlen("it was down for ")) >= 1.5, "%s", line);
	duel_flow(&d, 30);
	duel_close(&d);
}

static const struct duel_test tests[] = {
	{ "recovery_variables", recovery_variables },
	{ "ack_memory", ack_memory },
	{ "eager", eager_registration },
	{ "no_thread", no_thread },
	{ "always_polls", always_polls },
	{ "old_interface", old_interface },
	{ "many", many_connections },
	{ "many_kill", many_kill },
};

int main(int argc, char **argv)
{
	return duel_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
