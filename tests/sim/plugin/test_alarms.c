/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_alarms.c - how often a path is left for its silence (HA_NCCL_SILENCE_MS, its default) that
 * is sound: packet loss, jitter, a process that is stopped, a processor that has too much to do,
 * eight connections onto one that the wire is too slow for
 *
 * Virtual time, so exact. Arguments: minutes of each (1), in one piece, so that what a false alarm
 * teaches counts; the number of the only kind that is wanted; the key of its random numbers (1).
 */
#include "base/check.h"
#include "base/number.h"
#include "sim/plugin/hunt.h"
#include "tests/sim/plugin/plain.h"

#include <inttypes.h>
#include <stdlib.h>

#define MINUTE (60000 * MS)
#define SILENCE_MS 5     /* the default, as timeout and retries below are */
#define PER_MINUTE 45000 /* messages */
#define STEPS 20000000u  /* of the wire in a minute, at most */

struct tally {
	double seconds;
	uint64_t messages, moved, alarms;
};

/* Two hosts of two devices each, 25 Gb/s; a message of up to 64 KiB each 4 ms on the average. */
static void make_base(struct sim_scenario *sc, unsigned minutes, uint64_t key)
{
	sim_plain(sc, key);
	sc->settings.timeout = 14;
	sc->settings.retry = 7;
	sc->limits.mtu = IBV_MTU_4096;
	sc->wire.bytes_per_us = 3125;
	sc->thread.gap_max_ns = 500 * US;
	sc->ndevices[0] = sc->ndevices[1] = 2;
	for (unsigned h = 0; h < 2; h++)
		sc->host[h].silence_ms = SILENCE_MS;
	sc->conn[0].max_size = 64 << 10;
	sc->conn[0].think_ns = 8 * MS;
	sc->conn[0].messages = minutes * PER_MINUTE;
	sc->steps_max = minutes * STEPS;
}

/* On both NICs that carry data, of what they send and of what they receive. */
static void on_path(struct sim_scenario *sc, const char *fault, uint64_t amount)
{
	for (unsigned host = 0; host < 2; host++) {
		sim_plain_fault(sc, fault, host, 0, 100 * MINUTE);
		sc->fault[sc->nfaults - 1].amount = amount;
	}
}

static void add_loss(struct sim_scenario *sc)
{
	on_path(sc, "loss", 10000); /* ppm */
}

static void add_jitter(struct sim_scenario *sc)
{
	on_path(sc, "jitter", 3 * MS);
}

/* SIGSTOP, for 0.1 to 2 s, at either end by turns, as often as a scenario has faults. */
static void add_stalls(struct sim_scenario *sc)
{
	uint64_t minutes = sc->conn[0].messages / PER_MINUTE;

	for (unsigned i = 0; i < SIM_FAULTS_MAX; i++)
		sim_plain_fault(sc, "stall", i & 1, (2000 + i * 1871 * minutes) * MS,
				(100 + 271 * i % 1900) * MS);
}

/* The driver's thread comes up to 30 ms late, the program's up to 10. */
static void delay_threads(struct sim_scenario *sc)
{
	sc->thread.service_ns = 30 * MS;
	sc->thread.gap_max_ns = 10 * MS;
}

/* What eight senders have out for one port stands in its queue for 160 ms. */
static void make_incast(struct sim_scenario *sc)
{
	sc->wire.bus_rate[0] = 25; /* bytes per us, for all of them together */
	sc->thread.gap_max_ns = MS;
	sc->nconns = 8;
	sc->conn[0].messages /= 16; /* 64 KiB each take 2.6 ms */
	sc->conn[0].whole = true;
	sc->conn[0].window = 8;
	sc->conn[0].think_ns = 0;
	for (unsigned i = 1; i < sc->nconns; i++) {
		sc->conn[i] = sc->conn[0];
		sc->conn[i].key += i;
	}
}

static void count_alarms(struct tally *t, const struct sim_scenario *sc, unsigned minutes)
{
	struct sim_result r;

	if (minutes > 1)
		sim_world_run(sc, SIM_SOUND, false, &r); /* no seed runs for so long */
	else
		sim_run_apart(sc, SIM_SOUND, &r);
	if (r.finding != SIM_NOTHING)
		fprintf(stderr, "%s: %s\n", sim_finding_name(r.finding), r.text);
	CHECK_INT(r.finding, SIM_NOTHING);
	CHECK_INT(r.errors, 0);
	t->seconds += (double)r.ns / 1e9;
	t->messages += r.messages;
	t->moved += r.failovers;
	t->alarms += r.false_alarms;
}

static void of_kind(const char *what, void (*make)(struct sim_scenario *sc), unsigned minutes,
		    uint64_t key)
{
	struct sim_scenario sc;
	struct tally t = { 0 };

	make_base(&sc, minutes, key);
	make(&sc);
	count_alarms(&t, &sc, minutes);
	printf("%-48s %6.0f s, %8llu messages, %llu false alarms, %llu ends failed over\n", what,
	       t.seconds, (unsigned long long)t.messages, (unsigned long long)t.alarms,
	       (unsigned long long)t.moved);
	fflush(stdout);
	CHECK(t.seconds >= 30.0 * minutes); /* or there was nothing to be alarmed by */
	CHECK_INT(t.alarms, 0);
	CHECK_INT(t.moved, 0);
}

/* The word at that place, or the default; what is no number there would run nothing. */
static uint64_t take_number(int argc, char **argv, int at, uint64_t low, uint64_t high,
			    uint64_t otherwise)
{
	static const char *const words[] = { "", "MINUTES", "KIND", "KEY" };
	uint64_t number = otherwise;

	if (argc <= at || ha_number_parse(argv[at], low, high, &number))
		return number;
	fprintf(stderr,
		"test_sim_alarms: %s takes a whole number from %" PRIu64 " to %" PRIu64
		", not '%s'\n",
		words[at], low, high, argv[at]);
	exit(2);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *what;
		void (*make)(struct sim_scenario *sc);
	} kinds[] = {
		{ "1 % of the packets lost, both ways", add_loss },
		{ "jitter of 3 ms, both ways", add_jitter },
		{ "stopped for 0.1 to 2 s, 32 times", add_stalls },
		{ "threads up to 30 ms late", delay_threads },
		{ "eight onto one, 160 ms of queue", make_incast },
	};
	const unsigned count = sizeof(kinds) / sizeof(*kinds);
	uint64_t minutes = take_number(argc, argv, 1, 1, 1440, 1);
	uint64_t kind = take_number(argc, argv, 2, 0, count - 1, count);
	uint64_t key = take_number(argc, argv, 3, 0, UINT64_MAX, 1);

	if (argc > 4) {
		fprintf(stderr, "test_sim_alarms: '%s' is one word too many\n", argv[4]);
		return 2;
	}
	for (unsigned i = 0; i < count; i++)
		if (kind == count || kind == i)
			of_kind(kinds[i].what, kinds[i].make, (unsigned)minutes, key);
	return 0;
}
