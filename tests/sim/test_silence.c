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

/* What the time-out took, ms. */
static double silence(uint64_t key, uint64_t heartbeat_ms)
{
	uint64_t at = 300 * MS + key * 37 * MS;
	struct sim_scenario sc;
	struct sim_result r;

	sim_plain(&sc, key);
	sc.ndevices[0] = sc.ndevices[1] = 2;
	for (unsigned h = 0; h < 2; h++) {
		sc.host[h].rto_ms = RTO_MS;
		sc.host[h].heartbeat_ms = (int)heartbeat_ms;
	}
	sc.conn[0].messages = 6000;
	sc.conn[0].think_ns = 3 * MS;
	sc.limits.retry_forever = true;
	sim_plain_fault(&sc, "black-hole", 0, at, 10 * RTO_MS * MS);
	sim_run_apart(&sc, SIM_SOUND, &r);
	if (r.finding != SIM_NOTHING)
		fprintf(stderr, "%s: %s\n", sim_finding_name(r.finding), r.text);
	CHECK_INT(r.finding, SIM_NOTHING);
	CHECK_INT(r.failovers, 2);
	return (double)(r.moved_over_ns - at) / 1e6;
}

static void spread(uint64_t heartbeat_ms)
{
	double least = 1e9, most = 0;

	for (uint64_t key = 1; key <= KEYS; key++) {
		double took = silence(key, heartbeat_ms);

		least = took < least ? took : least;
		most = took > most ? took : most;
	}
	printf("heartbeat %3u ms: given up and moved after %.1f to %.1f ms\n", (unsigned)heartbeat_ms, least, most);
	CHECK(least >= RTO_MS * (1 - EARLY));
	CHECK(most <= RTO_MS * (1 + LATE));
}

int main(void)
{
	spread(200);
	spread(50);
	spread(1000);
	return 0;
}
