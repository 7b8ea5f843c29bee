/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ina_sim.c - reduction in the network under virtual time, as figures: what is sent again at which
 * loss, and how windows find their size
 *
 * Prints one JSON object; bench/ina-sim draws it. The same on every machine.
 */
#include "sim/ina/world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define RUNS 8
#define RUNS_RARE 32 /* where little is lost */
#define PPM 1000000u

/* So many ranks all-reduce 8 times 300 packets over cables of 40 Gbit/s and 2 us. */
static void make_steady(struct ina_sim_scenario *sc, uint64_t seed, unsigned ranks, bool extended)
{
	*sc = (struct ina_sim_scenario) {
		.seed = seed,
		.extended = extended,
		.ranks = ranks,
		.len = 256,
		.nops = INA_SIM_OPS_MAX,
		.latency_ns = 2000,
		.bytes_per_us = 5000,
		.slow_bytes_per_us = 5000,
		.queue_ns = 200000,
		.mark_ns = 10000,
	};
	for (unsigned i = 0; i < sc->nops; i++)
		sc->op[i] = (struct ina_sim_op) { INA_ALL_REDUCE, 0, INA_SIM_SMALL,
						  INA_SIM_PACKETS_MAX };
}

static void must_be_right(const struct ina_sim_scenario *sc, const struct ina_sim_result *r)
{
	if (r->finding == INA_SIM_NOTHING && !r->errors)
		return;
	fprintf(stderr, "bench-ina-sim: seed %" PRIu64 " found %s: %s\n", sc->seed,
		ina_sim_finding_name(r->finding), r->text);
	exit(1);
}

/* Of all packets, in ppm of both directions of each cable. */
static void at_loss(uint32_t ppm, unsigned ranks, bool extended, bool first)
{
	unsigned runs = ppm && ppm < 1000 ? RUNS_RARE : RUNS;
	uint64_t sent = 0, words = 0, probes = 0, timeouts = 0, ns = 0;

	for (unsigned run = 0; run < runs; run++) {
		struct ina_sim_scenario sc;
		struct ina_sim_result r;

		make_steady(&sc, 1 + run, ranks, extended);
		sc.up.drop_ppm = sc.down.drop_ppm = ppm;
		ina_sim_run(&sc, false, &r);
		must_be_right(&sc, &r);
		sent += r.count.sent;
		words += r.count.again_words;
		probes += r.count.probes;
		timeouts += r.count.full_retrans_trigger;
		ns += r.ns;
	}
	printf("%s\n  {\"frames\": \"%s\", \"ranks\": %u, \"loss\": %g, \"sent\": %" PRIu64
	       ", \"words_again\": %.6f, \"probes\": %.6f, "
	       "\"time_outs\": %" PRIu64 ", \"melem_per_s\": %.1f}",
	       first ? "" : ",", extended ? "extended" : "old", ranks, (double)ppm / PPM, sent,
	       (double)words / (double)sent, (double)probes / (double)sent, timeouts,
	       64e3 * (double)sent / ranks / (double)ns);
}

static void measure_losses(void)
{
	static const uint32_t ppm[] = { 0, 100, 300, 1000, 3000, 10000, 30000, 50000 };
	bool first = true;

	printf("{\"loss\": [");
	for (unsigned ranks = 4; ranks <= 16; ranks *= 4)
		for (int extended = 0; extended < 2; extended++)
			for (size_t i = 0; i < sizeof(ppm) / sizeof(ppm[0]); i++, first = false)
				at_loss(ppm[i], ranks, extended, first);
	printf("],\n");
}

struct windows {
	bool first;
	double last[INA_RANKS_MAX];
};

static void print_window(void *arg, unsigned rank, uint64_t ns, const struct ina_worker *w)
{
	struct windows *all = arg;

	if (w->cwnd.cwnd == all->last[rank])
		return;
	all->last[rank] = w->cwnd.cwnd;
	printf("%s\n  [%u, %.3f, %.2f]", all->first ? "" : ",", rank, (double)ns / 1e3,
	       w->cwnd.cwnd);
	all->first = false;
}

/* Rank 0's cable does a tenth: it marks, and all ranks go as slowly as it must. */
static void measure_windows(void)
{
	struct windows all = { .first = true };
	struct ina_sim_watch watch = { print_window, &all };
	struct ina_sim_scenario sc;
	struct ina_sim_result r;
	double packets;

	make_steady(&sc, 1, 4, true);
	sc.len = 512;
	sc.slow_bytes_per_us = 500;
	printf("\"window\": [");
	ina_sim_run_watched(&sc, &watch, &r);
	must_be_right(&sc, &r);
	packets = (double)(INA_SIM_OPS_MAX * INA_SIM_PACKETS_MAX);
	printf("],\n\"slow_cable\": {\"used\": %.3f, \"lost\": %" PRIu64
	       ", \"marked\": %.4f, \"again\": %.5f}}\n",
	       packets * (INA_FRAME_MAX + 24) * 1e3 / 500 / (double)r.ns, r.lost,
	       (double)r.count.marked / (packets * sc.ranks),
	       (double)(r.count.again_words + r.count.probes) / (packets * sc.ranks));
}

int main(void)
{
	measure_losses();
	measure_windows();
	return 0;
}
