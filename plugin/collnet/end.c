/* SPDX-License-Identifier: BSD-3-Clause */
/* end.c - how a communicator ends */
#include "plugin/collnet/comm.h"

#include "base/clock.h"

#include <stdlib.h>
#include <time.h>

#define BYE_NS (2 * HA_NS_PER_S)

static uint64_t last_done(struct ha_collnet *c)
{
	uint64_t seq = c->oldest;
	struct ha_collnet_op *op;

	while (seq <= c->posted && (!(op = ha_collnet_op_find(c, seq)) || op->done))
		seq++;
	return seq - 1;
}

static bool outs_idle(const struct ha_collnet *c)
{
	for (unsigned i = 0; i < c->rounds; i++)
		if (!ha_lane_out_idle(&c->out[i]))
			return false;
	return ha_lane_out_idle(&c->out[HA_COLLNET_DATA]);
}

/* What the others still need has arrived, and they know that no more comes. */
static void send_bye(struct ha_collnet *c)
{
	uint64_t until = ha_collnet_now(c) + BYE_NS, done = last_done(c);
	bool said[HA_COLLNET_ROUNDS] = { false }, all = false;

	while (ha_collnet_now(c) < until && !(all && outs_idle(c))) {
		all = true;
		for (unsigned i = 0; i < c->rounds; i++) {
			struct ha_collnet_msg *m =
				said[i] ? NULL
					: ha_lane_next(&c->out[i], HA_COLLNET_BYE, c->group.epoch);

			if (m) {
				m->from = (uint32_t)c->rank;
				m->a = done;
				ha_lane_send(&c->out[i], 0);
				said[i] = true;
			}
			all &= said[i];
		}
		ha_collnet_send_out(c);
		if (!(all && outs_idle(c)))
			nanosleep(&(struct timespec) { .tv_nsec = 20000 }, NULL);
	}
}

void ha_collnet_close(struct ha_collnet *c)
{
	if (!c)
		return;
	ha_collnet_connecting_free(c);
	if (c->connected && !c->error && c->ranks > 1)
		send_bye(c);
	ha_pilot_recall(&c->join.pilot);
	if (c->join.pilot.ina) { /* it was still under way */
		c->library.context = c->join.pilot.ina;
		c->group.handle = c->join.pilot.group;
	}
	if (c->group.handle)
		c->params.ina->group_leave(c->group.handle);
	for (unsigned i = 0; i < HA_COLLNET_DEPTH; i++)
		if (c->op[i].used && c->op[i].ina)
			c->params.ina->op_free(c->op[i].ina);
	if (c->library.context)
		c->params.ina->close(c->library.context);
	free(c->library.give_up);
	ha_collnet_hang_up(c);
	free(c);
}
