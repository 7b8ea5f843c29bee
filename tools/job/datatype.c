/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "tools/job/datatype.h"

const char *const ha_redop_names[HA_REDOPS] = { "sum", "prod", "max", "min", "avg", "mulsum" };

static uint32_t float_bits(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static float bits_float(uint32_t bits)
{
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

float ha_half_decode(uint16_t bits)
{
	uint32_t sign = (uint32_t)(bits & 0x8000) << 16;
	uint32_t exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;

	if (exponent == 0x1f)
		return bits_float(sign | 0x7f800000 | fraction << 13);
	if (!exponent) /* zero or subnormal: fraction * 2^-24, exact in float */
		return bits_float(sign | float_bits((float)fraction * 0x1p-24f));
	return bits_float(sign | (exponent + 112) << 23 | fraction << 13);
}

uint16_t ha_half_encode(float value)
{
	uint32_t bits = float_bits(value), sign = bits >> 16 & 0x8000,
		 magnitude = bits & 0x7fffffff;

	if (magnitude > 0x7f800000) /* NaN stays quiet */
		return (uint16_t)(sign | 0x7e00);
	if (magnitude >= 0x477ff000) /* rounds to 65536 or more */
		return (uint16_t)(sign | 0x7c00);
	/* subnormal: adding 0.5 aligns it to 2^-24 and rounds to nearest even */
	if (magnitude < 0x38800000) {
		float shifted = bits_float(magnitude) + 0.5f;

		return (uint16_t)(sign | (float_bits(shifted) - float_bits(0.5f)));
	}
	magnitude += 0xfff + (magnitude >> 13 & 1);
	return (uint16_t)(sign | (magnitude - 0x38000000) >> 13);
}

float ha_bfloat16_decode(uint16_t bits)
{
	return bits_float((uint32_t)bits << 16);
}

uint16_t ha_bfloat16_encode(float value)
{
	uint32_t bits = float_bits(value);

	if ((bits & 0x7fffffff) > 0x7f800000)
		return (uint16_t)(bits >> 16 | 0x40);
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/*
 * One kernel per type. `wide` is the type of the arithmetic (unsigned for integers, so that
 * overflow wraps; float for the 16-bit types), `less` the type of comparisons; load and store
 * convert an element.
 */
#define AS_IS(x) (x)
#define REDUCE_KERNEL(name, type, wide, less, load, store)                                   \
	static void reduce_##name(enum ha_redop op, void *dst, const void *a, const void *b, \
				  size_t n)                                                  \
	{                                                                                    \
		const type *x = a, *y = b;                                                   \
		type *z = dst;                                                               \
                                                                                             \
		switch (op) {                                                                \
		case HA_PROD:                                                                \
			for (size_t i = 0; i < n; i++)                                       \
				z[i] = (type)store((wide)load(x[i]) * (wide)load(y[i]));     \
			break;                                                               \
		case HA_MAX:                                                                 \
			for (size_t i = 0; i < n; i++)                                       \
				z[i] = (less)load(x[i]) < (less)load(y[i]) ? y[i] : x[i];    \
			break;                                                               \
		case HA_MIN:                                                                 \
			for (size_t i = 0; i < n; i++)                                       \
				z[i] = (less)load(y[i]) < (less)load(x[i]) ? y[i] : x[i];    \
			break;                                                               \
		default:                                                                     \
			for (size_t i = 0; i < n; i++)                                       \
				z[i] = (type)store((wide)load(x[i]) + (wide)load(y[i]));     \
		}                                                                            \
	}                                                                                    \
	static void divide_##name(void *dst, size_t n, int ranks)                            \
	{                                                                                    \
		type *z = dst;                                                               \
                                                                                             \
		for (size_t i = 0; i < n; i++)                                               \
			z[i] = (type)store((less)load(z[i]) / (less)ranks);                  \
	}

REDUCE_KERNEL(int8, int8_t, uint32_t, int32_t, AS_IS, AS_IS)
REDUCE_KERNEL(uint8, uint8_t, uint32_t, uint32_t, AS_IS, AS_IS)
REDUCE_KERNEL(int32, int32_t, uint32_t, int32_t, AS_IS, AS_IS)
REDUCE_KERNEL(uint32, uint32_t, uint32_t, uint32_t, AS_IS, AS_IS)
REDUCE_KERNEL(int64, int64_t, uint64_t, int64_t, AS_IS, AS_IS)
REDUCE_KERNEL(uint64, uint64_t, uint64_t, uint64_t, AS_IS, AS_IS)
REDUCE_KERNEL(float, float, float, float, AS_IS, AS_IS)
REDUCE_KERNEL(double, double, double, double, AS_IS, AS_IS)
REDUCE_KERNEL(half, uint16_t, float, float, ha_half_decode, ha_half_encode)
REDUCE_KERNEL(bfloat16, uint16_t, float, float, ha_bfloat16_decode, ha_bfloat16_encode)

const struct ha_datatype ha_datatypes[] = {
	{ "int8", 1, HA_SIGNED, 0, reduce_int8, divide_int8 },
	{ "uint8", 1, HA_UNSIGNED, 0, reduce_uint8, divide_uint8 },
	{ "int32", 4, HA_SIGNED, 0, reduce_int32, divide_int32 },
	{ "uint32", 4, HA_UNSIGNED, 0, reduce_uint32, divide_uint32 },
	{ "int64", 8, HA_SIGNED, 0, reduce_int64, divide_int64 },
	{ "uint64", 8, HA_UNSIGNED, 0, reduce_uint64, divide_uint64 },
	{ "half", 2, HA_FLOATING, 11, reduce_half, divide_half },
	{ "float", 4, HA_FLOATING, 24, reduce_float, divide_float },
	{ "double", 8, HA_FLOATING, 53, reduce_double, divide_double },
	{ "bfloat16", 2, HA_FLOATING, 8, reduce_bfloat16, divide_bfloat16 },
};

const size_t ha_datatypes_count = sizeof(ha_datatypes) / sizeof(ha_datatypes[0]);

const struct ha_datatype *ha_datatype_find(const char *name)
{
	for (size_t i = 0; i < ha_datatypes_count; i++)
		if (!strcmp(name, ha_datatypes[i].name))
			return &ha_datatypes[i];
	return NULL;
}

int ha_redop_find(const char *name)
{
	for (int i = 0; i < HA_REDOPS; i++)
		if (!strcmp(name, ha_redop_names[i]))
			return i;
	return -1;
}
