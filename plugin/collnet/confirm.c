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
		c->confirm.have[i] = c->group.from - 1;
	for (unsigned i = 0; i < c->rounds; i++) {
		c->confirm.in[i] = c->confirm.sent[i] = c->group.from - 1;
		if (c->confirm.early_epoch[i] == c->group.epoch &&
		    c->confirm.early_have[i] > c->confirm.in[i])
			c->confirm.in[i] = c->confirm.early_have[i];
	}
}

void ha_collnet_on_confirm(struct ha_collnet *c, unsigned lane, const struct ha_collnet_msg *m)
{
	if (m->id == c->group.epoch && c->mode != HA_COLLNET_RAILS) {
		if (m->a > c->confirm.in[lane])
			c->confirm.in[lane] = m->a;
	} else if (m->id > c->group.epoch) { /* that rank knows already that all have joined */
		c->confirm.early_epoch[lane] = m->id;
		c->confirm.early_have[lane] = m->a;
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

		c->confirm.have[i + 1] = min_u64(c->confirm.have[i], c->confirm.in[i]);
		if (c->confirm.have[i] == c->confirm.sent[i] ||
		    !(m = ha_lane_next(&c->out[i], HA_COLLNET_HAVE, c->group.epoch)))
			continue;
		m->from = (uint32_t)c->rank;
		m->a = c->confirm.sent[i] = c->confirm.have[i];
		ha_lane_send(&c->out[i], 0);
	}
	for (uint64_t seq = c->oldest > c->group.from ? c->oldest : c->group.from;
	     seq <= c->confirm.have[c->rounds]; seq++) {
		struct ha_collnet_op *op = ha_collnet_op_find(c, seq);
		bool all_sent = true;

		for (unsigned i = 0; i < c->rounds; i++)
			all_sent &= c->confirm.sent[i] >= seq || c->out[i].error;
		if (!op || op->done || !op->have || !all_sent)
			continue;
		ha_collnet_op_done(op);
		c->stats.switched++;
	}
}
