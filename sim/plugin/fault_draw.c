/* SPDX-License-Identifier: BSD-3-Clause */
/* fault_draw.c - the length and the amount of a fault, drawn by its class */
#include "sim/plugin/fault_draw.h"

#define US 1000u
#define MS 1000000u

static uint64_t draw_between(struct sr_rng *rng, uint64_t low, uint64_t high)
{
	return low + sr_rng_below(rng, high - low + 1);
}

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
	f->len = draw_between(rng, 50 * US, 20 * MS);
	f->amount = draw_between(rng, 100, 50000);
}

void sim_make_reorder(struct sim_fault *f, const struct sim_scenario *sc, struct sr_rng *rng)
{
	sim_make_rate(f, sc, rng);
	f->amount = draw_between(rng, 100, 300000);
}

void sim_make_delay(struct sim_fault *f, const struct sim_scenario *sc, struct sr_rng *rng)
{
	f->len = draw_between(rng, 50 * US, 20 * MS);
	/*
	 * A detour longer than a queue pair's timer looks like loss; far below it, nothing may come
	 * of it.
	 */
	f->amount = draw_between(rng, 1 * US, (UINT64_C(4096) << sc->settings.timeout) / 4);
}

/* Well below the window, timers' fourfold tolerance (IBTA 9.7.6.1.3) included. */
void sim_make_short(struct sim_fault *f, const struct sim_scenario *sc, struct sr_rng *rng)
{
	f->len = draw_between(rng, 10 * US, sim_scenario_window(sc) * 4 / 10);
}

void sim_make_long(struct sim_fault *f, const struct sim_scenario *sc, struct sr_rng *rng)
{
	f->len = sr_rng_below(rng, 3) ? draw_between(rng, sim_scenario_window(sc) / 2,
						     4 * sim_scenario_window(sc))
				      : SIM_FOREVER;
}

/* choose_device has named one of its ports. */
void sim_make_switch(struct sim_fault *f, const struct sim_scenario *sc, struct sr_rng *rng)
{
	sim_make_long(f, sc, rng);
	f->dev = sc->wire.leaf[f->host][f->dev];
	f->amount = sr_rng_below(rng, 4);
}

void sim_make_stall(struct sim_fault *f, const struct sim_scenario *sc, struct sr_rng *rng)
{
	f->len = sr_rng_below(rng, 3) ? draw_between(rng, 10 * US, 5 * MS)
				      : draw_between(rng, 5 * MS, 1500u * MS);
}

/*
 * A BYE that comes later than a queue pair gives up cannot settle a send whose acknowledgement was
 * lost.
 */
void sim_make_sick(struct sim_fault *f, const struct sim_scenario *sc, struct sr_rng *rng)
{
	f->len = draw_between(rng, 10 * US, sim_scenario_window(sc) / 4);
}

/*
 * A NIC that has acknowledged shows the completion soon after; the core waits a second for it
 * behind a BYE.
 */
void sim_make_hold(struct sim_fault *f, const struct sim_scenario *sc, struct sr_rng *rng)
{
	f->len = draw_between(rng, 1 * US, sr_rng_below(rng, 3) ? 1 * MS : 400 * MS);
}

void sim_make_acked(struct sim_fault *f, const struct sim_scenario *sc, struct sr_rng *rng)
{
	f->len = draw_between(rng, 5 * US, 300 * US);
}

void sim_make_count(struct sim_fault *f, const struct sim_scenario *sc, struct sr_rng *rng)
{
	f->len = 0;
	f->amount = draw_between(rng, 1, 6);
}

void sim_make_flaps(struct sim_fault *f, const struct sim_scenario *sc, struct sr_rng *rng)
{
	f->len = draw_between(rng, 1 * MS, 2 * sim_scenario_window(sc));
	/* up to this long down, then up */
	f->amount = draw_between(rng, 20 * US, sim_scenario_window(sc) / 4);
}

/*
 * All that has begun is over with it: from a moment to more than an incarnation may take to come
 * up.
 */
void sim_make_connecting(struct sim_fault *f, const struct sim_scenario *sc, struct sr_rng *rng)
{
	f->len = sr_rng_below(rng, UINT64_C(1) << draw_between(rng, 20, 34));
	/* one takes so long; an odd number: and fails */
	f->amount = sr_rng_below(rng, UINT64_C(1) << draw_between(rng, 14, 33));
}

void sim_make_steering(struct sim_fault *f, const struct sim_scenario *sc, struct sr_rng *rng)
{
	f->len = draw_between(rng, 50 * US, 50 * MS);
	f->amount = draw_between(rng, 500, 1 * MS); /* up to this long between two changes */
}

void sim_make_slow(struct sim_fault *f, const struct sim_scenario *sc, struct sr_rng *rng)
{
	f->len = draw_between(rng, 100 * US, 50 * MS);
	f->amount = draw_between(rng, 2, 20); /* so many times */
}

/* From a moment, in which nobody has looked, to longer than any pause between two looks; an odd
 * number: under another name; bit 1: it is listed meanwhile, and cannot be opened. */
void sim_make_return(struct sim_fault *f, const struct sim_scenario *sc, struct sr_rng *rng)
{
	f->len = sr_rng_below(rng, UINT64_C(1) << draw_between(rng, 14, 33));
	f->amount = sr_rng_below(rng, 4);
}
