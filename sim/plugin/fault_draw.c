/* SPDX-License-Identifier: BSD-3-Clause */
/* fault_draw.c - which faults a seed means: how many, of what class, where and when, and how much
 */
#include "sim/plugin/fault_draw.h"

#include "sim/plugin/faults.h"

#include <string.h>

#define US 1000u
#define MS 1000000u

static uint64_t between(struct sr_rng *rng, uint64_t low, uint64_t high)
{
	return low + sr_rng_below(rng, high - low + 1);
}

/* ---- one of a class ---- */

void sim_make_none(struct sim_fault *f, const struct sim_scenario *sc, struct sr_rng *rng)
{
	f->len = 0;
}

/*
 * At most 5 %: eight losses in a row, which end a queue pair, must not happen in any number of
 * seeds.
 */
void sim_make_rate(struct sim_fault *f, const struct sim_scenario *sc, struct sr_rng *rng)
{
	f->len = between(rng, 50 * US, 20 * MS);
	f->amount = between(rng, 100, 50000);
}

void sim_make_reorder(struct sim_fault *f, const struct sim_scenario *sc, struct sr_rng *rng)
{
	sim_make_rate(f, sc, rng);
	f->amount = between(rng, 100, 300000);
}

void sim_make_delay(struct sim_fault *f, const struct sim_scenario *sc, struct sr_rng *rng)
{
	f->len = between(rng, 50 * US, 20 * MS);
	/*
	 * A detour longer than a queue pair's timer looks like loss; far below it, nothing may come
	 * of it.
	 */
	f->amount = between(rng, 1 * US, (UINT64_C(4096) << sc->timeout) / 4);
}

/* Well below the window, timers' fourfold tolerance (IBTA 9.7.6.1.3) included. */
void sim_make_short(struct sim_fault *f, const struct sim_scenario *sc, struct sr_rng *rng)
{
	f->len = between(rng, 10 * US, sim_scenario_window(sc) * 4 / 10);
}

void sim_make_long(struct sim_fault *f, const struct sim_scenario *sc, struct sr_rng *rng)
{
	f->len = sr_rng_below(rng, 3)
			 ? between(rng, sim_scenario_window(sc) / 2, 4 * sim_scenario_window(sc))
			 : SIM_FOREVER;
}

/* choose_device has named one of its ports. */
void sim_make_switch(struct sim_fault *f, const struct sim_scenario *sc, struct sr_rng *rng)
{
	sim_make_long(f, sc, rng);
	f->dev = sc->leaf[f->host][f->dev];
	f->amount = sr_rng_below(rng, 4);
}

void sim_make_stall(struct sim_fault *f, const struct sim_scenario *sc, struct sr_rng *rng)
{
	f->len = sr_rng_below(rng, 3) ? between(rng, 10 * US, 5 * MS)
				      : between(rng, 5 * MS, 1500u * MS);
}

/*
 * A BYE that comes later than a queue pair gives up cannot settle a send whose acknowledgement was
 * lost.
 */
void sim_make_sick(struct sim_fault *f, const struct sim_scenario *sc, struct sr_rng *rng)
{
	f->len = between(rng, 10 * US, sim_scenario_window(sc) / 4);
}

/*
 * A NIC that has acknowledged shows the completion soon after; the core waits a second for it
 * behind a BYE.
 */
void sim_make_hold(struct sim_fault *f, const struct sim_scenario *sc, struct sr_rng *rng)
{
	f->len = between(rng, 1 * US, sr_rng_below(rng, 3) ? 1 * MS : 400 * MS);
}

void sim_make_acked(struct sim_fault *f, const struct sim_scenario *sc, struct sr_rng *rng)
{
	f->len = between(rng, 5 * US, 300 * US);
}

void sim_make_count(struct sim_fault *f, const struct sim_scenario *sc, struct sr_rng *rng)
{
	f->len = 0;
	f->amount = between(rng, 1, 6);
}

void sim_make_flaps(struct sim_fault *f, const struct sim_scenario *sc, struct sr_rng *rng)
{
	f->len = between(rng, 1 * MS, 2 * sim_scenario_window(sc));
	/* up to this long down, then up */
	f->amount = between(rng, 20 * US, sim_scenario_window(sc) / 4);
}

/*
 * All that has begun is over with it: from a moment to more than an incarnation may take to come
 * up.
 */
void sim_make_connecting(struct sim_fault *f, const struct sim_scenario *sc, struct sr_rng *rng)
{
	f->len = sr_rng_below(rng, UINT64_C(1) << between(rng, 20, 34));
	/* one takes so long; an odd number: in vain */
	f->amount = sr_rng_below(rng, UINT64_C(1) << between(rng, 14, 33));
}

void sim_make_steering(struct sim_fault *f, const struct sim_scenario *sc, struct sr_rng *rng)
{
	f->len = between(rng, 50 * US, 50 * MS);
	f->amount = between(rng, 500, 1 * MS); /* up to this long between two changes */
}

void sim_make_slow(struct sim_fault *f, const struct sim_scenario *sc, struct sr_rng *rng)
{
	f->len = between(rng, 100 * US, 50 * MS);
	f->amount = between(rng, 2, 20); /* so many times */
}

/* From a moment, in which nobody has looked, to longer than any pause between two looks; an odd
 * number: under another name; bit 1: it is listed meanwhile, and cannot be opened. */
void sim_make_return(struct sim_fault *f, const struct sim_scenario *sc, struct sr_rng *rng)
{
	f->len = sr_rng_below(rng, UINT64_C(1) << between(rng, 14, 33));
	f->amount = sr_rng_below(rng, 4);
}

/* ---- all of a scenario ---- */

/*
 * A third of the seeds hold only what everybody survives; in the others one or two more may be
 * anything.
 */
static uint32_t usual(struct sr_rng *rng)
{
	bool gentle = sr_rng_below(rng, 3) == 0;
	uint32_t mask = 0;

	for (unsigned i = 0; i < sim_fault_nclasses; i++)
		if (!gentle || SIM_GENTLE(sim_fault_classes[i].effect))
			mask |= 1u << i;
	return mask;
}

/* One of the classes of a mask. */
static unsigned pick(uint32_t mask, struct sr_rng *rng)
{
	unsigned n = (unsigned)sr_rng_below(rng, (uint64_t)__builtin_popcount(mask));

	while (n--)
		mask &= mask - 1;
	return (unsigned)__builtin_ctz(mask);
}

static bool on_wire(const struct sim_fault *f)
{
	enum sim_effect effect = sim_fault_classes[f->class].effect;

	return effect == SIM_LOSSY || effect == SIM_SHORT_OUTAGE;
}

static bool mutes(const struct sim_fault *f)
{
	return sim_fault_classes[f->class].effect == SIM_SHORT_OUTAGE;
}

/* Gentle outages wait for each other, and for lost packets: else even they add up to a window. */
static uint64_t separate(const struct sim_scenario *sc, const struct sim_fault *f)
{
	uint64_t at = f->at, pause = 2 * sim_scenario_window(sc);

	if (!on_wire(f))
		return at;
	/* a shift may meet one that was passed before */
	for (unsigned k = 0; k < sc->nfaults * sc->nfaults; k++) {
		const struct sim_fault *g = &sc->fault[k % sc->nfaults];

		if ((mutes(f) || mutes(g)) && on_wire(g) && at < g->at + g->len + pause &&
		    g->at < at + f->len + pause)
			at = g->at + g->len + pause;
	}
	return at;
}

/* Mostly one that a connection runs over, or its standby's. */
static void choose_device(const struct sim_scenario *sc, struct sim_fault *f, struct sr_rng *rng)
{
	const struct sim_conn_spec *c = &sc->conn[sr_rng_below(rng, sc->nconns)];
	unsigned end = (unsigned)sr_rng_below(rng, 2);

	f->host = (unsigned)sr_rng_below(rng, 2);
	f->dev = (unsigned)sr_rng_below(rng, sc->ndevices[f->host]);
	f->rx = sr_rng_below(rng, 2);
	if (sr_rng_below(rng, 3) == 0)
		return;
	f->host = end ? 1 - c->from : c->from;
	f->dev = c->rail[end][sr_rng_below(rng, c->nrails[end])];
}

/*
 * Connecting takes the first milliseconds; then transfer, close. Some come when an earlier one is
 * being mended.
 */
static uint64_t choose_time(const struct sim_scenario *sc, struct sr_rng *rng)
{
	const struct sim_fault *before =
		sc->nfaults ? &sc->fault[sr_rng_below(rng, sc->nfaults)] : NULL;
	uint64_t at =
		sr_rng_below(rng, UINT64_C(1) << between(rng, sr_rng_below(rng, 3) ? 19 : 10, 25));
	uint64_t after =
		sr_rng_below(rng, UINT64_C(1) << between(rng, 10, sr_rng_below(rng, 4) ? 22 : 30));

	if (!before || sr_rng_below(rng, 2))
		return at;
	return before->at + (before->len < SIM_FOREVER && sr_rng_below(rng, 2) ? before->len : 0) +
	       after;
}

void sim_faults_make(struct sim_scenario *sc, struct sr_rng *rng, uint32_t allowed)
{
	uint32_t mask = allowed ? allowed : usual(rng);
	unsigned n =
		sr_rng_below(rng, 8) ? (unsigned)between(rng, 1, 5) : (unsigned)between(rng, 6, 20);

	/* A few kinds per seed, so that some seeds see much of one. */
	while (!allowed && __builtin_popcount(mask) > 4)
		mask &= (uint32_t)sr_rng_next(rng) | 1u << pick(mask, rng);
	for (unsigned i = 0; i < n; i++) {
		struct sim_fault *f = &sc->fault[sc->nfaults];

		*f = (struct sim_fault) { .class = pick(mask, rng) };
		choose_device(sc, f, rng);
		f->at = choose_time(sc, rng);
		sim_fault_classes[f->class].make(f, sc, rng);
		f->at = separate(sc, f);
		sc->nfaults++;
	}
}

static struct sim_fault *add(struct sim_scenario *sc, const char *name, uint64_t at, uint64_t len)
{
	struct sim_fault *f = &sc->fault[sc->nfaults++];
	char bad[32];

	*f = (struct sim_fault) { .class = (unsigned)__builtin_ctz(sim_faults_parse(name, bad)),
				  .at = at,
				  .len = len };
	return f;
}

void sim_faults_storm(struct sim_scenario *sc, struct sr_rng *rng)
{
	static const char *const breaks[] = { "qp-error", "qp-error", "qp-error",
					      "flap",     "cut",      "mute" };
	unsigned n = (unsigned)between(rng, 3, 12);
	uint64_t at = between(rng, 200 * US, 2 * MS);

	for (unsigned h = 0; h < 2; h++)
		for (unsigned d = 0; d < sc->ndevices[h]; d++) {
			struct sim_fault *f = add(sc, "loss", between(rng, 0, 1 * MS), 20 * MS);

			f->host = h;
			f->dev = d;
			f->amount = between(rng, 1000, 60000);
		}
	while (n--) {
		const char *name = breaks[sr_rng_below(rng, sizeof(breaks) / sizeof(breaks[0]))];
		struct sim_fault *f =
			add(sc, name, at, name[0] == 'q' ? 0 : between(rng, 100 * US, 20 * MS));

		f->host = (unsigned)sr_rng_below(rng, 2);
		f->dev = (unsigned)sr_rng_below(rng, sc->ndevices[f->host]);
		f->rx = sr_rng_below(rng, 2);
		at += between(rng, 10 * US, 2 * MS);
	}
}
