/* SPDX-License-Identifier: BSD-3-Clause */
#include "gpu/example/values.h"

#include "base/rng.h"
#include "gpu/example/expert.h"
#include "gpu/example/number.h"

#include <stdlib.h>
#include <string.h>

static uint64_t make_key(const struct ha_moe_values *v, uint32_t rank, uint64_t n, uint64_t t)
{
	return ha_splitmix64(ha_splitmix64(ha_splitmix64(v->seed) + rank) + n * 0x10001 + t);
}

/* ---- input ---- */

uint32_t ha_moe_token_count(const struct ha_moe_values *v, uint32_t rank, uint64_t n)
{
	uint64_t h = ha_splitmix64(make_key(v, rank, n, UINT32_MAX));

	return h % 8 ? v->shape.tokens_max : (uint32_t)(h / 8 % (v->shape.tokens_max + 1));
}

/* Four bf16 of moderate size: 2^-7 to 2^7. */
static uint64_t to_bf16s(uint64_t h)
{
	uint64_t out = 0;

	for (int i = 0; i < 4; i++, h >>= 16)
		out |= ((h & 0x807f) | (120 + (h >> 7 & 0xff) % 15) << 7) << 16 * i;
	return out;
}

/* Eight FP8, none of them a NaN. */
static uint64_t to_e4m3s(uint64_t h)
{
	for (int i = 0; i < 8; i++)
		if ((h >> 8 * i & 0x7f) == 0x7f)
			h ^= UINT64_C(1) << 8 * i;
	return h;
}

void ha_moe_make_token(const struct ha_moe_values *v, uint32_t rank, uint64_t n, uint32_t t,
		       uint8_t *token)
{
	uint64_t h = make_key(v, rank, n, t), word;
	size_t numbers =
		v->shape.format == HA_MOE_FP8 ? v->shape.hidden : (size_t)v->shape.hidden * 2;

	for (size_t i = 0; i < numbers; i += 8) {
		h = ha_splitmix64(h);
		word = v->shape.format == HA_MOE_FP8 ? to_e4m3s(h) : to_bf16s(h);
		memcpy(token + i, &word, 8);
	}
	for (size_t i = numbers; i < v->layout.token; i += sizeof(float)) {
		float scale = 0.0625f + (float)((h = ha_splitmix64(h)) % 64) * 0.015625f;

		memcpy(token + i, &scale, sizeof(scale));
	}
}

/* k different ones of the first `among`. */
static void choose_experts(uint64_t h, uint32_t among, uint32_t k, int32_t *topk)
{
	for (uint32_t i = 0; i < k; i++) {
		bool twice;

		do {
			topk[i] = (int32_t)((h = ha_splitmix64(h)) % among);
			twice = false;
			for (uint32_t j = 0; j < i; j++)
				twice |= topk[j] == topk[i];
		} while (twice);
	}
	if (h >> 8 & 15)
		return;
	topk[(h >> 12) % k] = -1;
}

void ha_moe_make_route(const struct ha_moe_values *v, uint32_t rank, uint64_t n, uint32_t t,
		       int32_t *topk, float *weights)
{
	uint32_t k = v->shape.topk, half = v->shape.experts / 2;
	uint64_t h = make_key(v, rank, n, t) ^ UINT64_C(0x5a5a5a5a5a5a5a5a);

	for (uint32_t i = 0; i < k; i++)
		weights[i] = (float)(ha_splitmix64(h + i) >> 40) * 0x1p-24f;
	if (v->routing != HA_MOE_ROUTE_ONE) {
		choose_experts(
			h, v->routing == HA_MOE_ROUTE_HALF && half >= k ? half : v->shape.experts,
			k, topk);
		return;
	}
	topk[0] = (int32_t)(n % v->shape.experts);
	for (uint32_t i = 1; i < k; i++)
		topk[i] = -1;
}

/* ---- looking ---- */

struct looking {
	const struct ha_moe_values *v;
	int32_t topk[HA_MOE_TOPK_MAX];
	float weights[HA_MOE_TOPK_MAX];
	uint8_t *token; /* of one */
};

static struct looking look_begin(const struct ha_moe_values *v)
{
	struct looking k = { .v = v };

	k.token = malloc(v->layout.token);
	if (!k.token)
		abort();
	return k;
}

static void look_end(struct looking *k)
{
	free(k->token);
}

static bool names_expert(struct looking *k, uint32_t rank, uint64_t n, uint32_t t, uint32_t e)
{
	bool does = false;

	if (t >= ha_moe_token_count(k->v, rank, n))
		return false;
	ha_moe_make_route(k->v, rank, n, t, k->topk, k->weights);
	for (uint32_t i = 0; i < k->v->shape.topk; i++)
		does |= k->topk[i] == (int32_t)e;
	return does;
}

static uint64_t count_expected(struct looking *k, uint32_t rank, uint64_t n, uint32_t e)
{
	uint64_t count = 0;

	for (uint32_t t = 0; t < ha_moe_token_count(k->v, rank, n); t++)
		count += names_expert(k, rank, n, t, e);
	return count;
}

static bool same_token(struct looking *k, uint32_t rank, uint64_t n, uint64_t t, const uint8_t *is)
{
	ha_moe_make_token(k->v, rank, n, (uint32_t)t, k->token);
	return !memcmp(is, k->token, k->v->layout.token);
}

/* A word of the launch, as run.h has them. */
static uint64_t word_of(uint64_t n, const uint64_t *word)
{
	uint64_t w = ha_gpu_load(word);

	return w >> 32 == (uint32_t)(n + 1) ? (uint32_t)w : 0;
}

/* Each token of each rank that names the expert is there once, as it was sent. */
static uint64_t check_expert(struct looking *k, const struct ha_moe *m,
			     const struct ha_moe_call *call, uint32_t local, uint8_t *seen)
{
	const struct ha_moe_shape *s = &m->shape;
	uint64_t all = (uint64_t)s->ranks * s->tokens_max, n = call->number, should = 0, good = 0;
	uint64_t rows = word_of(n, &m->words[n & 1].packed[local]);
	uint32_t e = m->rank * m->layout.local + local;

	memset(seen, 0, all);
	for (uint32_t rank = 0; rank < s->ranks; rank++)
		should += count_expected(k, rank, n, e);
	for (uint64_t i = 0; i < rows; i++) {
		uint64_t from = m->words[n & 1].origin[local * all + i], rank = from >> 32,
			 t = (uint32_t)from;

		if (rank >= s->ranks || t >= s->tokens_max || seen[rank * s->tokens_max + t]++ ||
		    !names_expert(k, (uint32_t)rank, n, (uint32_t)t, e))
			continue;
		good += same_token(k, (uint32_t)rank, n, t,
				   call->packed + (local * all + i) * m->layout.token);
	}
	return (should > rows ? should : rows) - good;
}

uint64_t ha_moe_check_dispatch(const struct ha_moe_values *v, const struct ha_moe *m,
			       const struct ha_moe_call *call)
{
	uint8_t *seen = malloc((size_t)v->shape.ranks * v->shape.tokens_max);
	struct looking k = look_begin(v);
	uint64_t wrong = 0;

	if (!seen)
		abort();
	for (uint32_t local = 0; local < m->layout.local; local++)
		wrong += check_expert(&k, m, call, local, seen);
	look_end(&k);
	free(seen);
	return wrong;
}

static bool same_sum(struct looking *k, uint32_t rank, uint64_t n, uint32_t t, const uint16_t *is)
{
	ha_moe_make_token(k->v, rank, n, t, k->token);
	ha_moe_make_route(k->v, rank, n, t, k->topk, k->weights);
	for (uint32_t j = 0; j < k->v->shape.hidden; j++) {
		float sum = 0, x = ha_moe_read_element(&k->v->shape, k->token, j), product;

		for (uint32_t i = 0; i < k->v->shape.topk; i++) {
			if (k->topk[i] < 0)
				continue;
			product = k->weights[i] *
				  ha_moe_from_bf16(ha_moe_apply_expert((uint32_t)k->topk[i], x));
			sum = sum + product;
		}
		if (is[j] != ha_moe_to_bf16(sum))
			return false;
	}
	return true;
}

uint64_t ha_moe_check_combine(const struct ha_moe_values *v, const struct ha_moe *m,
			      const struct ha_moe_call *call)
{
	struct looking k = look_begin(v);
	uint64_t wrong = 0;

	for (uint32_t t = 0; t < call->tokens; t++)
		wrong += !same_sum(&k, m->rank, call->number, t,
				   call->combined + (size_t)t * v->shape.hidden);
	look_end(&k);
	return wrong;
}

#define SCRIBBLE 0xcc

static uint64_t arrived_bytes(const struct ha_moe *m)
{
	return m->layout.outputs - m->layout.arrived;
}

static uint64_t returned_bytes(const struct ha_moe *m)
{
	return m->layout.area - m->layout.returned;
}

void ha_moe_scribble_arrived(const struct ha_moe *m, uint64_t n)
{
	memset(ha_moe_area_of(m, n) + m->layout.arrived, SCRIBBLE, arrived_bytes(m));
}

void ha_moe_scribble_returned(const struct ha_moe *m, uint64_t n)
{
	memset(ha_moe_area_of(m, n) + m->layout.returned, SCRIBBLE, returned_bytes(m));
}

static uint64_t count_changed(const uint8_t *at, uint64_t bytes, uint64_t piece)
{
	uint64_t count = 0;

	for (uint64_t i = 0; i < bytes; i += piece)
		for (uint64_t j = 0; j < piece; j++)
			if (at[i + j] != SCRIBBLE) {
				count++;
				break;
			}
	return count;
}

uint64_t ha_moe_check_scribbled(const struct ha_moe *m, uint64_t n)
{
	const uint8_t *area = ha_moe_area_of(m, n);

	return count_changed(area + m->layout.arrived, arrived_bytes(m), m->layout.message) +
	       count_changed(area + m->layout.returned, returned_bytes(m), m->layout.row);
}
