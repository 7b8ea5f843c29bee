/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * quant_avx2.c - eight at a time; what is left over goes the plain way, which gives the same bits
 */
#ifdef __x86_64__
#include "ina/frame/quant.h"

#include <immintrin.h>

#define LANES 8
#define VECTORS (INA_WORDS / LANES)

static __m256i get_swap_mask(void)
{
	return _mm256_setr_epi8(3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12, 3, 2, 1, 0, 7,
				6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12);
}

static __m256i abs_bits(__m256 x)
{
	return _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32((int)INA_ABS_BITS));
}

static uint32_t most_of(__m256i v)
{
	__m128i m = _mm_max_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));

	m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
	m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1));
	return (uint32_t)_mm_cvtsi128_si32(m);
}

static uint32_t largest(const float *x, size_t n)
{
	__m256i most[4] = { _mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(),
			    _mm256_setzero_si256() };
	uint32_t a, b;

	for (; n >= 4 * LANES; n -= 4 * LANES, x += 4 * LANES)
		for (int i = 0; i < 4; i++)
			most[i] =
				_mm256_max_epi32(most[i], abs_bits(_mm256_loadu_ps(x + i * LANES)));
	for (; n >= LANES; n -= LANES, x += LANES)
		most[0] = _mm256_max_epi32(most[0], abs_bits(_mm256_loadu_ps(x)));
	a = most_of(_mm256_max_epi32(_mm256_max_epi32(most[0], most[1]),
				     _mm256_max_epi32(most[2], most[3])));
	b = ina_quant_scalar.largest(x, n);
	return a > b ? a : b;
}

static size_t scale(const float *x, int32_t *q, size_t n, float factor)
{
	const __m256 f = _mm256_set1_ps(factor), end = _mm256_set1_ps(0x1p31f),
		     low = _mm256_set1_ps(-0x1p31f);
	size_t held = 0;

	for (; n >= LANES; n -= LANES, x += LANES, q += LANES) {
		__m256 y = _mm256_mul_ps(_mm256_loadu_ps(x), f);
		__m256i v = _mm256_cvttps_epi32(y); /* INT32_MIN for what does not fit */
		__m256 high = _mm256_cmp_ps(y, end, _CMP_GE_OQ),
		       nan = _mm256_cmp_ps(y, y, _CMP_UNORD_Q);
		__m256 odd =
			_mm256_or_ps(_mm256_or_ps(high, nan), _mm256_cmp_ps(y, low, _CMP_LT_OQ));

		v = _mm256_blendv_epi8(v, _mm256_set1_epi32(INT32_MAX), _mm256_castps_si256(high));
		v = _mm256_andnot_si256(_mm256_castps_si256(nan), v);
		_mm256_storeu_si256((__m256i *)q, v);
		held += (unsigned)__builtin_popcount((unsigned)_mm256_movemask_ps(odd));
	}
	return held + ina_quant_scalar.scale(x, q, n, factor);
}

static void unscale(const int32_t *q, float *x, size_t n, float factor)
{
	const __m256 f = _mm256_set1_ps(factor);

	for (; n >= LANES; n -= LANES, x += LANES, q += LANES)
		_mm256_storeu_ps(
			x, _mm256_div_ps(_mm256_cvtepi32_ps(_mm256_loadu_si256((const __m256i *)q)),
					 f));
	ina_quant_scalar.unscale(q, x, n, factor);
}

static struct ina_block block(const float *x, uint8_t *words, unsigned headroom)
{
	struct ina_block b = { 0 };
	__m256 v[VECTORS], first, second;
	__m256i most = _mm256_setzero_si256();
	uint32_t bits;
	int up;

	for (int i = 0; i < VECTORS; i++) {
		v[i] = _mm256_loadu_ps(x + i * LANES);
		most = _mm256_max_epi32(most, abs_bits(v[i]));
	}
	bits = most_of(most);
	if (bits >= INA_INFINITY_BITS) {
		memset(words, 0, INA_PAYLOAD_BYTES);
		b.flags = INA_F_NONFINITE;
		return b;
	}
	b.exponent = bits ? ina_block_exponent(bits, headroom) : 0;
	up = INA_EXPONENT_BIAS - b.exponent;
	first = _mm256_set1_ps(ina_power_of_two(up / 2));
	second = _mm256_set1_ps(ina_power_of_two(up - up / 2));
	for (int i = 0; i < VECTORS; i++) {
		__m256i m = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_mul_ps(v[i], first), second));

		_mm256_storeu_si256((__m256i *)(words + 4 * LANES * i),
				    _mm256_shuffle_epi8(m, get_swap_mask()));
	}
	return b;
}

static void unblock(const uint8_t *words, struct ina_block b, float *x)
{
	int up = b.exponent - INA_EXPONENT_BIAS;
	__m256 first = _mm256_set1_ps(ina_power_of_two(up / 2)),
	       second = _mm256_set1_ps(ina_power_of_two(up - up / 2));

	if (b.flags & INA_F_NONFINITE) {
		ina_quant_scalar.unblock(words, b, x);
		return;
	}
	for (int i = 0; i < VECTORS; i++) {
		__m256i m = _mm256_loadu_si256((const __m256i *)(words + 4 * LANES * i));
		__m256 y = _mm256_cvtepi32_ps(_mm256_shuffle_epi8(m, get_swap_mask()));

		_mm256_storeu_ps(x + i * LANES, _mm256_mul_ps(_mm256_mul_ps(y, first), second));
	}
}

static void swap(const void *from, void *to, size_t n)
{
	const uint8_t *f = from;
	uint8_t *t = to;

	for (; n >= LANES; n -= LANES, f += 4 * LANES, t += 4 * LANES)
		_mm256_storeu_si256((__m256i *)t,
				    _mm256_shuffle_epi8(_mm256_loadu_si256((const __m256i *)f),
							get_swap_mask()));
	ina_quant_scalar.swap(f, t, n);
}

const struct ina_quant ina_quant_avx2 = {
	.name = "avx2",
	.largest = largest,
	.scale = scale,
	.unscale = unscale,
	.block = block,
	.unblock = unblock,
	.swap = swap,
};
#endif
