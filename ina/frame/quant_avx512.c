/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * quant_avx512.c - sixteen at a time; what is left over goes the plain way, which gives the same
 * bits
 */
#ifdef __x86_64__
#include "ina/frame/quant.h"

#include <immintrin.h>

#define LANES 16
#define VECTORS (INA_WORDS / LANES)

static __m512i get_swap_mask(void)
{
	return _mm512_broadcast_i32x4(
		_mm_setr_epi8(3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12));
}

static __m512i abs_bits(__m512 x)
{
	return _mm512_and_epi32(_mm512_castps_si512(x), _mm512_set1_epi32((int)INA_ABS_BITS));
}

static uint32_t largest(const float *x, size_t n)
{
	__m512i most[4] = { _mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512(),
			    _mm512_setzero_si512() };
	uint32_t a, b;

	for (; n >= 4 * LANES; n -= 4 * LANES, x += 4 * LANES)
		for (int i = 0; i < 4; i++)
			most[i] =
				_mm512_max_epu32(most[i], abs_bits(_mm512_loadu_ps(x + i * LANES)));
	for (; n >= LANES; n -= LANES, x += LANES)
		most[0] = _mm512_max_epu32(most[0], abs_bits(_mm512_loadu_ps(x)));
	a = _mm512_reduce_max_epu32(_mm512_max_epu32(_mm512_max_epu32(most[0], most[1]),
						     _mm512_max_epu32(most[2], most[3])));
	b = ina_quant_scalar.largest(x, n);
	return a > b ? a : b;
}

static size_t scale(const float *x, int32_t *q, size_t n, float factor)
{
	const __m512 f = _mm512_set1_ps(factor), end = _mm512_set1_ps(0x1p31f),
		     low = _mm512_set1_ps(-0x1p31f);
	size_t held = 0;

	for (; n >= LANES; n -= LANES, x += LANES, q += LANES) {
		__m512 y = _mm512_mul_ps(_mm512_loadu_ps(x), f);
		__m512i v = _mm512_cvttps_epi32(y); /* INT32_MIN for what does not fit */
		__mmask16 high = _mm512_cmp_ps_mask(y, end, _CMP_GE_OQ),
			  nan = _mm512_cmp_ps_mask(y, y, _CMP_UNORD_Q);
		__mmask16 below = _mm512_cmp_ps_mask(y, low, _CMP_LT_OQ);

		v = _mm512_mask_mov_epi32(v, high, _mm512_set1_epi32(INT32_MAX));
		v = _mm512_mask_mov_epi32(v, nan, _mm512_setzero_si512());
		_mm512_storeu_si512(q, v);
		held += (unsigned)__builtin_popcount((unsigned)(high | nan | below));
	}
	return held + ina_quant_scalar.scale(x, q, n, factor);
}

static void unscale(const int32_t *q, float *x, size_t n, float factor)
{
	const __m512 f = _mm512_set1_ps(factor);

	for (; n >= LANES; n -= LANES, x += LANES, q += LANES)
		_mm512_storeu_ps(x, _mm512_div_ps(_mm512_cvtepi32_ps(_mm512_loadu_si512(q)), f));
	ina_quant_scalar.unscale(q, x, n, factor);
}

static struct ina_block block(const float *x, uint8_t *words, unsigned headroom)
{
	struct ina_block b = { 0 };
	__m512 v[VECTORS], first, second;
	__m512i most = _mm512_setzero_si512();
	uint32_t bits;
	int up;

	for (int i = 0; i < VECTORS; i++) {
		v[i] = _mm512_loadu_ps(x + i * LANES);
		most = _mm512_max_epu32(most, abs_bits(v[i]));
	}
	bits = _mm512_reduce_max_epu32(most);
	if (bits >= INA_INFINITY_BITS) {
		memset(words, 0, INA_PAYLOAD_BYTES);
		b.flags = INA_F_NONFINITE;
		return b;
	}
	b.exponent = bits ? ina_block_exponent(bits, headroom) : 0;
	up = INA_EXPONENT_BIAS - b.exponent;
	first = _mm512_set1_ps(ina_power_of_two(up / 2));
	second = _mm512_set1_ps(ina_power_of_two(up - up / 2));
	for (int i = 0; i < VECTORS; i++) {
		__m512i m = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_mul_ps(v[i], first), second));

		_mm512_storeu_si512(words + 4 * LANES * i, _mm512_shuffle_epi8(m, get_swap_mask()));
	}
	return b;
}

static void unblock(const uint8_t *words, struct ina_block b, float *x)
{
	int up = b.exponent - INA_EXPONENT_BIAS;
	__m512 first = _mm512_set1_ps(ina_power_of_two(up / 2)),
	       second = _mm512_set1_ps(ina_power_of_two(up - up / 2));

	if (b.flags & INA_F_NONFINITE) {
		ina_quant_scalar.unblock(words, b, x);
		return;
	}
	for (int i = 0; i < VECTORS; i++) {
		__m512i m = _mm512_loadu_si512(words + 4 * LANES * i);
		__m512 y = _mm512_cvtepi32_ps(_mm512_shuffle_epi8(m, get_swap_mask()));

		_mm512_storeu_ps(x + i * LANES, _mm512_mul_ps(_mm512_mul_ps(y, first), second));
	}
}

static void swap(const void *from, void *to, size_t n)
{
	const uint8_t *f = from;
	uint8_t *t = to;

	for (; n >= LANES; n -= LANES, f += 4 * LANES, t += 4 * LANES)
		_mm512_storeu_si512(t, _mm512_shuffle_epi8(_mm512_loadu_si512(f), get_swap_mask()));
	ina_quant_scalar.swap(f, t, n);
}

const struct ina_quant ina_quant_avx512 = {
	.name = "avx512",
	.largest = largest,
	.scale = scale,
	.unscale = unscale,
	.block = block,
	.unblock = unblock,
	.swap = swap,
};
#endif
