/* SPDX-License-Identifier: BSD-3-Clause */
/* steer.c - an agent that may do anything: hints, good and bad, at any moment; where no agent can
 * be asked, shares by hand; and a sound agent, which may die */
#include "plugin/balance/share.h"
#include "sim/plugin/side.h"

#include <stdio.h>

static uint64_t roll_below(struct sim_host *h, uint64_t n)
{
	return sr_rng_below(&h->rng, n);
}

/* Often all or nothing. */
static uint32_t roll_share(struct sim_host *h)
{
	if (roll_below(h, 3))
		return (uint32_t)roll_below(h, MPIB_HINT_MAX_BW + 1);
	return roll_below(h, 2) ? MPIB_HINT_MAX_BW : 0;
}

/* Every connection may have a slot of its own. */
static void give_hint(struct sim_host *h, struct ha_bundle *b, unsigned slot)
{
	struct mpib_hint_entry *e = &h->hints.entries[slot];
	uint32_t share = roll_share(h);

	atomic_store(&b->balance.advised.flow.slot, roll_below(h, 8) ? slot : MPIB_NO_SLOT);
	if (!roll_below(h, 10))
		share = MPIB_HINT_MAX_BW + 1 +
			(uint32_t)roll_below(h, UINT32_MAX - MPIB_HINT_MAX_BW);
	mpib_hint_put(e, share, b->balance.advised.flow.sout_src + !roll_below(h, 10),
		      b->balance.advised.flow.sout_dst);
	e->seq |= !roll_below(h, 10); /* its writer died over it */
}

static void change_shares(struct sim_host *h, struct ha_bundle *b)
{
	uint16_t share[HA_MAX_RAILS] = { 0 };
	uint32_t part[HA_MAX_RAILS];

	for (unsigned i = 0; i < HA_MAX_RAILS; i++)
		part[i] = roll_below(h, 3) ? (uint32_t)roll_below(h, 1025) : 0;
	part[roll_below(h, b->balance.ndata)] = 1024;
	ha_share_out(part, b->balance.ndata, share);
	for (unsigned i = 0; i < b->balance.ndata; i++)
		share[i] = share[b->balance.lead[i]];
	ha_share_change(b, share);
}

void sim_traffic_advise(struct sim_host *h)
{
	struct sim_world *w = h->world;
	const struct sim_agent *agent = &w->sc.host[h->index].agent;
	uint64_t now = sim_elapsed(w);
	bool dead = agent->dies && now >= agent->dies && now < agent->back;

	for (unsigned i = 0; i < SIM_CONNS_MAX && agent->on; i++) {
		struct sim_side *s = w->conn[i] ? &w->conn[i]->side[0] : NULL;
		struct ha_bundle *b = s && s->host == h && s->phase == SIM_UP ? s->bundle : NULL;
		struct mpib_hint_entry *e = &h->hints.entries[i];

		if (!b || !b->balance.advised.on)
			continue;
		if (dead)
			e->seq |= 1;
		else if (e->seq & 1 || atomic_load(&b->balance.advised.flow.slot) == MPIB_NO_SLOT)
			mpib_hint_put(e, agent->share, b->balance.advised.flow.sout_src,
				      b->balance.advised.flow.sout_dst);
		atomic_store(&b->balance.advised.flow.slot, i);
	}
}

void sim_traffic_steer(struct sim_host *h)
{
	struct sim_world *w = h->world;

	for (unsigned i = 0; i < SIM_CONNS_MAX && !h->dead; i++) {
		struct sim_side *s = w->conn[i] ? &w->conn[i]->side[0] : NULL;
		struct ha_bundle *b = s && s->host == h && s->phase == SIM_UP ? s->bundle : NULL;

		if (!b || !b->balance.moves || b->error || b->balance.adaptive.on)
			continue;
		sim_trace_line(w, "connection %u: other shares", i);
		if (b->balance.advised.on)
			give_hint(h, b, i);
		else
			change_shares(h, b);
	}
}
