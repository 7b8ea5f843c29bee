/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any NIC to any NIC: a connection goes on as long as one NIC of one end reaches one of the other,
 * whichever pair the data path was on and whichever NICs go, announced or not, and it does so at
 * once.
 */
#include "base/check.h"
#include "sim/plugin/faults.h"
#include "sim/plugin/hunt.h"
#include "sim/plugin/promise.h"
#include "tests/sim/plugin/plain.h"

#include <stdio.h>
#include <stdlib.h>

#define FOR_GOOD UINT64_C(1000000000000)
#define LOST_AT (50 * MS)
#define MADE_MS 80
#define PROBED_MS 27         /* 29 where a probe is looked for once in a millisecond */
#define KNOWN_AT (1100 * MS) /* how long work takes is known by then: silence counts */

/* n NICs at each end, the data path from `from` to `to`; messages go on for some 0.3 s. */
static void make_scenario(struct sim_scenario *sc, uint64_t key, unsigned n, unsigned from,
			  unsigned to)
{
	sim_plain(sc, key);
	sc->ndevices[0] = sc->ndevices[1] = n;
	sc->conn[0].rail[0][0] = from;
	sc->conn[0].rail[1][0] = to;
	sc->conn[0].messages = 1500;
	sc->conn[0].think_ns = 1 * MS;
	sc->pace_ns = 10 * MS;
}

/* Device `dev` of a host is lost for good. */
static void lose_device(struct sim_scenario *sc, const char *how, unsigned host, unsigned dev)
{
	sim_plain_fault(sc, how, host, LOST_AT, FOR_GOOD);
	sc->fault[sc->nfaults - 1].dev = dev;
}

static void print_and_exit(const struct sim_scenario *sc, const struct sim_result *r,
			   const char *what)
{
	fprintf(stderr, "%s: %s: %s, %llu errors\n", what, sim_finding_name(r->finding), r->text,
		(unsigned long long)r->errors);
	sim_scenario_print(sc, stderr);
	exit(1);
}

/* The longest run of intervals without a byte, between the first and the last that have some. */
static unsigned longest_pause(const struct sim_result *r)
{
	unsigned longest = 0, pause = 0, i = 0, last = SIM_PACE_MAX;

	while (last && !r->pace[last - 1])
		last--;
	while (i < last && !r->pace[i])
		i++;
	for (; i < last; i++) {
		pause = r->pace[i] ? 0 : pause + 1;
		longest = pause > longest ? pause : longest;
	}
	return longest;
}

/* limit_ms: 0 = none. The longest pause, ms. */
static unsigned must_hold(const struct sim_scenario *sc, unsigned limit_ms, const char *what)
{
	struct sim_result r;
	unsigned pause;

	sim_run_apart(sc, SIM_SOUND, &r);
	if (r.finding != SIM_NOTHING || r.errors)
		print_and_exit(sc, &r, what);
	CHECK(r.ns > sc->fault[0].at + 100 * MS); /* or the fault came too late to matter */
	pause = longest_pause(&r) * 10;
	if (limit_ms && pause > limit_ms) {
		fprintf(stderr, "a pause of %u ms\n", pause);
		print_and_exit(sc, &r, what);
	}
	return pause;
}

/* One leaf switch carries NIC `dead` of both hosts. */
static void leaf_is_lost(void)
{
	struct sim_scenario sc;

	for (unsigned from = 0; from < 2; from++)
		for (unsigned to = 0; to < 2; to++)
			for (unsigned dead = 0; dead < 2; dead++) {
				make_scenario(&sc, 1 + from * 4 + to * 2 + dead, 2, from, to);
				lose_device(&sc, "cut", 0, dead);
				lose_device(&sc, "cut", 1, dead);
				must_hold(&sc, 100, "a leaf switch is lost");
			}
}

/* Device `dev` of both hosts, in both directions. */
static void lose_leaf(struct sim_scenario *sc, const char *how, unsigned dev, uint64_t at)
{
	for (unsigned h = 0; h < 2; h++)
		for (unsigned rx = 0; rx < 2; rx++) {
			sim_plain_fault(sc, how, h, at, FOR_GOOD);
			sc->fault[sc->nfaults - 1].dev = dev;
			sc->fault[sc->nfaults - 1].rx = rx;
		}
}

/* The data path from NIC 0 to NIC 1, its standby from NIC 1 to NIC 0, the NICs of one number on one
 * leaf switch: either takes both paths along, with the default time-outs. Announced, it is what the
 * protocol takes; silent, what it takes to find that no path answers, and to connect another. */
static void crossed_paths_are_lost(const char *how, unsigned window)
{
	unsigned longest = 0;

	for (unsigned i = 0; i < 16; i++) {
		struct sim_scenario sc;
		unsigned pause;

		make_scenario(&sc, 110 + i, 2, 0, 1);
		sc.settings.timeout = 14;
		sc.settings.retry = 7;
		sc.conn[0].messages = 8000;
		sc.conn[0].window = window;
		sc.host[0].silence_ms = sc.host[1].silence_ms = 5;
		sc.host[0].standbys = sc.host[1].standbys = 1;
		lose_leaf(&sc, how, i & 1, KNOWN_AT + i * 137 * US);
		pause = must_hold(&sc, 25, "both crossed paths are lost");
		longest = pause > longest ? pause : longest;
	}
	printf("a leaf switch with both paths, %s, %u messages at a time: a pause of %u ms at "
	       "most\n",
	       how, window, longest);
}

/*
 * The same, announced, where making a queue pair takes 20 ms (a slow kernel, a busy host), which is
 * done in the driver: the peer's messages and probes wait for it. Two must follow each other, the
 * sender's and the receiver's; what is not needed for the traffic must not be made before it: a
 * data rail whose port is down at the other end, a second spare before the first has had its time,
 * anything before the other connection's incarnations are over.
 */
static void slowly_made_pair_comes_first(unsigned make_ms, unsigned limit_ms)
{
	unsigned longest = 0;

	for (unsigned i = 0; i < 16; i++) {
		struct sim_scenario sc;
		struct sim_result r;
		unsigned moved;

		make_scenario(&sc, 760 + i, 2, i >> 1 & 1, !(i >> 1 & 1));
		sc.settings.timeout = 14;
		sc.settings.retry = 7;
		sc.conn[0].messages = 8000;
		sc.nconns = 2;
		sc.conn[1] = sc.conn[0];
		sc.conn[1].key += 77;
		sc.conn[1].from = 1; /* the way back, on the same pairs */
		sc.conn[1].rail[0][0] = sc.conn[0].rail[1][0];
		sc.conn[1].rail[1][0] = sc.conn[0].rail[0][0];
		sc.thread.make_ns = make_ms * MS;
		sc.host[0].standbys = sc.host[1].standbys = 1;
		lose_leaf(&sc, "cut", i & 1, KNOWN_AT + i * 137 * US);
		sim_run_apart(&sc, SIM_SOUND, &r);
		if (r.finding != SIM_NOTHING || r.errors || r.moved_over_ns < sc.fault[0].at)
			print_and_exit(&sc, &r,
				       "both crossed paths are lost, queue pairs take long");
		moved = (unsigned)((r.moved_over_ns - sc.fault[0].at) / MS);
		longest = moved > longest ? moved : longest;
	}
	printf("a leaf switch with both paths, a queue pair takes %u ms: all moved after %u ms at "
	       "most\n",
	       make_ms, longest);
	CHECK(longest <= limit_ms);
}

/* With the standbys kept that a leaf switch leaves, by default or all pairs by HA_NCCL_STANDBYS=3,
 * nothing is made before messages go on, however long a queue pair takes to make. */
static void kept_standby_carries(const char *how, int standbys, unsigned limit_ms)
{
	unsigned longest = 0;

	for (unsigned i = 0; i < 16; i++) {
		struct sim_scenario sc;
		struct sim_result r;
		unsigned moved;

		make_scenario(&sc, 800 + i, 2, i >> 1 & 1, !(i >> 1 & 1));
		sc.settings.timeout = 14;
		sc.settings.retry = 7;
		sc.conn[0].messages = 8000;
		sc.host[0].standbys = sc.host[1].standbys = standbys;
		sc.host[0].silence_ms = sc.host[1].silence_ms = 5;
		sc.thread.make_ns = 200 * MS;
		lose_leaf(&sc, how, i & 1, 2 * KNOWN_AT + i * 137 * US);
		sim_run_apart(&sc, SIM_SOUND, &r);
		if (r.finding != SIM_NOTHING || r.errors || r.moved_over_ns < sc.fault[0].at)
			print_and_exit(&sc, &r, "a leaf switch is lost, and a standby is left");
		moved = (unsigned)((r.moved_over_ns - sc.fault[0].at) / MS);
		longest = moved > longest ? moved : longest;
	}
	printf("a leaf switch takes one to three of four paths that are up, %s, STANDBYS=%d: all "
	       "moved after %u ms at most\n",
	       how, standbys, longest);
	CHECK(longest <= limit_ms);
}

/* Any NIC here and any NIC there: of four pairs one is left. */
static void one_pair_is_left(void)
{
	struct sim_scenario sc;

	for (unsigned i = 0; i < 16; i++) {
		make_scenario(&sc, 20 + i, 2, i & 1, i >> 1 & 1);
		lose_device(&sc, "cut", 0, i >> 2 & 1);
		lose_device(&sc, "cut", 1, i >> 3 & 1);
		must_hold(&sc, 100, "one pair is left of four");
	}
}

/*
 * Every port says that it is up, no pair answers for a while, and nobody knows which will: as many
 * are tried at once as there are pairs, or as a connection has spares. One by one the last would
 * have its turn after all the others' time limits.
 */
static void tried_together(void)
{
	for (unsigned n = 2; n <= 4; n++) {
		struct sim_scenario sc;
		struct sim_result r;
		/* The data rail tries its own pair beside the spares. */
		unsigned wanted = n * n < HA_MAX_RAILS ? n * n : HA_MAX_RAILS;

		make_scenario(&sc, 30 + n, n, 0, 0);
		sim_plain_fault(&sc, "black-hole", 0, LOST_AT, 400 * MS);
		for (unsigned d = 1; d < n; d++)
			lose_device(&sc, "black-hole", 0, d);
		sim_run_apart(&sc, SIM_SOUND, &r);
		if (r.finding != SIM_NOTHING || r.errors)
			print_and_exit(&sc, &r, "every pair is silent for a while");
		if (r.tried_at_once < wanted) {
			fprintf(stderr, "%u pairs were tried at once, not %u\n", r.tried_at_once,
				wanted);
			print_and_exit(&sc, &r, "pairs are tried at once");
		}
	}
}

/* The same, and no port says so: the silence must be noticed, and the pair found. */
static void one_silent_pair_is_left(void)
{
	struct sim_scenario sc;

	for (unsigned i = 0; i < 16; i++) {
		make_scenario(&sc, 40 + i, 2, i & 1, i >> 1 & 1);
		lose_device(&sc, "black-hole", 0, i >> 2 & 1);
		lose_device(&sc, "black-hole", 1, i >> 3 & 1);
		must_hold(&sc, 0, "one pair is left of four, and nobody says so");
	}
}

/* Of eight NICs at each end one is left at each, another one there than here. */
static void one_of_eight(void)
{
	struct sim_scenario sc;

	for (unsigned i = 0; i < 8; i++) {
		unsigned here = i, there = (i * 3 + 5) % 8;

		make_scenario(&sc, 60 + i, 8, i % 3, i % 5);
		for (unsigned d = 0; d < 8; d++) {
			if (d != here)
				lose_device(&sc, "cut", 0, d);
			if (d != there)
				lose_device(&sc, "cut", 1, d);
		}
		must_hold(&sc, 100, "one of eight is left at each end");
	}
}

/* A rail-only fabric: NIC i reaches NIC i alone. All but one go, and nobody says so where `how` is
 * silent. */
static void rail_only(const char *how, unsigned limit_ms)
{
	struct sim_scenario sc;

	for (unsigned i = 0; i < 12; i++) {
		unsigned left = i % 4;

		make_scenario(&sc, 80 + i, 4, i / 3 % 4, i / 3 % 4);
		sc.wire.apart = true;
		for (unsigned d = 0; d < 4; d++)
			if (d != left)
				lose_device(&sc, how, d % 2, d);
		must_hold(&sc, limit_ms, "one rail is left of a rail-only fabric");
	}
}

/* Devices made of two NICs, of which one is lost here and the other there: no two that were paired
 * are left. */
static void fused_crosswise(void)
{
	struct sim_scenario sc;

	for (unsigned i = 0; i < 4; i++) {
		make_scenario(&sc, 100 + i, 2 + i / 2, 0, 0);
		sc.conn[0].nrails[0] = sc.conn[0].nrails[1] = 2;
		sc.conn[0].rail[0][1] = sc.conn[0].rail[1][1] = 1;
		sc.conn[0].max_size = 64 << 10;
		lose_device(&sc, "cut", 0, i & 1);
		lose_device(&sc, "cut", 1, !(i & 1));
		must_hold(&sc, 100, "fused devices lose one NIC each, crosswise");
	}
}

/* One NIC at one end, two at the other: each of the two stands by for the other. */
static void one_against_two(void)
{
	struct sim_scenario sc;

	for (unsigned host = 0; host < 2; host++) {
		make_scenario(&sc, 120 + host, 2, 0, 0);
		sc.ndevices[1 - host] = 1;
		lose_device(&sc, "cut", host, 0);
		must_hold(&sc, 100, "one NIC against two");
	}
}

/* The switch comes back, and the next one goes: the next standby has been made meanwhile. */
static void one_after_the_other(void)
{
	struct sim_scenario sc;

	make_scenario(&sc, 130, 3, 0, 1);
	sc.conn[0].messages = 5000;
	for (unsigned d = 0; d < 2; d++)
		for (unsigned h = 0; h < 2; h++) {
			sim_plain_fault(&sc, "cut", h, LOST_AT + d * 500 * MS, FOR_GOOD);
			sc.fault[sc.nfaults - 1].dev = d;
		}
	must_hold(&sc, 100, "one switch after the other");
}

/*
 * The spare that carried gives way to a data rail that is back, also to one that `adaptive` had
 * taken its share from: seed 5454 of `switch,silent-switch`.
 */
static void spare_gives_way(void)
{
	for (uint64_t key = 140; key < 164; key++) {
		struct sim_scenario sc;
		struct sim_result r;

		make_scenario(&sc, key, 2, 1, 1);
		sc.host[0].policy = HA_POLICY_ADAPTIVE;
		sc.host[0].failback = true;
		sc.conn[0].nrails[0] = sc.conn[0].nrails[1] = 2;
		sc.conn[0].max_size = 200 << 10;
		sc.conn[0].messages = 16;
		sc.conn[0].window = 8;
		sc.conn[0].think_ns = 0;
		sc.conn[0].stays = true;
		sim_plain_fault(&sc, "cut", 1, 10 * MS, FOR_GOOD);
		sc.fault[0].dev = 1;
		sim_plain_fault(&sc, "cut", 0, 10 * MS, 11 * MS);
		sim_run_apart(&sc, SIM_SOUND, &r);
		if (r.finding != SIM_NOTHING || r.errors)
			print_and_exit(&sc, &r, "a spare gives way");
	}
}

/*
 * The standby's NIC was silent, and tried often, while the data path's was away. When that is back,
 * and the silence is over, the next standby is on that NIC again: there is no other, because the
 * peer has one port left, which the data path's NIC is connected with. Seed 14250 of
 * `switch,silent-switch` tried that one for half a minute.
 */
static void silent_spare_gets_its_turn(void)
{
	for (uint64_t key = 200; key < 216; key++) {
		struct sim_scenario sc;

		make_scenario(&sc, key, 2, 0, 1);
		sc.conn[0].messages = 400;
		sc.conn[0].stays = true;
		sc.settings.timeout = 9;
		lose_device(&sc, "cut", 1, 0);
		sim_plain_fault(&sc, "cut", 0, LOST_AT, 400 * MS);
		sim_plain_fault(&sc, "black-hole", 0, LOST_AT + 10 * MS, 410 * MS + key * MS);
		sc.fault[2].dev = 1;
		must_hold(&sc, 0, "a silent spare gets its turn");
	}
}

/*
 * NICs 0 are tried again and again while the ports of NICs 1 are down; that they are silent, too,
 * when the others are back, and that those never answer, must not keep them from their turn: seed
 * 11721 of `switch,silent-switch`.
 */
static void every_pair_gets_its_turn(void)
{
	for (uint64_t key = 170; key < 178; key++) {
		struct sim_scenario sc;

		make_scenario(&sc, key, 2, 1, 1);
		lose_device(&sc, "black-hole", 0, 1);
		lose_device(&sc, "black-hole", 1, 1);
		sim_plain_fault(&sc, "cut", 0, LOST_AT, 450 * MS);
		sc.fault[2].dev = 1;
		sim_plain_fault(&sc, "cut", 1, LOST_AT, 450 * MS);
		sc.fault[3].dev = 1;
		sim_plain_fault(&sc, "black-hole", 0, LOST_AT, 720 * MS);
		must_hold(&sc, 0, "every pair gets its turn");
	}
}

/* A NIC goes when the connection has just been made, and its standby is slow to come up: so a
 * further pair comes up at about the same time, at either end now before it and now behind. Each
 * end carries over the one that it saw first. (Of 600 such runs one stood still: in each the sender
 * had keys for one spare and the receiver for the other.) */
static void lost_while_young(void)
{
	struct sim_scenario sc;

	for (unsigned i = 480; i < 560; i++) {
		make_scenario(&sc, 300 + i, 2, 0, 0);
		lose_device(&sc, "cut", 1, 0);
		sc.fault[0].at = 600 * US;
		sc.conn[0].messages = 400;
		for (unsigned end = 0; end < 4; end++) {
			sim_plain_fault(&sc, "jitter", end / 2, 0, FOR_GOOD);
			sc.fault[sc.nfaults - 1].dev = end & 1;
			sc.fault[sc.nfaults - 1].amount = 1500 * US;
		}
		sim_plain_fault(&sc, "slow-connect", 0, 0, FOR_GOOD);
		sc.fault[sc.nfaults - 1].dev = 1;
		sc.fault[sc.nfaults - 1].amount = i * 20 * US;
		must_hold(&sc, 0, "lost while young");
	}
}

/* Queue pairs of two NICs fail, one after the other, and no port is down: nothing shows that a
 * standby on another NIC could be made again. (The simulator's promise.) */
static void no_port_was_down(void)
{
	for (unsigned i = 0; i < 32; i++) {
		struct sim_scenario sc;

		make_scenario(&sc, 700 + i, 3, 2, 1);
		sc.host[0].failback = sc.host[1].failback = true;
		sc.conn[0].stays = true;
		sim_plain_fault(&sc, "qp-error", 1, 6 * MS, 0);
		sc.fault[0].dev = 1;
		sim_plain_fault(&sc, "qp-error", 1, 7 * MS + i * 300 * US, 0);
		sc.fault[1].dev = 0;
		must_hold(&sc, 0, "no port was down");
	}
}

/* The data path's NIC is back, which makes a better standby possible; at that moment the standby's
 * goes for good: it is not waited for. (ha sim --faults switch, seed 7202.) */
static void not_waited_for(void)
{
	for (unsigned i = 0; i < 16; i++) {
		struct sim_scenario sc;

		make_scenario(&sc, 740 + i, 4, 0, 1);
		sc.conn[0].stays = true;
		sc.conn[0].messages = 54;
		for (unsigned h = 0; h < 2; h++) {
			sim_plain_fault(&sc, "cut", h, 1 * MS, 167 * MS);
			sc.fault[sc.nfaults - 1].dev = 0;
			sim_plain_fault(&sc, "cut", h, 168 * MS + i * 100 * US, FOR_GOOD);
			sc.fault[sc.nfaults - 1].dev = 2;
		}
		must_hold(&sc, 0, "not waited for");
	}
}

/* The receiver's only port is down for a moment. The sender, which has been notified, waits for its
 * word, and not for a back-off, also when the port is back before the incarnation is over. */
static void port_bounces(void)
{
	for (unsigned i = 0; i < 24; i++) {
		struct sim_scenario sc;

		make_scenario(&sc, 780 + i, 1, 0, 0);
		sim_plain_fault(&sc, "cut", 1, LOST_AT, 100 * US + i * 150 * US);
		must_hold(&sc, 60, "a port bounces");
	}
}

int main(void)
{
	leaf_is_lost();
	for (unsigned window = 1; window <= 4; window += 3) {
		crossed_paths_are_lost("cut", window);
		crossed_paths_are_lost("black-hole", window);
	}
	slowly_made_pair_comes_first(6, PROBED_MS);
	slowly_made_pair_comes_first(20, MADE_MS);
	for (int standbys = 0; standbys <= 3; standbys += 3) {
		kept_standby_carries("cut", standbys, 10);
		kept_standby_carries("black-hole", standbys, 25);
	}
	one_pair_is_left();
	tried_together();
	one_silent_pair_is_left();
	one_of_eight();
	rail_only("cut", 200);
	rail_only("black-hole", 0);
	fused_crosswise();
	one_against_two();
	one_after_the_other();
	spare_gives_way();
	silent_spare_gets_its_turn();
	every_pair_gets_its_turn();
	lost_while_young();
	no_port_was_down();
	not_waited_for();
	port_bounces();
	return 0;
}
