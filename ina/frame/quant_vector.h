/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * LANES words at a time; what is left over goes the plain way, which gives the same bits.
 * quant_avx2.c and quant_avx512.c each include this once, below what differs between them: the
 * number of LANES, V(name) for an intrinsic of that width, the vectors' types, and the few
 * functions that are made of other intrinsics.
 */
#define VECTORS (INA_WORDS / LANES)

static uint32_t largest(const float *x, size_t n)
{
	ints most[4] = { ZERO, ZERO, ZERO, ZERO };
	uint32_t a, b;

	for (; n >= 4 * LANES; n -= 4 * LANES, x += 4 * LANES)
		for (int i = 0; i < 4; i++)
			most[i] = V(max_epu32)(most[i], abs_bits(V(loadu_ps)(x + i * LANES)));
	for (; n >= LANES; n -= LANES, x += LANES)
		most[0] = V(max_epu32)(most[0], abs_bits(V(loadu_ps)(x)));
	a = most_of(V(max_epu32)(V(max_epu32)(most[0], most[1]), V(max_epu32)(most[2], most[3])));
	b = ina_quant_scalar.largest(x, n);
	return a > b ? a : b;
}

static size_t scale(const float *x, int32_t *q, size_t n, float factor)
{
	const floats f = V(set1_ps)(factor);
	size_t held = 0;

	for (; n >= LANES; n -= LANES, x += LANES, q += LANES) {
		floats y = V(mul_ps)(V(loadu_ps)(x), f);
		ints v = V(cvttps_epi32)(y); /* INT32_MIN for what does not fit */

		held += clamp_ints(y, &v);
		store_ints(q, v);
	}
	return held + ina_quant_scalar.scale(x, q, n, factor);
}

static void unscale(const int32_t *q, float *x, size_t n, float factor)
{
	const floats f = V(set1_ps)(factor);

	for (; n >= LANES; n -= LANES, x += LANES, q += LANES)
		V(storeu_ps)(x, V(div_ps)(V(cvtepi32_ps)(load_ints(q)), f));
	ina_quant_scalar.unscale(q, x, n, factor);
}

static struct ina_block block(const float *x, uint8_t *words, unsigned headroom)
{
	struct ina_block b = { 0 };
	floats v[VECTORS], first, second;
	ints most = ZERO;
	uint32_t bits;
	int up;

	for (int i = 0; i < VECTORS; i++) {
		v[i] = V(loadu_ps)(x + i * LANES);
		most = V(max_epu32)(most, abs_bits(v[i]));
	}
	bits = most_of(most);
	if (bits >= INA_INFINITY_BITS) {
		memset(words, 0, INA_PAYLOAD_BYTES);
		b.flags = INA_F_NONFINITE;
		return b;
	}
	b.exponent = bits ? ina_block_exponent(bits, headroom) : 0;
	up = INA_EXPONENT_BIAS - b.exponent;
	first = V(set1_ps)(ina_power_of_two(up / 2));
	second = V(set1_ps)(ina_power_of_two(up - up / 2));
	for (int i = 0; i < VECTORS; i++) {
		ints m = V(cvtps_epi32)(V(mul_ps)(V(mul_ps)(v[i], first), second));

		store_ints(words + 4 * LANES * i, V(shuffle_epi8)(m, get_swap_mask()));
	}
	return b;
}

static void unblock(const uint8_t *words, struct ina_block b, float *x)
{
	int up = b.exponent - INA_EXPONENT_BIAS;
	floats first = V(set1_ps)(ina_power_of_two(up / 2)),
	       second = V(set1_ps)(ina_power_of_two(up - up / 2));

	if (b.flags & INA_F_NONFINITE) {
		ina_quant_scalar.unblock(words, b, x);
		return;
	}
	for (int i = 0; i < VECTORS; i++) {
		ints m = load_ints(words + 4 * LANES * i);
		floats y = V(cvtepi32_ps)(V(shuffle_epi8)(m, get_swap_mask()));

		V(storeu_ps)(x + i * LANES, V(mul_ps)(V(mul_ps)(y, first), second));
	}
}

static void swap(const void *from, void *to, size_t n)
{
	const uint8_t *f = from;
	uint8_t *t = to;

	for (; n >= LANES; n -= LANES, f += 4 * LANES, t += 4 * LANES)
		store_ints(t, V(shuffle_epi8)(load_ints(f), get_swap_mask()));
	ina_quant_scalar.swap(f, t, n);
}

const struct ina_quant TABLE = {
	.name = NAME,
	.largest = largest,
	.scale = scale,
	.unscale = unscale,
	.block = block,
	.unblock = unblock,
	.swap = swap,
};
