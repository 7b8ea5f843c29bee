/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * small_float.h - 16- and 8-bit floating-point numbers: to float, and back rounded to nearest, ties
 * to even
 *
 * Written without branches, so that the compiler can vectorise the loops in which they stand.
 */
#ifndef SOFTCUDA_NCCL_SMALL_FLOAT_H
#define SOFTCUDA_NCCL_SMALL_FLOAT_H

#include <stdint.h>
#include <string.h>

static inline float float_of_bits(uint32_t bits)
{
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static inline uint32_t bits_of_float(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

/*
 * 1 sign, 5 exponent, 10 mantissa. The product moves the exponent's bias and is exact for subnormal
 * numbers, too.
 */
static inline float half_to_float(uint16_t half)
{
	uint32_t magnitude = half & 0x7fffu;
	uint32_t bits = bits_of_float(float_of_bits(magnitude << 13) * 0x1p112f);

	bits |= magnitude >= 0x7c00u ? 0x7f800000u : 0u; /* infinite or not a number */
	return float_of_bits(bits | (uint32_t)(half & 0x8000u) << 16);
}

static inline uint16_t float_to_half(float value)
{
	uint32_t bits = bits_of_float(value);
	uint32_t magnitude = bits & 0x7fffffffu;
	uint32_t normal = (magnitude + 0xfffu + (magnitude >> 13 & 1u) - (112u << 23)) >> 13;
	/*
	 * The addition aligns a number below 2^-14 to the spacing of subnormal halves, and rounds
	 * it.
	 */
	uint32_t subnormal = bits_of_float(float_of_bits(magnitude) + 0.5f) - bits_of_float(0.5f);
	uint32_t result = magnitude < 0x38800000u ? subnormal : normal;

	result = magnitude >= 0x477ff000u ? 0x7c00u : result; /* 65520 and above */
	result = magnitude > 0x7f800000u ? 0x7fffu : result;
	return (uint16_t)(result | (bits >> 16 & 0x8000u));
}

/* 1 sign, 8 exponent, 7 mantissa: the upper half of a float. */
static inline float bfloat16_to_float(uint16_t bfloat16)
{
	return float_of_bits((uint32_t)bfloat16 << 16);
}

static inline uint16_t float_to_bfloat16(float value)
{
	uint32_t bits = bits_of_float(value);
	uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;

	return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : rounded);
}

/* 1 sign, 4 exponent, 3 mantissa; no infinity, 0x7f is not a number. */
static inline float e4m3_to_float(uint8_t small)
{
	uint32_t magnitude = small & 0x7fu;
	uint32_t bits = bits_of_float(float_of_bits(magnitude << 20) * 0x1p120f);

	bits = magnitude == 0x7fu ? 0x7fc00000u : bits;
	return float_of_bits(bits | (uint32_t)(small & 0x80u) << 24);
}

/* Saturates: what is above 448 becomes 448. */
static inline uint8_t float_to_e4m3(float value)
{
	uint32_t bits = bits_of_float(value);
	uint32_t magnitude = bits & 0x7fffffffu;
	uint32_t normal = (magnitude + 0x7ffffu + (magnitude >> 20 & 1u) - (120u << 23)) >> 20;
	uint32_t subnormal =
		bits_of_float(float_of_bits(magnitude) + 0x1p14f) - bits_of_float(0x1p14f);
	uint32_t result = magnitude < 0x3c800000u ? subnormal : normal; /* below 2^-6 */

	result = magnitude > 0x43e00000u ? 0x7eu : result;
	result = magnitude > 0x7f800000u ? 0x7fu : result;
	return (uint8_t)(result | (bits >> 24 & 0x80u));
}

/* 1 sign, 5 exponent, 2 mantissa: the upper half of a half. */
static inline float e5m2_to_float(uint8_t small)
{
	return half_to_float((uint16_t)(small << 8));
}

/* Saturates: what is above 57344 becomes 57344. */
static inline uint8_t float_to_e5m2(float value)
{
	uint32_t bits = bits_of_float(value);
	uint32_t magnitude = bits & 0x7fffffffu;
	uint32_t normal = (magnitude + 0xfffffu + (magnitude >> 21 & 1u) - (112u << 23)) >> 21;
	uint32_t subnormal =
		bits_of_float(float_of_bits(magnitude) + 0x1p7f) - bits_of_float(0x1p7f);
	uint32_t result = magnitude < 0x38800000u ? subnormal : normal; /* below 2^-14 */

	result = magnitude > 0x47600000u ? 0x7bu : result;
	result = magnitude > 0x7f800000u ? 0x7fu : result;
	return (uint8_t)(result | (bits >> 24 & 0x80u));
}

#endif
