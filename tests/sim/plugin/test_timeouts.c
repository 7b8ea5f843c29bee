/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_timeouts.c - which time-out, how many retries, which soft time-out: false alarms against the
 * time to recover (experiment B), in virtual time
 *
 * A path falls silent for a while and comes back: a flap. Its length is the one percentile after
 * the other of a distribution, exponential with a mean of 100 ms. A path that is given up for it is
 * a false alarm. Then a silence without end, and how long it takes until both ends have moved. The
 * NICs count their retries as the specification says; leaving a silent path early
 * (HA_NCCL_SILENCE_MS) is off, since it would hide what is looked for.
 *
 * - test_sim_timeouts: what must hold, of a few cells
 * - test_sim_timeouts grid [FLAPS]: all 75, a line each, for bench/timeouts: timeout, retry_cnt,
 *   RTO, window, flaps, false alarms, longest borne, shortest false, worst time to recover; ms
 */
#include "base/check.h"
#include "sim/plugin/hunt.h"
#include "tests/sim/plugin/plain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MEAN_MS 100
#define RTOS 5
#define CUTS 4

static const int timeouts[] = { 12, 13, 14, 15, 16 }, retries[] = { 5, 6, 7 },
		 rtos[RTOS] = { 800, 1000, 1500, 2000, 3000 };

struct cell {
	int timeout, retry;
	unsigned rto; /* index */
	unsigned flaps, false_alarms;
	double longest_borne, shortest_false, recovered; /* ms */
};

/* One time-out less than this there is no error: the first sending and its retries. */
static double window_ms(const struct cell *c)
{
	return 4.096e-3 * (double)(1u << c->timeout) * (c->retry + 1);
}

/* As config.c raises it. */
static int rto_ms(const struct cell *c)
{
	int least = (int)(2 * window_ms(c)) + 1;

	return rtos[c->rto] > least ? rtos[c->rto] : least;
}

static void make_scenario(const struct cell *c, uint64_t key, double silent_ms,
			  struct sim_scenario *sc)
{
	uint64_t at = 50 * MS + key % 16 * 3331 * US;

	sim_plain(sc, key);
	sc->ndevices[0] = sc->ndevices[1] = 2;
	sc->settings.timeout = c->timeout;
	sc->settings.retry = c->retry;
	for (unsigned h = 0; h < 2; h++)
		sc->host[h].rto_ms = rto_ms(c);
	sc->conn[0].think_ns = 10 * MS;
	sc->conn[0].messages = 200;
	sim_plain_fault(sc, "black-hole", key & 1, at, (uint64_t)(silent_ms * 1e6));
	sc->fault[0].rx = key >> 1 & 1;
}

static void run_scenario(const struct sim_scenario *sc, struct sim_result *r)
{
	sim_run_apart(sc, SIM_SOUND, r);
	if (r->finding != SIM_NOTHING)
		fprintf(stderr, "%s: %s\n", sim_finding_name(r->finding), r->text);
	CHECK_INT(r->finding, SIM_NOTHING);
}

/* Flap `i` of `n` that the RTOs of one window have together. */
static double flap_ms(unsigned i, unsigned n)
{
	return -MEAN_MS * log(1 - (i + 0.5) / n);
}

static void measure_flap(struct cell *c, uint64_t key, double ms)
{
	struct sim_scenario sc;
	struct sim_result r;

	make_scenario(c, key, ms, &sc);
	run_scenario(&sc, &r);
	c->flaps++;
	if (!r.failovers) {
		c->longest_borne = fmax(c->longest_borne, ms);
		return;
	}
	c->false_alarms++;
	c->shortest_false = fmin(c->shortest_false, ms);
}

static void measure_cut(struct cell *c, uint64_t key)
{
	double forever_ms = 10 * rto_ms(c);
	struct sim_scenario sc;
	struct sim_result r;

	make_scenario(c, key, forever_ms, &sc);
	run_scenario(&sc, &r);
	CHECK_INT(r.failovers, 2);
	c->recovered = fmax(c->recovered, (double)(r.moved_over_ns - sc.fault[0].at) / 1e6);
}

static void measure_cell(struct cell *c, unsigned flaps)
{
	c->shortest_false = INFINITY;
	for (unsigned i = 0; i < flaps; i++)
		measure_flap(c, i + 1, flap_ms(i * RTOS + c->rto, flaps * RTOS));
	for (uint64_t key = 1; key <= CUTS; key++)
		measure_cut(c, key);
}

static void print_cell(const struct cell *c)
{
	printf("%d %d %d %.3f %u %u %.1f %.1f %.1f\n", c->timeout, c->retry, rtos[c->rto],
	       window_ms(c), c->flaps, c->false_alarms, c->longest_borne, c->shortest_false,
	       c->recovered);
	fflush(stdout);
}

static void measure_grid(unsigned flaps)
{
	for (unsigned t = 0; t < sizeof(timeouts) / sizeof(timeouts[0]); t++)
		for (unsigned n = 0; n < sizeof(retries) / sizeof(retries[0]); n++)
			for (unsigned rto = 0; rto < RTOS; rto++) {
				struct cell c = { timeouts[t], retries[n], rto };

				measure_cell(&c, flaps);
				print_cell(&c);
			}
}

/* What is shorter than the window less one time-out is borne; the NIC alone decides, and a cut
 * costs its window. */
static void window_decides(int timeout, int retry, unsigned flaps)
{
	struct cell c = { timeout, retry, 1 };
	double one = 4.096e-3 * (double)(1u << timeout);

	measure_cell(&c, flaps);
	print_cell(&c);
	CHECK(c.shortest_false >= window_ms(&c) - one);
	CHECK(c.longest_borne <= window_ms(&c) + one);
	CHECK(c.recovered >= window_ms(&c) - one && c.recovered <= window_ms(&c) + 50);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "grid")) {
		measure_grid(argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 20);
		return 0;
	}
	window_decides(12, 5, 12);
	window_decides(14, 7, 6);
	return 0;
}
