/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/ina_perf/values.h"

#include "base/rng.h"
#include "ina/frame/quant.h"

#include <math.h>

#define BLOCK 64

static uint32_t bits_of(const struct ina_step *s, unsigned rank, size_t i)
{
	return ha_mix32((uint32_t)i * 2654435761u ^ ha_mix32(rank * 977 + s->salt));
}

/* 26 bits: sums of 32 ranks do not saturate. */
static int32_t int_of(const struct ina_step *s, unsigned rank, size_t i)
{
	return (int32_t)bits_of(s, rank, i) >> 6;
}

/* Of both signs, over eight powers of two; like gradients, most are small. */
static float float_of(const struct ina_step *s, unsigned rank, size_t i)
{
	uint32_t b = bits_of(s, rank, i);

	return ldexpf((float)((int32_t)b >> 8), -23 - (int)(b & 7));
}

static bool in_parts(const struct ina_step *s)
{
	return s->coll == HA_INA_REDUCE_SCATTER || s->coll == HA_INA_ALL_GATHER;
}

static size_t count_elements(const struct ina_step *s)
{
	return s->type == HA_INA_BYTES ? s->bytes : s->bytes / 4;
}

void ina_values_fill(const struct ina_step *s, unsigned rank, unsigned ranks, void *in)
{
	size_t n = s->coll == HA_INA_ALL_GATHER ? count_elements(s) / ranks : count_elements(s);

	for (size_t i = 0; i < n; i++)
		if (s->type == HA_INA_BYTES)
			((uint8_t *)in)[i] = (uint8_t)bits_of(s, rank, i);
		else if (s->type == HA_INA_INT32)
			((int32_t *)in)[i] = int_of(s, rank, i);
		else
			((float *)in)[i] = float_of(s, rank, i);
}

/* ---- sums ---- */

/*
 * Of the block of 64 that element i is in: half a unit for each rank's rounding and each alignment.
 */
static double block_bound(const struct ina_step *s, unsigned ranks, size_t first, size_t end)
{
	uint32_t largest = 0;
	float x;

	for (size_t i = first; i < end; i++)
		for (unsigned r = 0; r < ranks; r++) {
			uint32_t b;

			x = fabsf(float_of(s, r, i));
			memcpy(&b, &x, sizeof(b));
			largest = b > largest ? b : largest;
		}
	return ranks *
	       ldexp(1, ina_block_exponent(largest, ina_quant_headroom(ranks)) - INA_EXPONENT_BIAS);
}

static size_t wrong_float(const struct ina_step *s, unsigned ranks, const float *out, size_t from,
			  size_t n, double *worst)
{
	size_t wrong = 0;
	double bound = 0;

	for (size_t i = 0; i < n; i++) {
		double sum = 0, error, limit;

		/* segments are whole blocks, so blocks of a part begin with it */
		if (i % BLOCK == 0)
			bound = block_bound(s, ranks, from + i,
					    from + (n - i < BLOCK ? n : i + BLOCK));
		for (unsigned r = 0; r < ranks; r++)
			sum += float_of(s, r, from + i);
		error = fabs(out[i] - sum);
		limit = bound + fabs(sum) * 0x1p-24;
		wrong += !(error <= limit);
		if (limit > 0 && error / limit > *worst)
			*worst = error / limit;
	}
	return wrong;
}

static size_t wrong_int(const struct ina_step *s, unsigned ranks, const int32_t *out, size_t from,
			size_t n)
{
	size_t wrong = 0;

	for (size_t i = 0; i < n; i++) {
		int64_t sum = 0;

		for (unsigned r = 0; r < ranks; r++)
			sum += int_of(s, r, from + i);
		wrong += out[i] != sum;
	}
	return wrong;
}

/* ---- what one rank has, and all get ---- */

static size_t wrong_copy(const struct ina_step *s, unsigned rank, const void *out, size_t n)
{
	size_t wrong = 0;

	for (size_t i = 0; i < n; i++)
		if (s->type == HA_INA_BYTES)
			wrong += ((const uint8_t *)out)[i] != (uint8_t)bits_of(s, rank, i);
		else if (s->type == HA_INA_INT32)
			wrong += ((const int32_t *)out)[i] != int_of(s, rank, i);
		else
			wrong += ((const float *)out)[i] != float_of(s, rank, i);
	return wrong;
}

bool ina_values_come(const struct ina_step *s, unsigned rank)
{
	return s->coll != HA_INA_BARRIER && (s->coll != HA_INA_REDUCE || rank == s->root);
}

size_t ina_values_wrong(const struct ina_step *s, unsigned rank, unsigned ranks, const void *out,
			double *worst)
{
	size_t n = count_elements(s), part = in_parts(s) ? n / ranks : n,
	       size = s->type == HA_INA_BYTES ? 1 : 4, wrong = 0;
	size_t from = s->coll == HA_INA_REDUCE_SCATTER ? rank * part : 0;

	if (!ina_values_come(s, rank))
		return 0;
	if (s->coll == HA_INA_BROADCAST)
		return wrong_copy(s, s->root, out, n);
	if (s->coll == HA_INA_ALL_GATHER) {
		for (unsigned r = 0; r < ranks; r++)
			wrong += wrong_copy(s, r, (const uint8_t *)out + r * part * size, part);
		return wrong;
	}
	return s->type == HA_INA_INT32 ? wrong_int(s, ranks, out, from, part)
				       : wrong_float(s, ranks, out, from, part, worst);
}
