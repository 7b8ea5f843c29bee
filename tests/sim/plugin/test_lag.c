/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_lag.c - a path that works and is far too slow becomes the standby while it stays so
 * (HA_NCCL_SLOW_FACTOR); one that is not slower than the other one does not, and who moves does so
 * without a failover, exactly once as ever, and not more often than HA_NCCL_SLOW_MOVES a minute
 *
 * Virtual time, so exact. Silence is off: what moves here moves because it is slow.
 */
#include "base/check.h"
#include "sim/plugin/hunt.h"
#include "tests/sim/plugin/plain.h"

#define FACTOR 4
#define KEYS 3
#define SLOW_AT (2000 * MS)
#define SIZE (32 << 10)

/* Two hosts of two devices each; messages of 131 us, without a pause to speak of. */
static void make_base(struct sim_scenario *sc, uint64_t key, unsigned messages)
{
	sim_plain(sc, key);
	sc->limits.mtu = IBV_MTU_4096;
	sc->ndevices[0] = sc->ndevices[1] = 2;
	sc->wire.bytes_per_us = 250;
	for (unsigned h = 0; h < 2; h++) {
		sc->host[h].rto_ms = 20000;
		sc->host[h].slow_factor = FACTOR;
		sc->host[h].slow_moves = 4;
	}
	sc->conn[0].max_size = SIZE;
	sc->conn[0].whole = true;
	sc->conn[0].messages = messages;
	sc->conn[0].think_ns = 8 * MS;
}

static void add_slow_fault(struct sim_scenario *sc, unsigned dev, uint64_t at, uint64_t len,
			   unsigned times)
{
	sim_plain_fault(sc, "slow", 0, at, len);
	sc->fault[sc->nfaults - 1].dev = dev;
	sc->fault[sc->nfaults - 1].amount = times;
}

static void run_scenario(const struct sim_scenario *sc, struct sim_result *r)
{
	sim_run_apart(sc, SIM_SOUND, r);
	if (r->finding != SIM_NOTHING)
		fprintf(stderr, "%s: %s\n", sim_finding_name(r->finding), r->text);
	CHECK_INT(r->finding, SIM_NOTHING);
	CHECK_INT(r->failovers, 0);
}

/* Ten times as slow until the end: it is left once, and the rest goes over the other device. With
 * keys that are there, and keys that the receiver must make first. */
static void slow_path_is_left(void)
{
	uint64_t least = UINT64_MAX;

	for (uint64_t key = 1; key <= KEYS; key++) {
		struct sim_scenario sc;
		struct sim_result r;
		uint64_t all;

		make_base(&sc, key, 4000);
		sc.host[0].eager = sc.host[1].eager = key & 1;
		add_slow_fault(&sc, 0, SLOW_AT, 100000 * MS, 10);
		run_scenario(&sc, &r);
		CHECK_INT(r.slow_moves, 1);
		CHECK_INT(r.failbacks, 0);
		all = r.sent[0][0] + r.sent[0][1];
		least = r.sent[0][1] * 100 / all < least ? r.sent[0][1] * 100 / all : least;
	}
	printf("ten times as slow from one third on: %llu %% or more go over the other device\n",
	       (unsigned long long)least);
	CHECK(least >= 40);
}

/* Slow for a while: it carries again soon after. */
static void path_is_taken_back(void)
{
	for (uint64_t key = 1; key <= KEYS; key++) {
		struct sim_scenario sc;
		struct sim_result r;

		make_base(&sc, key, 9000);
		add_slow_fault(&sc, 0, SLOW_AT, 2000 * MS, 10);
		run_scenario(&sc, &r);
		CHECK_INT(r.slow_moves, 1);
		CHECK_INT(r.failbacks, 1);
	}
	puts("slow for 2 s: left once, and taken back once");
}

/* Twice as slow, or for a moment, or both paths, or the variable is 0: nobody moves. */
static void path_is_kept(void)
{
	static const struct {
		const char *what;
		unsigned times, devices, factor;
		uint64_t len;
	} cases[] = {
		{ "twice as slow", 2, 1, FACTOR, 100000 * MS },
		{ "for 100 ms", 10, 1, FACTOR, 100 * MS },
		{ "both devices", 10, 2, FACTOR, 100000 * MS },
		{ "HA_NCCL_SLOW_FACTOR=0", 10, 1, 0, 100000 * MS },
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		for (uint64_t key = 1; key <= KEYS - 1; key++) {
			struct sim_scenario sc;
			struct sim_result r;

			make_base(&sc, key, 3500);
			sc.host[0].slow_factor = sc.host[1].slow_factor = (int)cases[i].factor;
			for (unsigned d = 0; d < cases[i].devices; d++)
				add_slow_fault(&sc, d, SLOW_AT, cases[i].len, cases[i].times);
			run_scenario(&sc, &r);
			if (r.slow_moves)
				fprintf(stderr, "%s: moved\n", cases[i].what);
			CHECK_INT(r.slow_moves, 0);
		}
	puts("twice as slow, for a moment, both devices, switched off: nobody moves");
}

/* It comes and goes: no more moves than are allowed. */
static void moves_are_limited(void)
{
	for (int most = 2; most <= 4; most += 2) {
		struct sim_scenario sc;
		struct sim_result r;

		make_base(&sc, 1, 16000);
		sc.host[0].slow_moves = most;
		for (unsigned i = 0; i < 2; i++)
			add_slow_fault(&sc, 0, SLOW_AT + i * 7000 * MS, 2000 * MS, 10);
		run_scenario(&sc, &r);
		printf("slow twice, %d moves a minute: left %llu, taken back %llu times\n", most,
		       (unsigned long long)r.slow_moves, (unsigned long long)r.failbacks);
		CHECK_INT(r.slow_moves + r.failbacks, (unsigned)most);
	}
}

/* A path that loses 15 of 100 packets: a message waits for time-outs of the NIC, and a few of them
 * are enough. Until it is left, from when it began, by the size of the messages. */
static void lossy_path_is_left(void)
{
	static const struct {
		uint64_t size, most_ms;
		unsigned messages;
	} cases[] = { { 64 << 10, 2000, 2000 },
		      { 256 << 10, 4000, 1800 },
		      { 1 << 20, 12000, 1100 } };

	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint64_t worst = 0;

		for (uint64_t key = 1; key <= KEYS; key++) {
			struct sim_scenario sc;
			struct sim_result r;

			make_base(&sc, key, cases[i].messages);
			sc.settings.timeout = 14;
			sc.settings.retry = 7;
			sc.conn[0].max_size = cases[i].size;
			sim_plain_fault(&sc, "loss", 0, SLOW_AT, 100000 * MS);
			sc.fault[sc.nfaults - 1].amount = 150000; /* ppm */
			run_scenario(&sc, &r);
			CHECK_INT(r.slow_moves, 1);
			worst = r.moved_over_ns > worst ? r.moved_over_ns : worst;
		}
		worst -= SLOW_AT;
		printf("15 of 100 packets are lost, %llu KiB a message: left after %llu ms at "
		       "most\n",
		       (unsigned long long)cases[i].size >> 10, (unsigned long long)worst / MS);
		CHECK(worst <= cases[i].most_ms * MS);
	}
}

/* Most messages get through such a path quickly, by chance eight in a row: it carries again, is
 * left again, and from then on 16 in a row are asked for. (With eight it was taken back twice
 * here.) */
static void relapse_delays_return(void)
{
	struct sim_scenario sc;
	struct sim_result r;

	make_base(&sc, 22, 40000);
	sc.settings.timeout = 14;
	sc.settings.retry = 7;
	sc.host[0].slow_moves = 100;
	sc.conn[0].max_size = 8 << 10;
	sim_plain_fault(&sc, "loss", 0, SLOW_AT, 1000000 * MS);
	sc.fault[sc.nfaults - 1].amount = 150000; /* ppm */
	run_scenario(&sc, &r);
	printf("15 of 100 packets are lost for %llu s: left %llu, taken back %llu times\n",
	       (unsigned long long)(r.ns / (1000 * MS)), (unsigned long long)r.slow_moves,
	       (unsigned long long)r.failbacks);
	CHECK_INT(r.slow_moves, 2);
	CHECK_INT(r.failbacks, 1);
}

int main(void)
{
	slow_path_is_left();
	path_is_taken_back();
	path_is_kept();
	moves_are_limited();
	lossy_path_is_left();
	relapse_delays_return();
	return 0;
}
