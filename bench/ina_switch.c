/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench-ina-switch: what one core of ha-switch adds, beside what the same program does with packets
 * of the same size without adding
 *
 * Usage: bench-ina-switch HA-SWITCH [ROUNDS [MS [CASE]]]   CASE: 2, 4, 8, 16, 32, forward or
 * reflect, and nothing else, for a profiler
 *
 * Two memifs, and in every case 1024 packets of 308 bytes in flight (ina_traffic.h): contributions
 * of N ranks; the same packets forwarded by the bridge; the same contributions decoded and sent
 * back as they are (reflect).
 * A switch's rate is packets per second of the time that its core's rounds with packets took,
 * without rounds of more than 100 us, in which somebody else had the processor: so neither a slow
 * sender nor other programs count. Each round does all of them;
 * printed are the medians, and the medians of the ratios within a round.
 */
#include "base/check.h"
#include "base/clock.h"
#include "base/options.h"
#include "bench/ina_traffic.h"
#include "tests/ina/switch/switchd/rig.h"

#include <assert.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#define ROUNDS_MAX 64

enum {
	SIZES = INA_TRAFFIC_SIZES,
	FORWARD = INA_TRAFFIC_FORWARD,
	REFLECT = INA_TRAFFIC_REFLECT,
	CASES = INA_TRAFFIC_CASES
};
static_assert(INA_TRAFFIC_ADDR == RIG_ADDR, "what is sent is for the rig's switch");
static struct switch_rig r;
static struct ina_traffic t;

struct figure {
	double rate; /* packets/s of busy time */
	double wall; /* packets/s */
};
static struct figure figures[CASES][ROUNDS_MAX];
static char cpus[32];
static unsigned only = CASES; /* of all cases; CASES: all */

static uint64_t drive_traffic(uint64_t until, bool go_on)
{
	uint64_t came = 0;

	do {
		for (unsigned port = 0; port < 2; port++)
			came += ina_traffic_answer(&t, port, go_on);
	} while (ha_clock_now(&ha_clock_live) < until);
	return came;
}

/* ---- a measurement ---- */

static struct figure measure_case(unsigned which, unsigned ms)
{
	uint64_t cycles, packets, from, came,
		hz = switch_rig_metric(&r, "hawser_switch_cycles_per_second");
	double busy, wall;

	ina_traffic_make(&t, which, r.port, r.tx);
	for (uint32_t i = 0; i < INA_TRAFFIC_IN_FLIGHT; i++) {
		ina_traffic_send(&t, r.pool, i % t.ranks);
		if (i % 64 == 63)
			drive_traffic(0, true);
	}
	drive_traffic(ha_clock_now(&ha_clock_live) + ms / 5 * HA_NS_PER_MS, true);
	cycles = switch_rig_metric(&r, "hawser_switch_short_cycles_total");
	packets = switch_rig_metric(&r, "hawser_switch_short_packets_total");
	from = ha_clock_now(&ha_clock_live);
	came = drive_traffic(from + ms * HA_NS_PER_MS, true);
	wall = (double)(ha_clock_now(&ha_clock_live) - from) / 1e9;
	packets = switch_rig_metric(&r, "hawser_switch_short_packets_total") - packets;
	busy = (double)(switch_rig_metric(&r, "hawser_switch_short_cycles_total") - cycles) /
	       (double)hz;
	CHECK(came > 1000);
	drive_traffic(ha_clock_now(&ha_clock_live) + 50 * HA_NS_PER_MS, false);
	CHECK_INT(switch_rig_metric(&r, "hawser_switch_frames_total{reason=\"early\"}") +
			  switch_rig_metric(&r,
					    "hawser_switch_frames_total{reason=\"wrong-slot\"}"),
		  0);
	return (struct figure) { .rate = (double)packets / busy, .wall = (double)came / wall };
}

static void write_groups(void)
{
	char text[4096];
	size_t at = 0;

	for (unsigned i = 0; i < SIZES; i++) {
		struct ina_group_config c = ina_traffic_group(i);

		at += (size_t)snprintf(text + at, sizeof(text) - at,
				       "group %u epoch %u slots %u %u members", c.id, c.epoch,
				       c.base, c.len);
		for (unsigned k = 0; k < c.ranks; k++)
			at += (size_t)snprintf(text + at, sizeof(text) - at, " 10.0.0.%u", k + 1);
		at += (size_t)snprintf(text + at, sizeof(text) - at, "\n");
	}
	switch_rig_groups(&r, text);
}

/*
 * The sender has the first processor that this process may use (ina/frame/port/eal.h), the switch
 * the last one: on one they would wait for each other.
 */
static void choose_processor(void)
{
	cpu_set_t may;
	int last = CPU_SETSIZE - 1;

	CHECK(!sched_getaffinity(0, sizeof(may), &may));
	while (last && !CPU_ISSET(last, &may))
		last--;
	if (CPU_COUNT(&may) < 2)
		fprintf(stderr, "one processor for sender and switch: what follows says little\n");
	snprintf(cpus, sizeof(cpus), "--cpus=%d", last);
}

/* With or without --reflect; psns begin at 0 with every incarnation of the switch. */
static void run_switch(unsigned round, bool reflect, unsigned ms)
{
	const char *options[] = {
		"--idle-us=0", "--queue=1024", "--memory=128", cpus, reflect ? "--reflect" : NULL,
		NULL
	};

	if (only < CASES && reflect != (only == REFLECT))
		return;
	switch_rig_start(&r, options);
	if (!r.pool)
		switch_rig_connect(&r);
	switch_rig_await_up(&r);
	if (reflect) {
		figures[REFLECT][round] = measure_case(REFLECT, ms);
	} else {
		for (unsigned i = 0; i <= FORWARD; i++)
			if (only == CASES || only == i)
				figures[i][round] = measure_case(i, ms);
	}
	switch_rig_stop(&r, SIGTERM);
}

/* ---- the table ---- */

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v, unsigned n)
{
	qsort(v, n, sizeof(*v), compare_doubles);
	return v[n / 2];
}

static double median_rate(unsigned which, unsigned against, unsigned rounds, bool wall)
{
	double v[ROUNDS_MAX];

	for (unsigned i = 0; i < rounds; i++) {
		v[i] = wall ? figures[which][i].wall : figures[which][i].rate;
		if (against < CASES)
			v[i] /= wall ? figures[against][i].wall : figures[against][i].rate;
	}
	return median(v, rounds);
}

static void print_table(unsigned rounds)
{
	printf("%-9s %12s %12s %12s %9s %9s %12s\n", "", "Mpackets/s", "Melem/s", "ns/packet",
	       "/forward", "/reflect", "wall Mpkt/s");
	for (unsigned i = 0; i < CASES; i++) {
		double pps = median_rate(i, CASES, rounds, false);

		if (only < CASES && i != only)
			continue;
		printf("%-9s %12.2f ", ina_traffic_name(i), pps / 1e6);
		if (i < SIZES)
			printf("%12.0f ", pps * INA_WORDS / 1e6);
		else
			printf("%12s ", "");
		printf("%12.0f ", 1e9 / pps);
		if (only == CASES)
			printf("%9.2f %9.2f ", median_rate(i, FORWARD, rounds, false),
			       median_rate(i, REFLECT, rounds, false));
		else
			printf("%9s %9s ", "", "");
		printf("%12.2f\n", median_rate(i, CASES, rounds, true) / 1e6);
	}
}

struct options {
	const char *program;
	unsigned rounds, ms, only;
};

static bool take_case(void *target, const struct ha_option_text *given)
{
	struct options *o = target;

	o->only = ina_traffic_case(given->text);
	return o->only != CASES;
}

#define HA_TARGET struct options

static const struct ha_option operands[] = {
	{ "HA-SWITCH", 0, NULL, "its path", HA_TEXT(program) },
	{ "ROUNDS", 0, NULL, "of each case (5)", HA_NUMBER(rounds, 1, ROUNDS_MAX) },
	{ "MS", 0, NULL, "of a measurement (400)", HA_NUMBER(ms, 1, 3600000) },
	{ "CASE", 0, NULL, "alone (all)",
	  HA_CALL(take_case, "2, 4, 8, 16, 32, forward or reflect") },
	{ 0 },
};

static const struct ha_program program = {
	.name = "bench-ina-switch",
	.about = "What a core of a running ha-switch adds for 2 to 32 ranks over memif, beside "
		 "what it forwards and reflects.",
	.operands = operands,
	.needed = 1,
};

int main(int argc, char **argv)
{
	struct options o = { .rounds = 5, .ms = 400, .only = only };
	int result = ha_options_parse(&program, argc, argv, &o);

	if (result)
		return result - 1;
	only = o.only;
	choose_processor();
	switch_rig_make(&r, o.program, 2);
	write_groups();
	for (unsigned i = 0; i < o.rounds; i++) {
		run_switch(i, false, o.ms);
		run_switch(i, true, o.ms);
	}
	print_table(o.rounds);
	switch_rig_end(&r);
	return 0;
}
