/* SPDX-License-Identifier: BSD-3-Clause */
/* op.c - one operation, and how a communicator fails: what every other file here needs */
#include "plugin/collnet/comm.h"

#include "base/clock.h"
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

uint64_t ha_collnet_now(const struct ha_collnet *c)
{
	return ha_clock_now(c->params.clock);
}

void ha_collnet_hang_up(struct ha_collnet *c)
{
	for (unsigned i = 0; i < HA_COLLNET_LANES; i++) {
		ha_lane_out_close(&c->out[i]);
		ha_lane_in_close(&c->in[i]);
	}
}

int ha_collnet_fail(struct ha_collnet *c, int err, const char *format, ...)
{
	char text[256];
	va_list args;

	if (c->error)
		return c->error;
	c->error = err;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	HA_WARN(c->name,
		"%s: this communicator's operations end with an error; look at the other ranks' "
		"logs",
		text);
	/* what the switch still has is the caller's memory: nothing is written there from here
	 * on */
	if (c->group.handle)
		c->params.ina->group_leave(c->group.handle);
	c->group.handle = NULL;
	ha_collnet_hang_up(c);
	return err;
}

struct ha_collnet_op *ha_collnet_op_find(struct ha_collnet *c, uint64_t seq)
{
	struct ha_collnet_op *op = &c->op[seq % HA_COLLNET_DEPTH];

	return op->used && op->seq == seq ? op : NULL;
}

size_t ha_collnet_segment_bytes(const struct ha_collnet_op *op, unsigned segment)
{
	size_t rest = op->bytes - ha_collnet_segment_at(segment);

	return rest < HA_INA_SEGMENT ? rest : HA_INA_SEGMENT;
}

void ha_collnet_op_done(struct ha_collnet_op *op)
{
	op->done = true;
	for (unsigned i = 0; i < HA_COLLNET_LANES; i++)
		op->mark[i] = op->comm->out[i].head;
}
