/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_early.c - a path that falls silent while its standby answers is left after some milliseconds
 * (HA_NCCL_SILENCE_MS); one that is slow and alive, or whose peer is, is not, and a false alarm is
 * the last one for a minute
 *
 * The devices never give up by themselves (retry_forever), and the soft time-out is far away: what
 * moves here moves for the silence. Virtual time, so exact. Argument: how many keys (4).
 */
#include "base/check.h"
#include "sim/plugin/hunt.h"
#include "tests/sim/plugin/plain.h"

#include <stdlib.h>

#define RTO_MS 20000
#define SILENCE_MS 5
/* until it is noticed that nothing moves, a sign is asked for, has not come; the looks, and the
 * driver's rounds, which come up to 1 ms late here */
#define FIRST_MS 10
#define LAST_MS 20
#define UNKNOWN_MS 200 /* what a device is given of which little is known */
#define LONGEST_MS 24  /* of the silences of a path that comes back */

static uint64_t keys = 4;

/* Two hosts of two devices each; one connection, and messages without a pause. */
static void make_base(struct sim_scenario *sc, uint64_t key)
{
	sim_plain(sc, key);
	sc->ndevices[0] = sc->ndevices[1] = 2;
	for (unsigned h = 0; h < 2; h++) {
		sc->host[h].rto_ms = RTO_MS;
		sc->host[h].silence_ms = SILENCE_MS;
	}
	sc->limits.retry_forever = true;
	sc->conn[0].messages = 3000;
	sc->conn[0].think_ns = 4 * MS;
}

static void run_scenario(const struct sim_scenario *sc, struct sim_result *r)
{
	sim_run_apart(sc, SIM_SOUND, r);
	if (r->finding != SIM_NOTHING)
		fprintf(stderr, "%s: %s\n", sim_finding_name(r->finding), r->text);
	CHECK_INT(r->finding, SIM_NOTHING);
}

static uint64_t hole_at(uint64_t key)
{
	return 1300 * MS + key * 1370 * US;
}

/* One more on the same devices: to the other host or, `back`, from it. */
static void add_connection(struct sim_scenario *sc, unsigned i, bool back)
{
	sc->nconns = i + 1;
	sc->conn[i] = sc->conn[0];
	sc->conn[i].key += i;
	sc->conn[i].from = back;
}

/* What no path may be left for. */
static void nobody_moves(const char *what, void (*make)(struct sim_scenario *sc, uint64_t key))
{
	for (uint64_t key = 1; key <= keys; key++) {
		struct sim_scenario sc;
		struct sim_result r;

		make_base(&sc, key);
		make(&sc, key);
		run_scenario(&sc, &r);
		CHECK_INT(r.failovers, 0);
	}
	printf("%s: nobody moves\n", what);
}

/* A black hole at either end, in either direction; the last of `conns` connections has moved after
 * how many ms? */
static void check_move_times(unsigned conns)
{
	double least = 1e9, most = 0;

	for (uint64_t key = 1; key <= keys; key++) {
		struct sim_scenario sc;
		struct sim_result r;
		double took;

		make_base(&sc, key);
		for (unsigned i = 1; i < conns; i++)
			add_connection(&sc, i, i & 1);
		sim_plain_fault(&sc, "black-hole", key & 1, hole_at(key), 100 * RTO_MS * MS);
		sc.fault[0].rx = key >> 1 & 1;
		run_scenario(&sc, &r);
		CHECK_INT(r.failovers, 2 * conns);
		CHECK_INT(r.false_alarms, 0);
		took = (double)(r.moved_over_ns - hole_at(key)) / 1e6;
		least = took < least ? took : least;
		most = took > most ? took : most;
	}
	printf("%u connections, black hole: moved after %.1f to %.1f ms\n", conns, least, most);
	CHECK(least >= SILENCE_MS);
	CHECK(most <= LAST_MS);
}

/* The device has worked for less than a second, so nobody knows how long its standstills are: it is
 * given 0.2 s, and is left then, not by the time-outs. */
static void in_the_first_second(unsigned rto_ms)
{
	for (uint64_t key = 1; key <= keys; key++) {
		uint64_t at = 300 * MS + key * 1370 * US;
		struct sim_scenario sc;
		struct sim_result r;
		double took;

		make_base(&sc, key);
		for (unsigned h = 0; h < 2; h++)
			sc.host[h].rto_ms = rto_ms;
		sim_plain_fault(&sc, "black-hole", key & 1, at, 100 * RTO_MS * MS);
		sc.fault[0].rx = key >> 1 & 1;
		run_scenario(&sc, &r);
		CHECK_INT(r.failovers, 2);
		CHECK_INT(r.false_alarms, 0);
		took = (double)(r.moved_over_ns - at) / 1e6;
		CHECK(took >= UNKNOWN_MS);
		CHECK(took <= UNKNOWN_MS + 2 * LAST_MS);
	}
	printf("in the first second, soft time-out %u ms: moved after 0.2 s\n", rto_ms);
}

/* The variable is 0: nobody leaves before the soft time-out. */
static void switched_off(void)
{
	struct sim_scenario sc;
	struct sim_result r;

	make_base(&sc, 1);
	for (unsigned h = 0; h < 2; h++) {
		sc.host[h].silence_ms = 0;
		sc.host[h].rto_ms = 1000;
	}
	sim_plain_fault(&sc, "black-hole", 0, hole_at(1), 100 * RTO_MS * MS);
	run_scenario(&sc, &r);
	CHECK_INT(r.failovers, 2);
	CHECK((double)(r.moved_over_ns - hole_at(1)) / 1e6 >= 980);
	puts("off: the soft time-out decides");
}

/* Neither path answers, for longer than any limit: the peer or its host is slow, and all stay. */
static void both_silent(struct sim_scenario *sc, uint64_t key)
{
	add_connection(sc, 1, true);
	for (unsigned d = 0; d < 2; d++) {
		sim_plain_fault(sc, "black-hole", key & 1, hole_at(key), 300 * MS);
		sc->fault[d].dev = d;
		sc->fault[d].rx = key >> 1 & 1;
	}
}

/* This process is stopped itself. */
static void stall_host(struct sim_scenario *sc, uint64_t key)
{
	add_connection(sc, 1, true);
	sim_plain_fault(sc, "stall", key & 1, hole_at(key), 1500 * MS);
}

/* A message takes 8.4 ms of a sudden, longer than the limit: slow and alive. */
static void slow_alive(struct sim_scenario *sc, uint64_t key)
{
	sc->conn[0].max_size = 1 << 20;
	sc->conn[0].whole = true;
	sc->conn[0].window = 1;
	sc->conn[0].messages = 200;
	sim_plain_fault(sc, "slow", 0, 50 * MS, 2000 * MS);
	sc->fault[0].amount = 100;
}

/* It is silent again and again, and comes back each time when it is about to be given up, or has
 * just been: whatever is judged, no byte is wrong, and the path is falsely accused at most once at
 * each end. */
static void comes_back(void)
{
	unsigned false_alarms = 0;

	for (uint64_t key = 1; key <= keys; key++) {
		struct sim_scenario sc;
		struct sim_result r;
		uint64_t silent_ns = key * LONGEST_MS * MS / keys;

		make_base(&sc, key);
		add_connection(&sc, 1, true);
		for (unsigned i = 0; i < 8; i++) {
			sim_plain_fault(&sc, "black-hole", 0, hole_at(key) + i * 300 * MS,
					silent_ns);
			sc.fault[i].rx = key & 1;
		}
		run_scenario(&sc, &r);
		if (silent_ns < SILENCE_MS * MS)
			CHECK_INT(r.failovers, 0);
		CHECK(r.false_alarms <= 4); /* one at each end of two connections */
		false_alarms += (unsigned)r.false_alarms;
	}
	printf("silences of up to %u ms, eight in a row: %u false alarms\n", LONGEST_MS,
	       false_alarms);
	CHECK(false_alarms > 0);
}

/* A queue pair in a time-out, as after the loss of a NAK: no acknowledgement comes back on it, and
 * what the other end writes there gets through. */
static void one_direction_waits(struct sim_scenario *sc, uint64_t key)
{
	sim_plain_fault(sc, "ack-loss", 1, hole_at(key), 60 * MS);
	sc->fault[0].amount = 1000000; /* ppm */
}

/* Seven connections' small messages keep a path busy that the eighth's large ones then share: they
 * stand still for 21 ms and more, as nothing did before. */
static void crowd_path(struct sim_scenario *sc, uint64_t key)
{
	sc->wire.bus_rate[0] = 50; /* bytes per us */
	sc->conn[0].think_ns = 0;
	sc->conn[0].whole = true;
	sc->conn[0].window = 8;
	sc->conn[0].max_size = 16 << 10;
	sc->conn[0].messages = 1500;
	for (unsigned i = 1; i < 8; i++)
		add_connection(sc, i, false);
	sc->conn[0].max_size = 128 << 10;
	sc->conn[0].messages = 60;
	sc->conn[0].start_ns[0] = sc->conn[0].start_ns[1] = hole_at(key);
}

/* Only what one of two connections sends is lost, as behind one link of several that a switch
 * spreads over: the other's work excuses it for 0.2 s. */
static void one_of_two(void)
{
	double most = 0;

	for (uint64_t key = 1; key <= keys; key++) {
		struct sim_scenario sc;
		struct sim_result r;
		double took;

		make_base(&sc, key);
		add_connection(&sc, 1, false);
		sc.mute.on = true;
		sc.mute.end = key & 1;
		sc.mute.at = hole_at(key);
		run_scenario(&sc, &r);
		CHECK_INT(r.failovers, 2);
		took = (double)(r.moved_over_ns - hole_at(key)) / 1e6;
		most = took > most ? took : most;
	}
	printf("one connection's packets alone are lost: moved after up to %.1f ms\n", most);
	CHECK(most <= 200 + 2 * LAST_MS);
}

/* Work comes now and then: a path that dies in between is given up soon after the first of it. */
static void measure_sparse(void)
{
	double most = 0;

	for (uint64_t key = 1; key <= keys; key++) {
		struct sim_scenario sc;
		struct sim_result r;
		double took;

		make_base(&sc, key);
		sc.conn[0].think_ns = 100 * MS;
		sc.conn[0].messages = 120;
		sim_plain_fault(&sc, "black-hole", 0, hole_at(key), 100 * RTO_MS * MS);
		run_scenario(&sc, &r);
		CHECK_INT(r.failovers, 2);
		took = (double)(r.moved_over_ns - hole_at(key)) / 1e6;
		most = took > most ? took : most;
	}
	printf("a message in 50 ms: moved after up to %.1f ms\n", most);
	CHECK(most <= 100 + LAST_MS);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		keys = strtoull(argv[1], NULL, 10);
	check_move_times(1);
	check_move_times(2);
	check_move_times(8);
	in_the_first_second(1000);
	in_the_first_second(RTO_MS);
	switched_off();
	nobody_moves("neither path answers for 300 ms", both_silent);
	nobody_moves("a host stands still for 1.5 s", stall_host);
	nobody_moves("a path 100 times as slow", slow_alive);
	comes_back();
	nobody_moves("no acknowledgement for 60 ms, the peer's words get through",
		     one_direction_waits);
	nobody_moves("a path that seven others keep busy", crowd_path);
	one_of_two();
	measure_sparse();
	return 0;
}
