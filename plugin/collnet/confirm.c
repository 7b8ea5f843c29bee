/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * confirm.c - an operation that the switch has done is done when every rank has its result
 *
 * Before that its buffers must stay as they are, for another rank may need this one's copy. A
 * rank's own count goes over lane 0; what is the least of that and of what lane 0 brought goes over
 * lane 1, and so on: after the last round it is the least of all ranks'. Counts only grow, so
 * several operations in flight share a message.
 */
#include "plugin/collnet/comm.h"

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

void ha_collnet_confirm_begin(struct ha_collnet *c)
{
	for (unsigned i = 0; i <= c->rounds; i++)
		c->have[i] = c->switch_from - 1;
	for (unsigned i = 0; i < c->rounds; i++) {
		c->have_in[i] = c->have_sent[i] = c->switch_from - 1;
		if (c->early_epoch[i] == c->epoch && c->early_have[i] > c->have_in[i])
			c->have_in[i] = c->early_have[i];
	}
}

void ha_collnet_on_confirm(struct ha_collnet *c, unsigned lane, const struct ha_collnet_msg *m)
{
	if (m->id == c->epoch && c->mode != HA_COLLNET_RAILS) {
		if (m->a > c->have_in[lane])
			c->have_in[lane] = m->a;
	} else if (m->id > c->epoch) { /* that rank knows already that all have joined */
		c->early_epoch[lane] = m->id;
		c->early_have[lane] = m->a;
	}
}

/* Also while a broken group is wound up: what was confirmed before a rank fell idle must reach the
 * others. */
void ha_collnet_confirm_step(struct ha_collnet *c)
{
	if (c->mode == HA_COLLNET_RAILS)
		return;
	for (unsigned i = 0; i < c->rounds; i++) {
		struct ha_collnet_msg *m;

		c->have[i + 1] = min_u64(c->have[i], c->have_in[i]);
		if (c->have[i] == c->have_sent[i] ||
		    !(m = ha_lane_next(&c->out[i], HA_COLLNET_HAVE, c->epoch)))
			continue;
		m->from = (uint32_t)c->rank;
		m->a = c->have_sent[i] = c->have[i];
		ha_lane_send(&c->out[i], 0);
	}
	for (uint64_t seq = c->oldest > c->switch_from ? c->oldest : c->switch_from;
	     seq <= c->have[c->rounds]; seq++) {
		struct ha_collnet_op *op = ha_collnet_op_find(c, seq);
		bool told = true;

		for (unsigned i = 0; i < c->rounds; i++)
			told &= c->have_sent[i] >= seq || c->out[i].error;
		if (!op || op->done || !op->have || !told)
			continue;
		ha_collnet_op_done(op);
		c->stats.switched++;
	}
}
