/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * quant.h - float32 to the 32-bit integers that a switch can add, and back
 *
 * Two ways. A factor for a whole tensor is NetCCL's: q = truncate(x * factor) with factor = (2^31 -
 * 2^7) / the sum of all ranks' largest |x|, and x = sum / factor. An exponent for each block of 64
 * is ours: m = round(x * 2^-e), to even, with e the least that leaves room for the ranks' sum; it
 * needs no agreement among the ranks beforehand, loses less, and says where there is no number.
 *
 * Written three times, for AVX-512, for AVX2, and plainly; the processor that runs decides. All
 * give the same bits, as long as the thread has the default floating-point mode (to nearest,
 * denormals kept). docs/ina.md has errors and limits.
 */
#ifndef INA_QUANT_H
#define INA_QUANT_H

#include "ina/frame/frame.h"

#include <string.h>

/* No pointer needs alignment; inputs and outputs do not overlap. */
struct ina_quant {
	const char *name;
	/*
	 * The bits of the largest |x|: of all numbers, and above them infinity, then NaN. 0 for n =
	 * 0.
	 */
	uint32_t (*largest)(const float *x, size_t n);
	/*
	 * q = truncate(x * factor), held at the ends of int32; NaN is 0. How many were held, or
	 * NaN.
	 */
	size_t (*scale)(const float *x, int32_t *q, size_t n, float factor);
	/* x = q / factor. */
	void (*unscale)(const int32_t *q, float *x, size_t n, float factor);
	/*
	 * 64 floats to 64 words, big-endian as on the wire; headroom: ina_quant_headroom().
	 * INA_F_NONFINITE: no value, the words are 0.
	 */
	struct ina_block (*block)(const float *x, uint8_t *words, unsigned headroom);
	/* And back: NaN in all 64 with INA_F_NONFINITE. */
	void (*unblock)(const uint8_t *words, struct ina_block block, float *x);
	/* n words from the order of this machine to big-endian, or back. */
	void (*swap)(const void *from, void *to, size_t n);
};

enum ina_simd { INA_SCALAR, INA_AVX2, INA_AVX512, INA_SIMDS };

/* NULL: this processor has not got it. */
const struct ina_quant *ina_quant_of(enum ina_simd simd);
/* The best that this processor has. */
const struct ina_quant *ina_quant_best(void);

/*
 * NetCCL's factor. sum_of_largest: each rank's largest |x|, added. 0, or -EDOM when it is no finite
 * number, -ERANGE when it is so small that the factor is none (below 6.32e-30): the tensor must go
 * another way. All zero: the factor is 1.
 */
int ina_quant_factor(float sum_of_largest, float *factor);

/* Bits that the sum of so many ranks' words needs beside one rank's. */
unsigned ina_quant_headroom(unsigned ranks);

/*
 * For tests and benches, which have whole buffers: n floats in blocks of 64, the last one filled up
 * with zeros. words and block have (n + 63) / 64 entries of 256 bytes and of one.
 */
void ina_quant_blocks(const struct ina_quant *q, const float *x, size_t n, unsigned headroom,
		      uint8_t *words, struct ina_block *block);
void ina_quant_unblocks(const struct ina_quant *q, const uint8_t *words,
			const struct ina_block *block, float *x, size_t n);

/* ---- for the three ---- */
#define INA_INFINITY_BITS 0x7f800000u
#define INA_ABS_BITS 0x7fffffffu

static inline float ina_float_of_bits(uint32_t bits)
{
	float x;

	memcpy(&x, &bits, sizeof(x));
	return x;
}

/* 2^n for n in [-126, 127]. */
static inline float ina_power_of_two(int n)
{
	return ina_float_of_bits((uint32_t)(n + 127) << 23);
}

/*
 * The exponent field for a block whose largest |x| has these bits (finite): |m| < 2^(31 -
 * headroom), or all of float32's bits.
 */
static inline uint8_t ina_block_exponent(uint32_t largest, unsigned headroom)
{
	/*
	 * The largest |x| is below 2^(e + 1): e = exponent - 127 of a normal number, and -149 + its
	 * highest bit of a denormal one.
	 */
	int e = largest >> 23 ? (int)(largest >> 23) - 127 : -118 - __builtin_clz(largest | 1);
	int field = e + 1 - 31 + (int)headroom + INA_EXPONENT_BIAS;

	return (uint8_t)(field < 0 ? 0 : field);
}

extern const struct ina_quant ina_quant_scalar, ina_quant_avx2, ina_quant_avx512;

#endif
