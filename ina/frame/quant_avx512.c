/* SPDX-License-Identifier: BSD-3-Clause */
#ifdef __x86_64__
#include "ina/frame/quant.h"

#include <immintrin.h>

#define LANES 16
#define V(name) _mm512_##name
#define ZERO _mm512_setzero_si512()
#define TABLE ina_quant_avx512
#define NAME "avx512"

typedef __m512 floats;
typedef __m512i ints;

static ints load_ints(const void *from)
{
	return _mm512_loadu_si512(from);
}

static void store_ints(void *to, ints v)
{
	_mm512_storeu_si512(to, v);
}

static ints get_swap_mask(void)
{
	return _mm512_broadcast_i32x4(
		_mm_setr_epi8(3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12));
}

static ints abs_bits(floats x)
{
	return _mm512_and_epi32(_mm512_castps_si512(x), _mm512_set1_epi32((int)INA_ABS_BITS));
}

static uint32_t most_of(ints v)
{
	return _mm512_reduce_max_epu32(v);
}

/* v: y as integers, and INT32_MIN for what does not fit; how many did not. */
static unsigned clamp_ints(floats y, ints *v)
{
	__mmask16 high = _mm512_cmp_ps_mask(y, _mm512_set1_ps(0x1p31f), _CMP_GE_OQ),
		  nan = _mm512_cmp_ps_mask(y, y, _CMP_UNORD_Q),
		  low = _mm512_cmp_ps_mask(y, _mm512_set1_ps(-0x1p31f), _CMP_LT_OQ);

	*v = _mm512_mask_mov_epi32(*v, high, _mm512_set1_epi32(INT32_MAX));
	*v = _mm512_mask_mov_epi32(*v, nan, _mm512_setzero_si512());
	return (unsigned)__builtin_popcount((unsigned)(high | nan | low));
}

#include "ina/frame/quant_vector.h"
#endif
