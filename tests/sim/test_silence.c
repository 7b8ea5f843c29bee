/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_silence.c - a NIC that falls silent and never says why is given up after the soft time-out: not sooner, not a heartbeat later
 *
 * The devices take retry_cnt 7 for "without end", as Linux's rdma_rxe does, so that the soft time-out (HA_NCCL_RTO_MS) is all there is. A
 * black hole begins at moments that lie anyhow to the looks and beats of beat.c. Virtual time, so exact.
 */
#include "sim/hunt.h"
#include "tests/base/check.h"
#include "tests/sim/plain.h"

#define RTO_MS 1000
#define EARLY 0.03 /* the distance of two looks, */
#define LATE 0.06 /* twice that, and the failover itself */
#define KEYS 24

/* What the time-out took, ms. `think_ms`: the longest pause between two messages. `data`: both rails carry data. */
static double silence(uint64_t key, unsigned heartbeat_ms, unsigned think_ms, bool data)
{
	uint64_t at = (think_ms > 100 ? 1500 : 300) * MS + key * 37 * MS;
	struct sim_scenario sc;
	struct sim_result r;

	sim_plain(&sc, key);
	sc.ndevices[0] = sc.ndevices[1] = 2;
	for (unsigned h = 0; h < 2; h++) {
		sc.host[h].rto_ms = RTO_MS;
		sc.host[h].heartbeat_ms = (int)heartbeat_ms;
	}
	if (data) {
		sc.conn[0].nrails[0] = sc.conn[0].nrails[1] = 2;
		sc.conn[0].rail[0][1] = sc.conn[0].rail[1][1] = 1;
	}
	sc.conn[0].messages = (think_ms > 100 ? 45000 : 18000) / think_ms;
	sc.conn[0].think_ns = think_ms * MS;
	sc.limits.retry_forever = true;
	sim_plain_fault(&sc, "black-hole", 0, at, 10 * RTO_MS * MS);
	sim_run_apart(&sc, SIM_SOUND, &r);
	if (r.finding != SIM_NOTHING)
		fprintf(stderr, "%s: %s\n", sim_finding_name(r.finding), r.text);
	CHECK_INT(r.finding, SIM_NOTHING);
	CHECK_INT(r.failovers, 2);
	return (double)(r.moved_over_ns - at) / 1e6;
}

/* Never sooner than the time-out; later by `late_ms` at most, and what the looks and the failover take. */
static void spread(unsigned heartbeat_ms, unsigned think_ms, bool data, unsigned late_ms)
{
	double least = 1e9, most = 0;

	for (uint64_t key = 1; key <= KEYS; key++) {
		double took = silence(key, heartbeat_ms, think_ms, data);

		least = took < least ? took : least;
		most = took > most ? took : most;
	}
	printf("heartbeat %4u ms, pauses up to %4u ms%s: given up and moved after %.1f to %.1f ms\n", heartbeat_ms, think_ms,
	       data ? ", two data rails" : "", least, most);
	CHECK(least >= RTO_MS * (1 - EARLY));
	CHECK(most <= RTO_MS * (1 + LATE) + late_ms);
}

/* Both data rails are idle, so that their beats coincide: the one that dies is given up a time-out after the beat that it swallowed. */
static void idle_pair(void)
{
	for (uint64_t key = 1; key <= 2; key++) {
		double took = silence(key, 200, 3000, true);

		printf("two idle data rails: given up and moved after %.1f ms\n", took);
		CHECK(took <= RTO_MS * (1 + LATE) + 50);
	}
}

int main(void)
{
	spread(200, 3, false, 0);
	spread(50, 3, false, 0);
	spread(1000, 3, false, 0);
	/* After a pause the next beat sees first that there is work; a heartbeat is a quarter of the time-out at most. */
	spread(200, 300, false, 200);
	spread(1000, 300, false, 250);
	idle_pair();
	return 0;
}
