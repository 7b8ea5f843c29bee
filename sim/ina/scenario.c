/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/ina/scenario.h"

#include "sim/ina/world.h"

static uint64_t draw_between(struct sr_rng *rng, uint64_t low, uint64_t high)
{
	return low + sr_rng_below(rng, high - low + 1);
}

static bool one_in(struct sr_rng *rng, uint64_t n)
{
	return sr_rng_below(rng, n) == 0;
}

static void make_op(struct ina_sim_op *op, const struct ina_sim_scenario *sc, struct sr_rng *rng)
{
	op->coll = (uint8_t)draw_between(rng, INA_ALL_REDUCE, INA_ALL_GATHER);
	op->root = (uint8_t)sr_rng_below(rng, sc->ranks);
	op->packets = (uint32_t)(one_in(rng, 4) ? 1 : draw_between(rng, 1, INA_SIM_PACKETS_MAX));
	op->kind =
		sc->extended ? (enum ina_sim_kind)sr_rng_below(rng, INA_SIM_KINDS) : INA_SIM_SMALL;
}

/* Rates of losses and the like: mostly none or few, sometimes many. */
static uint32_t draw_rate(struct sr_rng *rng, uint32_t most)
{
	switch (sr_rng_below(rng, 4)) {
	case 0:
		return 0;
	case 1:
		return (uint32_t)sr_rng_below(rng, most + 1);
	default:
		return (uint32_t)sr_rng_below(rng, most / 20 + 1);
	}
}

static void make_direction(struct sr_fault_dir *dir, struct sr_rng *rng)
{
	dir->drop_ppm = draw_rate(rng, 80000);
	dir->dup_ppm = draw_rate(rng, 100000);
	dir->reorder_ppm = draw_rate(rng, 100000);
	dir->jitter_ns = one_in(rng, 2) ? sr_rng_below(rng, 20000) : 0;
	/* From a few packets to many windows. */
	dir->reorder_ns = UINT64_C(1000) << sr_rng_below(rng, 13);
}

static void make_network(struct ina_sim_scenario *sc, struct sr_rng *rng)
{
	sc->latency_ns = draw_between(rng, 500, 10000);
	sc->bytes_per_us = draw_between(rng, 1000, 12500);
	sc->slow_bytes_per_us = one_in(rng, 3) ? draw_between(rng, 100, 1000) : sc->bytes_per_us;
	sc->mark_ns = draw_between(rng, 2000, 20000);
	sc->queue_ns = sc->mark_ns * draw_between(rng, 2, 20);
	make_direction(&sc->up, rng);
	make_direction(&sc->down, rng);
}

static void make_faults(struct ina_sim_scenario *sc, struct sr_rng *rng)
{
	uint64_t when = draw_between(rng, 1000, 4000000);

	switch (sr_rng_below(rng, 6)) {
	case 0:
		sc->restart_at = when;
		sc->away_ns = draw_between(rng, 0, 3 * INA_SIM_PEER_NS / 2);
		break;
	case 1:
		sc->dead_at = when;
		break;
	case 2:
		sc->lapse_at = when;
		break;
	case 3:
		if (!sc->extended) /* they have no word for it */
			break;
		sc->leave_at = when;
		sc->outage_ns = one_in(rng, 2) ? draw_between(rng, 0, INA_SIM_OUTAGE_NS) : 0;
		break;
	}
	if (one_in(rng, 2))
		sc->hostile_ns = draw_between(rng, 1000, 50000);
}

void ina_sim_scenario_make(struct ina_sim_scenario *sc, uint64_t seed)
{
	struct sr_rng rng = { seed };

	rng.state = sr_rng_next(&rng); /* not the next seed's dice, one later */
	*sc = (struct ina_sim_scenario) { .seed = seed };
	sc->extended = !one_in(&rng, 3);
	sc->ranks = (unsigned)(one_in(&rng, 4) ? draw_between(&rng, 2, INA_RANKS_MAX)
					       : draw_between(&rng, 2, 6));
	sc->len = 2u << sr_rng_below(&rng, 8);
	if (one_in(&rng, 2)) /* about to wrap */
		sc->first_psn = 0u - sc->len * (uint32_t)draw_between(&rng, 1, 4);
	sc->nops = (unsigned)draw_between(&rng, 1, sc->ranks > 8 ? 3 : INA_SIM_OPS_MAX);
	for (unsigned i = 0; i < sc->nops; i++)
		make_op(&sc->op[i], sc, &rng);
	sc->skew_ns =
		one_in(&rng, 3) ? draw_between(&rng, 0, 20000000) : draw_between(&rng, 0, 100000);
	sc->think_ns = one_in(&rng, 3) ? draw_between(&rng, 0, 5000000) : 0;
	make_network(sc, &rng);
	make_faults(sc, &rng);
}

static void print_direction(const char *name, const struct sr_fault_dir *d, FILE *out)
{
	fprintf(out, "  %s: lost %u, twice %u, late %u ppm (by %.0f us), jitter %.1f us\n", name,
		d->drop_ppm, d->dup_ppm, d->reorder_ppm, (double)d->reorder_ns / 1e3,
		(double)d->jitter_ns / 1e3);
}

void ina_sim_scenario_print(const struct ina_sim_scenario *sc, FILE *out)
{
	static const char *const coll[] = { "?",         "all-reduce",     "reduce",
					    "broadcast", "reduce-scatter", "all-gather" };
	static const char *const kind[] = { "small", "large", "exponents" };

	fprintf(out,
		"  %u ranks, %s frames, %u slots, first psn %u, skew %.0f us, pauses %.0f us\n",
		sc->ranks, sc->extended ? "extended" : "old", sc->len, sc->first_psn,
		(double)sc->skew_ns / 1e3, (double)sc->think_ns / 1e3);
	for (unsigned i = 0; i < sc->nops; i++)
		fprintf(out, "  operation %u: %s, root %u, %u packets, %s\n", i,
			coll[sc->op[i].coll], sc->op[i].root, sc->op[i].packets,
			kind[sc->op[i].kind]);
	fprintf(out,
		"  %.1f us one way, %.1f and %.1f Gb/s, marked from %.1f us of queue, lost from "
		"%.1f us\n",
		(double)sc->latency_ns / 1e3, (double)sc->bytes_per_us * 8e-3,
		(double)sc->slow_bytes_per_us * 8e-3, (double)sc->mark_ns / 1e3,
		(double)sc->queue_ns / 1e3);
	print_direction("up", &sc->up, out);
	print_direction("down", &sc->down, out);
	if (sc->restart_at)
		fprintf(out, "  at %.0f us the switch restarts, for %.0f us\n",
			(double)sc->restart_at / 1e3, (double)sc->away_ns / 1e3);
	if (sc->dead_at)
		fprintf(out, "  at %.0f us rank 1 dies\n", (double)sc->dead_at / 1e3);
	if (sc->lapse_at)
		fprintf(out, "  at %.0f us the lease ends\n", (double)sc->lapse_at / 1e3);
	if (sc->leave_at)
		fprintf(out, "  at %.0f us rank 1 gives up, and is silent for %.0f us\n",
			(double)sc->leave_at / 1e3, (double)sc->outage_ns / 1e3);
	if (sc->hostile_ns)
		fprintf(out, "  a foreign sender sends every %.1f us\n",
			(double)sc->hostile_ns / 1e3);
}
