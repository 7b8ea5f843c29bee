/* SPDX-License-Identifier: BSD-3-Clause */
#include "gpu/example/memory.h"

#include <string.h>

static bool experts_are_sound(const struct ha_moe_shape *s)
{
	return s->ranks >= 1 && s->ranks <= 1024 && s->experts && s->experts <= 4096 &&
	       s->experts % s->ranks == 0;
}

const char *ha_moe_shape_wrong(const struct ha_moe_shape *s, uint32_t rows)
{
	uint32_t step = s->format == HA_MOE_FP8 ? 512 : 8;

	if (!experts_are_sound(s))
		return "experts must be a multiple of the ranks, at most 4096";
	if (!s->topk || s->topk > HA_MOE_TOPK_MAX || s->topk > s->experts)
		return "top-k must be 1 to 16, and not more than there are experts";
	if (!s->tokens_max || s->tokens_max > 65536)
		return "tokens of a rank must be 1 to 65536";
	if (!s->hidden || s->hidden % step || s->hidden > 65536)
		return "the hidden size must be a multiple of 8 (of 512 for FP8), at most 65536";
	if (!rows || (s->experts / s->ranks + rows - 1) / rows > HA_MOE_LOCAL_PER_ROW)
		return "at most 15 experts of a rank share a connection: use more connections "
		       "(HA_GPU_RC_PER_PE) or ranks";
	return NULL;
}

void ha_moe_make_layout(const struct ha_moe_shape *s, struct ha_moe_layout *l)
{
	uint64_t pairs, all;

	l->local = s->experts / s->ranks;
	l->token = s->format == HA_MOE_FP8
			   ? (uint64_t)s->hidden + s->hidden / HA_MOE_SCALED * sizeof(float)
			   : (uint64_t)s->hidden * 2;
	l->message = ha_moe_round_up(HA_MOE_HEADER + l->token);
	l->row = ha_moe_round_up((uint64_t)s->hidden * 2);
	pairs = (uint64_t)l->local * s->ranks;
	all = pairs * s->tokens_max;
	l->stage = 0;
	l->arrived = l->stage + s->tokens_max * l->message;
	l->outputs = l->arrived + all * l->message;
	l->returned = l->outputs + all * l->row;
	l->area = l->returned + (uint64_t)s->experts * s->tokens_max * l->row;
}

size_t ha_moe_heap_bytes(const struct ha_moe_shape *s)
{
	struct ha_moe_layout l;

	ha_moe_make_layout(s, &l);
	return 2 * l.area;
}

/* How many words each array of struct ha_moe_words has, in its order. */
#define ARRAYS (sizeof(struct ha_moe_words) / sizeof(uint64_t *))

static void count_words(const struct ha_moe_shape *s, size_t n[ARRAYS])
{
	size_t local = s->experts / s->ranks, pairs = local * s->ranks, all = pairs * s->tokens_max;
	const size_t counts[ARRAYS] = {
		/* dispatch, sender */
		s->tokens_max,
		s->experts,
		(size_t)s->tokens_max * s->topk,
		s->experts,
		s->experts,
		local,
		/* dispatch, receiver */
		pairs,
		pairs,
		pairs,
		local,
		all,
		/* combine, sender */
		all,
		pairs,
		pairs,
		local,
	};

	memcpy(n, counts, sizeof(counts));
}

size_t ha_moe_words_bytes(const struct ha_moe_shape *s)
{
	size_t n[ARRAYS], all = 0;

	count_words(s, n);
	for (size_t i = 0; i < ARRAYS; i++)
		all += n[i];
	return 2 * all * sizeof(uint64_t);
}

size_t ha_moe_packed_bytes(const struct ha_moe_shape *s)
{
	struct ha_moe_layout l;

	ha_moe_make_layout(s, &l);
	return (size_t)l.local * s->ranks * s->tokens_max * l.token;
}

size_t ha_moe_combined_bytes(const struct ha_moe_shape *s)
{
	return (size_t)s->tokens_max * s->hidden * sizeof(uint16_t);
}

void ha_moe_init(struct ha_moe *m, const struct ha_moe_shape *s, struct ha_gpu_world *world,
		 uint32_t rows, void *heap, void *words)
{
	uint64_t *at = words;
	size_t n[ARRAYS];

	memset(m, 0, sizeof(*m));
	m->shape = *s;
	ha_moe_make_layout(s, &m->layout);
	m->world = world;
	m->heap = heap;
	m->rank = world->pe;
	m->rows = rows;
	count_words(s, n);
	for (int area = 0; area < 2; area++) {
		uint64_t *array[ARRAYS];

		for (size_t i = 0; i < ARRAYS; at += n[i++])
			array[i] = at;
		memcpy(&m->words[area], array, sizeof(array));
	}
}

void ha_moe_count_dispatch(struct ha_moe *m, uint32_t phases)
{
	if (phases & HA_MOE_SEND)
		ha_gpu_add(&m->dispatch_sent, 1);
	if (phases & HA_MOE_RECEIVE)
		ha_gpu_add(&m->dispatch_received, 1);
}

void ha_moe_count_combine(struct ha_moe *m, uint32_t phases)
{
	if (phases & HA_MOE_SEND)
		ha_gpu_add(&m->combine_sent, 1);
	if (phases & HA_MOE_RECEIVE)
		ha_gpu_add(&m->combine_received, 1);
}
