/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ring.c - an operation, or what is left of one, over the data lanes
 *
 * A segment that nobody has is cut into one part per rank. A part begins at its rank and goes
 * round: each next rank adds its own (always what came + its own, so the order is fixed), the last
 * one that adds has the sum, and it goes round once more. A segment that somebody has goes round
 * once from there. A message is at most HA_COLLNET_PIECE long and says all that its receiver must
 * know.
 *
 * A rank injects pieces of one operation only, the oldest that is not done here; when that is done,
 * all that this rank hands on for it has been handed on, so messages of an operation follow all of
 * those before it, on every lane. To inject, two slots must be free, to hand on one: so a free slot
 * goes round the ring for ever, and it cannot block.
 */
#include "plugin/collnet/comm.h"

#include <errno.h>
#include <string.h>

static size_t part_at(size_t words, unsigned part, unsigned ranks)
{
	return words * part / ranks * sizeof(float);
}

/* What this rank begins in a segment: from..to of its bytes, or nothing. */
static uint16_t own_part(const struct ha_collnet *c, const struct ha_collnet_op *op, unsigned s,
			 size_t *from, size_t *to)
{
	size_t bytes = ha_collnet_segment_bytes(op, s), words = bytes / sizeof(float);

	*from = *to = 0;
	if (op->owned && op->vote[s].all)
		return HA_COLLNET_GIVE;
	if (op->owned && op->vote[s].owner != HA_COLLNET_NOBODY) {
		if (op->vote[s].owner == c->rank)
			*to = bytes;
		return HA_COLLNET_GIVE;
	}
	*from = part_at(words, (unsigned)c->rank, (unsigned)c->ranks);
	*to = part_at(words, (unsigned)c->rank + 1, (unsigned)c->ranks);
	return HA_COLLNET_SUM;
}

/* What must come, and where the injection begins. */
static void start_op(struct ha_collnet *c, struct ha_collnet_op *op)
{
	op->started = true;
	for (unsigned s = 0; s < op->segments; s++) {
		if (op->owned && op->vote[s].all)
			continue;
		if (op->owned && op->vote[s].owner != HA_COLLNET_NOBODY)
			c->stats.given++;
		else
			c->stats.summed++;
		if (!op->owned || op->vote[s].owner != c->rank)
			op->need += ha_collnet_segment_bytes(op, s);
	}
}

static bool is_ready(const struct ha_collnet *c, const struct ha_collnet_op *op)
{
	if (op->done || op->ina)
		return false;
	if (c->mode != HA_COLLNET_RAILS)
		return op->seq < c->group.from;
	return op->seq > c->own.last || op->owned || op->seq < c->own.next;
}

static void finish_if_complete(struct ha_collnet *c, struct ha_collnet_op *op)
{
	if (op->done || !op->started || op->segment < op->segments || op->stored < op->need)
		return;
	ha_collnet_op_done(op);
	c->stats.railed++;
}

/* ---- injecting ---- */

static bool inject_piece(struct ha_collnet *c, struct ha_collnet_op *op)
{
	struct ha_lane_out *lane = &c->out[HA_COLLNET_DATA];
	struct ha_collnet_msg *m;
	size_t from, to, at, bytes;
	uint16_t type = own_part(c, op, op->segment, &from, &to);

	at = from + op->at;
	if (at >= to) {
		op->segment++;
		op->at = 0;
		return true;
	}
	if (ha_lane_room(lane) < 2)
		return false;
	bytes = to - at < HA_COLLNET_PIECE ? to - at : HA_COLLNET_PIECE;
	m = ha_lane_next(lane, type, op->seq);
	m->from = (uint32_t)c->rank;
	m->a = ha_collnet_segment_at(op->segment) + at;
	m->b = (uint64_t)c->rank;
	memcpy(m + 1, (type == HA_COLLNET_GIVE ? op->out : op->in) + m->a, bytes);
	ha_lane_send(lane, bytes);
	op->at += bytes;
	return true;
}

static void inject_pieces(struct ha_collnet *c)
{
	struct ha_collnet_op *op = NULL;

	for (uint64_t seq = c->oldest; seq <= c->posted; seq++) {
		op = ha_collnet_op_find(c, seq);
		if (op && !op->done)
			break;
		op = NULL;
	}
	if (!op || !is_ready(c, op))
		return;
	if (!op->started)
		start_op(c, op);
	while (op->segment < op->segments && inject_piece(c, op))
		;
	finish_if_complete(c, op);
}

/* ---- what comes ---- */

static void add_floats(float *sum, const float *own, size_t bytes)
{
	for (size_t i = 0; i < bytes / sizeof(float); i++)
		sum[i] += own[i];
}

/* How many hands a piece goes through. */
static unsigned hops_of(const struct ha_collnet *c, uint16_t type)
{
	return (unsigned)(type == HA_COLLNET_SUM ? 2 * (c->ranks - 1) : c->ranks - 1);
}

static bool is_valid_piece(const struct ha_collnet *c, const struct ha_collnet_op *op,
			   const struct ha_collnet_msg *m)
{
	unsigned n = (unsigned)c->ranks;

	return m->length && m->length <= HA_COLLNET_PIECE && m->length % sizeof(float) == 0 &&
	       m->a % sizeof(float) == 0 && m->a <= op->bytes && m->length <= op->bytes - m->a &&
	       m->a / HA_INA_SEGMENT == (m->a + m->length - 1) / HA_INA_SEGMENT &&
	       m->hop < hops_of(c, m->type) && m->b < n &&
	       (m->b + 1 + m->hop) % n == (unsigned)c->rank;
}

/* False: there is no room to hand it on. */
static bool take_piece(struct ha_collnet *c, struct ha_collnet_op *op,
		       const struct ha_collnet_msg *m)
{
	struct ha_lane_out *lane = &c->out[HA_COLLNET_DATA];
	bool on = m->hop + 1u < hops_of(c, m->type),
	     adds = m->type == HA_COLLNET_SUM && m->hop + 1 < c->ranks;
	struct ha_collnet_msg *next = on ? ha_lane_next(lane, m->type, m->id) : NULL;
	const void *data = m + 1;

	if (on && !next)
		return false;
	if (next) {
		next->hop = (uint16_t)(m->hop + 1);
		next->from = (uint32_t)c->rank;
		next->a = m->a;
		next->b = m->b;
		memcpy(next + 1, m + 1, m->length);
		if (adds)
			add_floats((float *)(next + 1), (const float *)(op->in + m->a), m->length);
		data = next + 1;
	}
	if (!adds || m->hop + 2 == c->ranks) {
		memcpy(op->out + m->a, data, m->length);
		op->stored += m->length;
	}
	if (next)
		ha_lane_send(lane, m->length);
	return true;
}

static void receive_pieces(struct ha_collnet *c)
{
	struct ha_lane_in *lane = &c->in[HA_COLLNET_DATA];
	const struct ha_collnet_msg *m;

	while (!c->error && (m = ha_lane_peek(lane))) {
		struct ha_collnet_op *op = ha_collnet_op_find(c, m->id);

		if (m->type != HA_COLLNET_SUM && m->type != HA_COLLNET_GIVE) {
			ha_collnet_fail(c, -EPROTO, "rank %u sent message %u as data", m->from,
					m->type);
			return;
		}
		if (m->id > c->posted || (op && !is_ready(c, op)))
			return; /* not yet */
		if (!op || !is_valid_piece(c, op, m)) {
			ha_collnet_fail(c, -EINVAL,
					"rank %u sent what does not fit operation %llu: do all "
					"ranks call the same?",
					m->from, (unsigned long long)m->id);
			return;
		}
		if (!op->started)
			start_op(c, op);
		if (!take_piece(c, op, m))
			return;
		ha_lane_drop(lane);
		finish_if_complete(c, op);
	}
}

void ha_collnet_ring_step(struct ha_collnet *c)
{
	receive_pieces(c);
	if (!c->error)
		inject_pieces(c);
}
