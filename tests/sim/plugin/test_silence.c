/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_silence.c - a NIC that falls silent and never says why is given up after the soft time-out:
 * not sooner, not a heartbeat later
 *
 * The devices take retry_cnt 7 for "without end", as Linux's rdma_rxe does, so that the soft
 * time-out (HA_NCCL_RTO_MS) is all there is. A black hole begins at moments that lie anyhow to the
 * looks and heartbeats of heartbeat.c. Virtual time, so exact. Argument: how many keys (4; 24 at
 * most).
 */
#include "base/check.h"
#include "sim/plugin/hunt.h"
#include "tests/sim/plugin/plain.h"

#include <stdlib.h>

#define RTO_MS 1000
#define EARLY 0.01 /* the distance of two looks, */
#define LATE 0.03  /* twice that, and the failover itself */

static uint64_t keys = 4;

/* Two hosts of two devices each, and NICs that never give up. */
static void make_base(struct sim_scenario *sc, uint64_t key, unsigned heartbeat_ms)
{
	sim_plain(sc, key);
	sc->ndevices[0] = sc->ndevices[1] = 2;
	for (unsigned h = 0; h < 2; h++) {
		sc->host[h].rto_ms = RTO_MS;
		sc->host[h].heartbeat_ms = (int)heartbeat_ms;
	}
	sc->limits.retry_forever = true;
}

static void run_scenario(const struct sim_scenario *sc, unsigned failovers, struct sim_result *r)
{
	sim_run_apart(sc, SIM_SOUND, r);
	if (r->finding != SIM_NOTHING)
		fprintf(stderr, "%s: %s\n", sim_finding_name(r->finding), r->text);
	CHECK_INT(r->finding, SIM_NOTHING);
	CHECK_INT(r->failovers, failovers);
}

/* What the time-out took, ms. `think_ms`: the longest pause between two messages. `data`: both
 * rails carry data. */
static double measure_move_time(uint64_t key, unsigned heartbeat_ms, unsigned think_ms, bool data)
{
	uint64_t at = (think_ms > 100 ? 1500 : 300) * MS + key * 37 * MS;
	struct sim_scenario sc;
	struct sim_result r;

	make_base(&sc, key, heartbeat_ms);
	if (data) {
		sc.conn[0].nrails[0] = sc.conn[0].nrails[1] = 2;
		sc.conn[0].rail[0][1] = sc.conn[0].rail[1][1] = 1;
	}
	sc.conn[0].messages = (think_ms > 100 ? 45000 : 18000) / think_ms;
	sc.conn[0].think_ns = think_ms * MS;
	sim_plain_fault(&sc, "black-hole", 0, at, 10 * RTO_MS * MS);
	run_scenario(&sc, 2, &r);
	return (double)(r.moved_over_ns - at) / 1e6;
}

/* Never sooner than the time-out; later by `late_ms` at most, and what the looks and the failover
 * take. */
static void check_move_times(unsigned heartbeat_ms, unsigned think_ms, bool data, unsigned late_ms)
{
	double least = 1e9, most = 0;

	for (uint64_t key = 1; key <= keys; key++) {
		double took = measure_move_time(key, heartbeat_ms, think_ms, data);

		least = took < least ? took : least;
		most = took > most ? took : most;
	}
	printf("heartbeat %4u ms, pauses up to %4u ms%s: given up and moved after %.1f to %.1f "
	       "ms\n",
	       heartbeat_ms, think_ms, data ? ", two data rails" : "", least, most);
	CHECK(least >= RTO_MS * (1 - EARLY));
	CHECK(most <= RTO_MS * (1 + LATE) + late_ms);
}

/* Both data rails are idle, so that their heartbeats coincide: the one that dies is given up a
 * time-out after the heartbeat that it swallowed. */
static void idle_pair(void)
{
	for (uint64_t key = 1; key <= 2; key++) {
		double took = measure_move_time(key, 200, 3000, true);

		printf("two idle data rails: given up and moved after %.1f ms\n", took);
		CHECK(took <= RTO_MS * (1 + LATE) + 50);
	}
}

/* ---- connections that share a path ---- */

/* One more on the same devices: to the other host or, `back`, from it. */
static void add_connection(struct sim_scenario *sc, unsigned i, bool back, unsigned think_ms)
{
	sc->nconns = i + 1;
	sc->conn[i] = sc->conn[0];
	sc->conn[i].key += i;
	sc->conn[i].from = back;
	sc->conn[i].think_ns = think_ms * MS;
	sc->conn[i].messages = (think_ms > 100 ? 24000 : 18000) / think_ms;
}

/*
 * One is busy; the others, one each way, come to the dead path up to 0.3 s later, with a message or
 * a heartbeat. The busy one's time-out proves the silence for all of them.
 */
static void check_sibling_times(unsigned heartbeat_ms)
{
	double least = 1e9, most = 0;

	for (uint64_t key = 1; key <= keys; key++) {
		uint64_t at = 1500 * MS + key * 37 * MS;
		struct sim_scenario sc;
		struct sim_result r;
		double took;

		make_base(&sc, key, heartbeat_ms);
		add_connection(&sc, 0, key & 1, 3);
		add_connection(&sc, 1, false, 300);
		add_connection(&sc, 2, true, 300);
		sim_plain_fault(&sc, "black-hole", 0, at, 10 * RTO_MS * MS);
		sc.fault[0].rx = key >> 1 & 1;
		run_scenario(&sc, 6, &r);
		took = (double)(r.moved_over_ns - at) / 1e6;
		least = took < least ? took : least;
		most = took > most ? took : most;
	}
	printf("heartbeat %4u ms, three connections: all given up and moved after %.1f to %.1f "
	       "ms\n",
	       heartbeat_ms, least, most);
	CHECK(least >= RTO_MS * (1 - EARLY));
	CHECK(most <= RTO_MS * (1 + LATE));
}

/* What one end sends is lost, and nothing of the others', busy or not: the path is sound, and they
 * stay. */
static void one_alone(void)
{
	for (uint64_t key = 1; key <= keys; key++) {
		uint64_t at = 1500 * MS + key * 37 * MS;
		struct sim_scenario sc;
		struct sim_result r;

		make_base(&sc, key, key % 3 ? 200 : 1000);
		add_connection(&sc, 0, false, 3);
		add_connection(&sc, 1, key & 4, 3);
		add_connection(&sc, 2, false, 300);
		add_connection(&sc, 3, true, 300);
		sc.mute = (struct sim_mute) {
			.on = true, .conn = key >> 1 & 1, .end = key & 1, .at = at
		};
		run_scenario(&sc, 2, &r);
	}
	puts("one end falls silent on a sound path: it alone is given up");
}

/* A silence that ends before the time-out does is nobody's. */
static void soon_over(void)
{
	for (uint64_t key = 1; key <= keys; key++) {
		struct sim_scenario sc;
		struct sim_result r;

		make_base(&sc, key, key & 1 ? 200 : 1000);
		add_connection(&sc, 0, false, 3);
		add_connection(&sc, 1, true, 3);
		add_connection(&sc, 2, true, 300);
		sim_plain_fault(&sc, "black-hole", 0, 1500 * MS + key * 37 * MS,
				RTO_MS * (1 - 2 * EARLY) * MS);
		sc.fault[0].rx = key >> 1 & 1;
		run_scenario(&sc, 0, &r);
	}
	puts("a silence of a little less than the time-out: nothing is given up");
}

/* ---- buffers that the standby's device does not know yet ---- */

/* Where registering takes long (HA_NCCL_MR_MODE=lazy), it is over when the time-out is. */
static void slow_registering(void)
{
	double most = 0;

	for (uint64_t key = 1; key <= keys; key++) {
		uint64_t at = 1500 * MS + key * 37 * MS;
		struct sim_scenario sc;
		struct sim_result r;
		double took;

		make_base(&sc, key, key & 1 ? 200 : 1000);
		add_connection(&sc, 0, false, 3);
		add_connection(&sc, 1, true, 3);
		sc.thread.reg_ns = 40 * MS;
		sim_plain_fault(&sc, "black-hole", 0, at, 10 * RTO_MS * MS);
		sc.fault[0].rx = key >> 1 & 1;
		run_scenario(&sc, 4, &r);
		took = (double)(r.moved_over_ns - at) / 1e6;
		most = took > most ? took : most;
	}
	printf("registering takes 40 ms: given up and moved after up to %.1f ms\n", most);
	CHECK(most <= RTO_MS * (1 + LATE));
}

int main(int argc, char **argv)
{
	if (argc > 1)
		keys = strtoull(argv[1], NULL, 10);
	check_move_times(200, 3, false, 0);
	check_move_times(50, 3, false, 0);
	check_move_times(1000, 3, false, 0);
	/* After a pause the next heartbeat sees first that there is work; a heartbeat is a quarter
	 * of the time-out at most. */
	check_move_times(200, 300, false, 200);
	check_move_times(1000, 300, false, 250);
	idle_pair();
	check_sibling_times(200);
	check_sibling_times(1000);
	one_alone();
	soon_over();
	slow_registering();
	return 0;
}
