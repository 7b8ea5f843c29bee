/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * number.h - bf16 and FP8 (E4M3, as in the OCP 8-bit floating point specification) to float and
 * back; sums that come out alike everywhere
 *
 * A product and a sum are rounded each for itself: nvcc would make one operation of them, with
 * another last bit than the host's.
 */
#ifndef HA_GPU_EXAMPLE_NUMBER_H
#define HA_GPU_EXAMPLE_NUMBER_H

#include "gpu/device/env.h"

HA_GPU_FN float ha_moe_from_bits(uint32_t bits)
{
	union {
		uint32_t u;
		float f;
	} v;

	v.u = bits;
	return v.f;
}

HA_GPU_FN uint32_t ha_moe_to_bits(float f)
{
	union {
		uint32_t u;
		float f;
	} v;

	v.f = f;
	return v.u;
}

HA_GPU_FN float ha_moe_from_bf16(uint16_t b)
{
	return ha_moe_from_bits((uint32_t)b << 16);
}

/* To nearest, ties to even; of a NaN the quiet one. */
HA_GPU_FN uint16_t ha_moe_to_bf16(float f)
{
	uint32_t u = ha_moe_to_bits(f);

	if ((u & 0x7fffffff) > 0x7f800000)
		return 0x7fff;
	return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

/* Sign, 4 bits of exponent (bias 7), 3 of mantissa; no infinity, 0x7f and 0xff are NaN. */
HA_GPU_FN float ha_moe_from_e4m3(uint8_t b)
{
	uint32_t sign = (uint32_t)(b & 0x80) << 24, exponent = b >> 3 & 15, mantissa = b & 7;

	if ((b & 0x7f) == 0x7f)
		return ha_moe_from_bits(0x7fc00000);
	if (exponent)
		return ha_moe_from_bits(sign | (exponent + 120) << 23 | mantissa << 20);
	return ha_moe_from_bits(sign | 0x3f800000) * ((float)mantissa * 0.001953125f); /* 2^-9 */
}

HA_GPU_FN float ha_moe_times(float a, float b)
{
#ifdef __CUDA_ARCH__
	return __fmul_rn(a, b);
#else
	return a * b; /* built with -ffp-contract=off */
#endif
}

HA_GPU_FN float ha_moe_plus(float a, float b)
{
#ifdef __CUDA_ARCH__
	return __fadd_rn(a, b);
#else
	return a + b;
#endif
}

#endif
