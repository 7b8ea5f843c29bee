/* SPDX-License-Identifier: BSD-3-Clause */
/* comm.c - operations go in and come out; what moves them */
#include "plugin/collnet/comm.h"

#include <errno.h>
#include <string.h>

/* What the others need from here has been handed to the NIC. */
static bool nothing_owed(const struct ha_collnet_op *op)
{
	for (unsigned i = 0; i < HA_COLLNET_LANES; i++)
		if ((int32_t)(op->comm->out[i].posted - op->mark[i]) < 0)
			return false;
	return true;
}

static void op_begin(struct ha_collnet *c, struct ha_collnet_op *op, const void *in, void *out,
		     size_t bytes)
{
	op->comm = c;
	op->seq = c->posted + 1;
	op->done = op->have = op->frozen = op->owned = op->started = false;
	op->in = in;
	op->out = out;
	op->bytes = bytes;
	op->segments = (unsigned)((bytes + HA_INA_SEGMENT - 1) / HA_INA_SEGMENT);
	op->ina = NULL;
	op->stored = op->need = op->at = 0;
	op->segment = 0;
}

static void finish_alone(struct ha_collnet_op *op)
{
	if (op->out != op->in)
		memcpy(op->out, op->in, op->bytes);
	ha_collnet_op_done(op);
}

int ha_collnet_iallreduce(struct ha_collnet *c, const void *in, void *out, size_t bytes,
			  struct ha_collnet_op **request)
{
	struct ha_collnet_op *op = &c->op[(c->posted + 1) % HA_COLLNET_DEPTH];
	int err;

	*request = NULL;
	if (((!in || !out) && bytes) || bytes % sizeof(float))
		return -EINVAL;
	if (bytes > HA_COLLNET_BYTES_MAX)
		return -EMSGSIZE;
	err = ha_collnet_step(c);
	if (err)
		return err;
	if (op->used || c->posted >= c->join.post_limit)
		return 0;
	op_begin(c, op, in, out, bytes);
	if (c->mode == HA_COLLNET_SWITCH && op->seq >= c->group.from &&
	    ha_collnet_group_post(c, op) == -EAGAIN)
		return 0;
	op->used = true;
	c->posted++;
	if (c->ranks == 1)
		finish_alone(op);
	*request = op;
	return ha_collnet_step(c);
}

static void op_free(struct ha_collnet *c, struct ha_collnet_op *op)
{
	op->used = false;
	while (c->oldest <= c->posted && !ha_collnet_op_find(c, c->oldest))
		c->oldest++;
}

int ha_collnet_test(struct ha_collnet_op *op, int *done, size_t *bytes)
{
	struct ha_collnet *c = op->comm;
	int err = ha_collnet_step(c);

	*done = 0;
	if (op->done && (err || nothing_owed(op))) {
		*done = 1;
		if (bytes)
			*bytes = op->bytes;
		op_free(c, op);
		return 0;
	}
	return err;
}

/* ---- what moves them ---- */

static void handle_control(struct ha_collnet *c, unsigned lane, const struct ha_collnet_msg *m)
{
	switch (m->type) {
	case HA_COLLNET_HAVE:
		ha_collnet_on_confirm(c, lane, m);
		break;
	case HA_COLLNET_BREAK:
		ha_collnet_on_group(c, m);
		break;
	case HA_COLLNET_OFFER:
		ha_collnet_on_join(c, m);
		break;
	case HA_COLLNET_AGREE_JOIN:
	case HA_COLLNET_AGREE_BREAK:
	case HA_COLLNET_AGREE_OWN:
		ha_collnet_on_agree(c, lane, m);
		break;
	case HA_COLLNET_BYE:
		c->bye[lane].received = true;
		c->bye[lane].done = m->a;
		break;
	default:
		ha_collnet_fail(c, -EPROTO, "rank %u sent message %u out of place", m->from,
				m->type);
	}
}

static unsigned lane_from(const struct ha_collnet *c, unsigned lane)
{
	unsigned distance = lane == HA_COLLNET_DATA ? 1 : 1u << lane;

	return ((unsigned)c->ranks + (unsigned)c->rank - distance % (unsigned)c->ranks) %
	       (unsigned)c->ranks;
}

/* A peer that has closed is no failure, unless something in flight here is not over there. */
static void check_lane_error(struct ha_collnet *c, unsigned lane)
{
	unsigned from = lane == HA_COLLNET_DATA ? 0 : lane;

	if (!c->in[lane].error)
		return;
	if (!c->bye[from].received) {
		ha_collnet_fail(c, c->in[lane].error, "rank %u is gone (%s)", lane_from(c, lane),
				strerror(-c->in[lane].error));
		return;
	}
	for (uint64_t seq = c->bye[from].done + 1; seq <= c->posted && !c->error; seq++) {
		struct ha_collnet_op *op = ha_collnet_op_find(c, seq);

		if (op && !op->done)
			ha_collnet_fail(c, -EPIPE, "rank %u has closed before operation %llu",
					lane_from(c, lane), (unsigned long long)seq);
	}
}

static void receive_controls(struct ha_collnet *c)
{
	const struct ha_collnet_msg *m;

	for (unsigned i = 0; i < c->rounds; i++) {
		while (!c->error && (m = ha_lane_peek(&c->in[i]))) {
			handle_control(c, i, m);
			if (!c->error)
				ha_lane_drop(&c->in[i]);
		}
		if (!c->error)
			check_lane_error(c, i);
	}
}

void ha_collnet_send_out(struct ha_collnet *c)
{
	for (unsigned i = 0; i < c->rounds; i++)
		ha_lane_out_step(&c->out[i]);
	if (c->ranks > 1)
		ha_lane_out_step(&c->out[HA_COLLNET_DATA]);
}

int ha_collnet_step(struct ha_collnet *c)
{
	if (c->error || c->ranks == 1)
		return c->error;
	ha_collnet_send_out(c);
	receive_controls(c);
	if (!c->error)
		ha_collnet_group_step(c);
	if (!c->error)
		ha_collnet_join_step(c);
	if (!c->error)
		ha_collnet_confirm_step(c);
	if (!c->error)
		ha_collnet_ring_step(c);
	if (!c->error)
		check_lane_error(c, HA_COLLNET_DATA);
	return c->error;
}

void ha_collnet_stats(const struct ha_collnet *c, struct ha_collnet_stats *stats)
{
	*stats = c->stats;
	stats->on_switch = c->mode == HA_COLLNET_SWITCH;
}
