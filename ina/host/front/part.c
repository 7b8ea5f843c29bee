/* SPDX-License-Identifier: BSD-3-Clause */
/* part.c - operations cut into collectives that the frames know, each of one segment at most */
#include "ina/host/front/front.h"

static size_t count_segments(size_t bytes)
{
	return (bytes + HA_INA_SEGMENT - 1) / HA_INA_SEGMENT;
}

static uint32_t bytes_of_segment(size_t bytes, size_t at)
{
	return (uint32_t)(bytes - at < HA_INA_SEGMENT ? bytes - at : HA_INA_SEGMENT);
}

static const uint8_t *add_offset(const void *p, size_t at)
{
	return p ? (const uint8_t *)p + at : NULL;
}

/* All-reduce, reduce, broadcast: segments of one buffer. */
static struct ina_front_part part_of_buffer(const struct ha_ina_op *op, size_t index)
{
	const struct ha_ina_request *q = &op->request;
	size_t at = index * HA_INA_SEGMENT;
	struct ina_front_part p = { .segment = index,
				    .coll = (uint8_t)q->coll,
				    .root = (uint8_t)q->root };
	bool is_root = op->rank == q->root;

	p.bytes = bytes_of_segment(q->bytes, at);
	if (q->coll == HA_INA_ALL_REDUCE)
		p.root = 0;
	if (q->coll != HA_INA_BROADCAST || is_root || op->ctx->loopback)
		p.in = add_offset(q->in, at);
	if (q->coll != HA_INA_REDUCE || is_root)
		p.out = (uint8_t *)add_offset(q->out, at);
	if (q->coll == HA_INA_BROADCAST && (p.in == p.out || (op->ctx->loopback && !p.in)))
		p.out = NULL; /* the root has it */
	return p;
}

/*
 * Reduce-scatter, all-gather: each rank's part is a collective with that root; parts take turns, so
 * that no rank is the root for long.
 */
static struct ina_front_part part_of_rank(const struct ha_ina_op *op, size_t index)
{
	const struct ha_ina_request *q = &op->request;
	size_t part = q->bytes / op->ranks, per = count_segments(part), root = index % op->ranks,
	       at = index / op->ranks * HA_INA_SEGMENT;
	struct ina_front_part p = { .segment = root * per + index / op->ranks,
				    .coll = (uint8_t)q->coll,
				    .root = (uint8_t)root };

	p.bytes = bytes_of_segment(part, at);
	if (q->coll == HA_INA_REDUCE_SCATTER) {
		p.in = add_offset(q->in, root * part + at);
		p.out = root == op->rank ? (uint8_t *)add_offset(q->out, at) : NULL;
	} else {
		p.in = root == op->rank || op->ctx->loopback ? add_offset(q->in, at) : NULL;
		p.out = (uint8_t *)add_offset(q->out, root * part + at);
		if (p.out == p.in)
			p.out = NULL; /* in place: its own part is there */
	}
	return p;
}

struct ina_front_part ina_front_part(const struct ha_ina_op *op, size_t index)
{
	switch (op->request.coll) {
	case HA_INA_BARRIER: /* every rank brings 1 */
		return (struct ina_front_part) { .in = (const uint8_t *)&op->token,
						 .out = (uint8_t *)&op->token,
						 .bytes = 4,
						 .coll = HA_INA_ALL_REDUCE };
	case HA_INA_REDUCE_SCATTER:
	case HA_INA_ALL_GATHER:
		return part_of_rank(op, index);
	default:
		return part_of_buffer(op, index);
	}
}
