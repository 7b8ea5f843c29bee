/* SPDX-License-Identifier: BSD-3-Clause */
#ifdef __x86_64__
#include "ina/frame/quant.h"

#include <immintrin.h>

#define LANES 8
#define V(name) _mm256_##name
#define ZERO _mm256_setzero_si256()
#define TABLE ina_quant_avx2
#define NAME "avx2"

typedef __m256 floats;
typedef __m256i ints;

static ints load_ints(const void *from)
{
	return _mm256_loadu_si256(from);
}

static void store_ints(void *to, ints v)
{
	_mm256_storeu_si256(to, v);
}

static ints get_swap_mask(void)
{
	return _mm256_setr_epi8(3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12, 3, 2, 1, 0, 7,
				6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12);
}

static ints abs_bits(floats x)
{
	return _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32((int)INA_ABS_BITS));
}

static uint32_t most_of(ints v)
{
	__m128i m = _mm_max_epu32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));

	m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0x4e));
	m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0xb1));
	return (uint32_t)_mm_cvtsi128_si32(m);
}

/* v: y as integers, and INT32_MIN for what does not fit; how many did not. */
static unsigned clamp_ints(floats y, ints *v)
{
	floats high = _mm256_cmp_ps(y, _mm256_set1_ps(0x1p31f), _CMP_GE_OQ),
	       nan = _mm256_cmp_ps(y, y, _CMP_UNORD_Q),
	       low = _mm256_cmp_ps(y, _mm256_set1_ps(-0x1p31f), _CMP_LT_OQ);
	floats odd = _mm256_or_ps(_mm256_or_ps(high, nan), low);

	*v = _mm256_blendv_epi8(*v, _mm256_set1_epi32(INT32_MAX), _mm256_castps_si256(high));
	*v = _mm256_andnot_si256(_mm256_castps_si256(nan), *v);
	return (unsigned)__builtin_popcount((unsigned)_mm256_movemask_ps(odd));
}

#include "ina/frame/quant_vector.h"
#endif
