/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_fanout.c - one lost device moves all its connections at once: 64 take no longer than 1.5
 * times what one takes, 256 (with the argument "256") than two
 *
 * Virtual time counts what the protocol waits for: the wire, the sockets, the driver's rounds,
 * messages that follow each other. It does not count processors; bench/failover fanout does.
 */
#include "base/check.h"
#include "sim/plugin/hunt.h"
#include "tests/sim/plugin/plain.h"

#define FAULT_AT (10 * MS)
#define MOST 1.5
#define KEYS 3

/* Both hosts have two devices; every connection is on the first, with a standby on the second. */
static void make_connections(struct sim_scenario *sc, unsigned conns, uint64_t key)
{
	struct sim_conn_spec one;

	sim_plain(sc, key);
	sc->limits.mtu = IBV_MTU_4096;
	sc->thread.gap_max_ns = 5 * US;
	sc->thread.service_ns = 5 * US;
	sc->wire.bytes_per_us = 1250;
	sc->ndevices[0] = sc->ndevices[1] = 2;
	one = sc->conn[0];
	one.whole = true;
	one.max_size = 8192;
	one.window = 4;
	one.messages = 4000 / conns; /* the wire is not empty when the fault comes */
	sc->nconns = conns;
	for (unsigned i = 0; i < conns; i++) {
		sc->conn[i] = one;
		sc->conn[i].key = one.key + i * UINT64_C(0x632be59bd9b4e019);
	}
}

/* From the fault to the last connection end whose work goes on, us of virtual time. */
static double moved_over(const char *fault, unsigned host, unsigned conns, uint64_t key)
{
	struct sim_scenario sc;
	struct sim_result r;

	make_connections(&sc, conns, key);
	sim_plain_fault(&sc, fault, host, FAULT_AT, 40 * MS);
	sim_run_apart(&sc, SIM_SOUND, &r);
	if (r.finding != SIM_NOTHING)
		fprintf(stderr, "%s: %s\n", sim_finding_name(r.finding), r.text);
	CHECK_INT(r.finding, SIM_NOTHING);
	CHECK_INT(r.failovers, 2 * conns);
	CHECK(r.moved_over_ns > FAULT_AT);
	return (double)(r.moved_over_ns - FAULT_AT) / 1e3;
}

/* As moved_over, on average over the keys. */
static double mean_move_time(const char *fault, unsigned host, unsigned conns, unsigned keys)
{
	double sum = 0;

	for (uint64_t key = 1; key <= keys; key++)
		sum += moved_over(fault, host, conns, key);
	return sum / keys;
}

struct pair {
	unsigned few, all, keys; /* connections, and keys of the many */
};

static const struct pair usual_pair = { 1, 64, 1 }, large_pair = { 2, 256, 1 };

static void compare_counts(const char *fault, unsigned host, const struct pair *pair)
{
	double few = mean_move_time(fault, host, pair->few, KEYS);
	double all = mean_move_time(fault, host, pair->all, pair->keys);

	printf("%-10s at the %-8s: %u connection%s %8.1f us, %3u connections %8.1f us, %.2f "
	       "times\n",
	       fault, host ? "receiver" : "sender", pair->few, pair->few > 1 ? "s" : " ", few,
	       pair->all, all, all / few);
	CHECK(all <= MOST * few);
}

/* What one connection's failover says over the sockets, both ends together: the difference that a
 * NIC lost for good makes to a run, by connection. For bench/fleet. */
static void print_units(void)
{
	struct sim_scenario sc;
	struct sim_result lost, well;

	make_connections(&sc, 64, 1);
	sim_run_apart(&sc, SIM_SOUND, &well);
	sim_plain_fault(&sc, "cut", 1, FAULT_AT, UINT64_C(1000) * MS);
	sim_run_apart(&sc, SIM_SOUND, &lost);
	CHECK_INT(lost.finding, SIM_NOTHING);
	CHECK_INT(lost.failovers, 2 * 64);
	CHECK(lost.control_messages > well.control_messages);
	printf("{\"messages\": %.3f, \"bytes\": %.1f}\n",
	       (double)(lost.control_messages - well.control_messages) / 64,
	       (double)(lost.control_bytes - well.control_bytes) / 64);
}

static void compare_all(const struct pair *pair)
{
	static const char *const faults[] = { "cut", "kill", "black-hole" };

	for (unsigned i = 0; i < sizeof(faults) / sizeof(*faults); i++)
		for (unsigned host = 0; host < 2; host++)
			compare_counts(faults[i], host, pair);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "units"))
		print_units();
	else if (argc > 1 && !strcmp(argv[1], "256"))
		compare_all(&large_pair);
	else
		compare_all(&usual_pair);
	return 0;
}
