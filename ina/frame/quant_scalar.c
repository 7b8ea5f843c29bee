/* SPDX-License-Identifier: BSD-3-Clause */
/* quant_scalar.c - for any processor, and what the others are measured by */
#include "ina/frame/bytes.h"
#include "ina/frame/quant.h"

#include <math.h>

static uint32_t bits_of(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

static uint32_t largest(const float *x, size_t n)
{
	uint32_t most = 0;

	for (size_t i = 0; i < n; i++) {
		uint32_t bits = bits_of(x[i]) & INA_ABS_BITS;

		most = bits > most ? bits : most;
	}
	return most;
}

static size_t scale(const float *x, int32_t *q, size_t n, float factor)
{
	size_t held = 0;

	for (size_t i = 0; i < n; i++) {
		float y = x[i] * factor;

		if (y >= -0x1p31f && y < 0x1p31f) {
			q[i] = (int32_t)y;
			continue;
		}
		q[i] = 0;
		if (y > 0)
			q[i] = INT32_MAX;
		else if (y < 0)
			q[i] = INT32_MIN;
		held++;
	}
	return held;
}

static void unscale(const int32_t *q, float *x, size_t n, float factor)
{
	for (size_t i = 0; i < n; i++)
		x[i] = (float)q[i] / factor;
}

/*
 * 2^n has no float32 for the largest n: it is multiplied with in two steps, of which at most one
 * rounds.
 */
static struct ina_block block(const float *x, uint8_t *words, unsigned headroom)
{
	uint32_t most = largest(x, INA_WORDS);
	struct ina_block b = { 0 };
	int up;
	float first, second;

	if (most >= INA_INFINITY_BITS) {
		memset(words, 0, INA_PAYLOAD_BYTES);
		b.flags = INA_F_NONFINITE;
		return b;
	}
	b.exponent = most ? ina_block_exponent(most, headroom) : 0;
	up = INA_EXPONENT_BIAS - b.exponent;
	first = ina_power_of_two(up / 2);
	second = ina_power_of_two(up - up / 2);
	for (unsigned i = 0; i < INA_WORDS; i++)
		ina_put32(words + 4 * i, (uint32_t)(int32_t)lrintf(x[i] * first * second));
	return b;
}

static void unblock(const uint8_t *words, struct ina_block b, float *x)
{
	int up = b.exponent - INA_EXPONENT_BIAS;
	float first = ina_power_of_two(up / 2), second = ina_power_of_two(up - up / 2);

	for (unsigned i = 0; i < INA_WORDS; i++)
		x[i] = b.flags & INA_F_NONFINITE
			       ? ina_float_of_bits(0x7fc00000)
			       : (float)(int32_t)ina_get32(words + 4 * i) * first * second;
}

static void swap(const void *from, void *to, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t word;

		memcpy(&word, (const uint8_t *)from + 4 * i, sizeof(word));
		ina_put32((uint8_t *)to + 4 * i, word);
	}
}

const struct ina_quant ina_quant_scalar = {
	.name = "scalar",
	.largest = largest,
	.scale = scale,
	.unscale = unscale,
	.block = block,
	.unblock = unblock,
	.swap = swap,
};
