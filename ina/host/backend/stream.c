/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/host/backend/stream.h"

#include "base/clamp.h"
#include "ina/host/shm/guard.h"
#include "ina/switch/slot.h"

#include <errno.h>
#include <string.h>

static bool is_reduction(uint8_t coll)
{
	return coll == INA_ALL_REDUCE || coll == INA_REDUCE || coll == INA_REDUCE_SCATTER;
}

static uint8_t met_of(uint8_t flags)
{
	return (uint8_t)((flags & INA_F_OVERFLOW ? HA_INA_SATURATED : 0) |
			 (flags & INA_F_NONFINITE ? HA_INA_NONFINITE : 0));
}

static void bring(void *arg, uint32_t index, uint8_t *words, struct ina_block *block)
{
	const struct ha_part *p = arg;
	struct ha_stream *s = p->stream;
	const uint8_t *from = p->data + (size_t)index * INA_PAYLOAD_BYTES;

	if (!is_reduction(p->op.coll) || p->type == HA_INA_BYTES)
		memcpy(words, from, INA_PAYLOAD_BYTES);
	else if (p->type == HA_INA_INT32)
		s->quant->swap(from, words, INA_WORDS);
	else
		*block = s->quant->block((const float *)(const void *)from, words, s->headroom);
	/* A rank that cannot read what it is to bring is gone: nobody gets zeros for it. */
	if (ina_shm_guard_lost(p->lost))
		ina_worker_abort(&s->worker, -ENOTCONN,
				 "a process of this host has lost the memory that it shares with "
				 "the backend");
}

static void take(void *arg, uint32_t index, const uint8_t *words, struct ina_block block)
{
	struct ha_part *p = arg;
	const struct ha_stream *s = p->stream;
	uint8_t *to = p->data + (size_t)index * INA_PAYLOAD_BYTES;

	p->met |= met_of(block.flags);
	if (!words)
		return;
	if (!is_reduction(p->op.coll) || p->type == HA_INA_BYTES)
		memcpy(to, words, INA_PAYLOAD_BYTES);
	else if (p->type == HA_INA_INT32)
		s->quant->swap(words, to, INA_WORDS);
	else
		s->quant->unblock(words, block, (float *)(void *)to);
}

static void done(void *arg, int err)
{
	struct ha_part *p = arg;

	p->result = err;
	p->done(p, p->arg);
}

static const struct ina_op_ops ops = { .bring = bring, .take = take, .done = done };

void ha_part_prepare(struct ha_part *p)
{
	p->op.ops = &ops;
	p->op.arg = p;
	p->met = 0;
	p->result = 0;
}

static void loop_floats(struct ha_part *p, size_t n, unsigned ranks)
{
	float *x = (float *)(void *)p->data;

	for (size_t i = 0; i < n; i++)
		x[i] *= (float)ranks;
}

static void loop_integers(struct ha_part *p, size_t n, unsigned ranks)
{
	int32_t *x = (int32_t *)(void *)p->data;

	for (size_t i = 0; i < n; i++) {
		int64_t sum = (int64_t)x[i] * ranks;

		if (sum > INT32_MAX || sum < INT32_MIN)
			p->met |= HA_INA_SATURATED;
		x[i] = (int32_t)ha_clamp(sum, INT32_MIN, INT32_MAX);
	}
}

void ha_part_loop(struct ha_part *p, unsigned rank, unsigned ranks)
{
	size_t bytes = (size_t)p->op.packets * INA_PAYLOAD_BYTES;

	if (!ina_coll_gets(p->op.coll, p->op.root, (uint8_t)rank))
		return;
	if (!is_reduction(p->op.coll))
		memset(p->data, 0, bytes); /* what the other rank would bring */
	else if (p->type == HA_INA_FLOAT32)
		loop_floats(p, bytes / 4, ranks);
	else
		loop_integers(p, bytes / 4, ranks);
}
