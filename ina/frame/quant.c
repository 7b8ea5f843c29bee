/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/frame/quant.h"

#include <errno.h>
#include <math.h>

#define LIMIT 2147483520.0 /* 2^31 - 2^7, the largest float32 below 2^31 */

const struct ina_quant *ina_quant_of(enum ina_simd simd)
{
#ifdef __x86_64__
	if (simd == INA_AVX2 && __builtin_cpu_supports("avx2"))
		return &ina_quant_avx2;
	if (simd == INA_AVX512 && __builtin_cpu_supports("avx512f") &&
	    __builtin_cpu_supports("avx512bw"))
		return &ina_quant_avx512;
#endif
	return simd == INA_SCALAR ? &ina_quant_scalar : NULL;
}

const struct ina_quant *ina_quant_best(void)
{
	for (int simd = INA_SIMDS - 1; simd > INA_SCALAR; simd--) {
		const struct ina_quant *q = ina_quant_of((enum ina_simd)simd);

		if (q)
			return q;
	}
	return &ina_quant_scalar;
}

int ina_quant_factor(float sum_of_largest, float *factor)
{
	*factor = 1;
	if (!isfinite(sum_of_largest) || sum_of_largest < 0)
		return -EDOM;
	if (!sum_of_largest)
		return 0;
	/* In double as Python has it, and to float32 as the tensor's multiplication takes it. */
	if (LIMIT / (double)sum_of_largest > 3.4028234663852886e38)
		return -ERANGE;
	*factor = (float)(LIMIT / (double)sum_of_largest);
	return 0;
}

unsigned ina_quant_headroom(unsigned ranks)
{
	return ranks < 2 ? 0 : 32 - (unsigned)__builtin_clz(ranks - 1);
}

void ina_quant_blocks(const struct ina_quant *q, const float *x, size_t n, unsigned headroom,
		      uint8_t *words, struct ina_block *block)
{
	float last[INA_WORDS] = { 0 };

	for (; n >= INA_WORDS; n -= INA_WORDS, x += INA_WORDS, words += INA_PAYLOAD_BYTES)
		*block++ = q->block(x, words, headroom);
	if (!n)
		return;
	memcpy(last, x, n * sizeof(*x));
	*block = q->block(last, words, headroom);
}

void ina_quant_unblocks(const struct ina_quant *q, const uint8_t *words,
			const struct ina_block *block, float *x, size_t n)
{
	float last[INA_WORDS];

	for (; n >= INA_WORDS; n -= INA_WORDS, x += INA_WORDS, words += INA_PAYLOAD_BYTES)
		q->unblock(words, *block++, x);
	if (!n)
		return;
	q->unblock(words, *block, last);
	memcpy(x, last, n * sizeof(*x));
}
