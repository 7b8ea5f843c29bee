/* SPDX-License-Identifier: BSD-3-Clause */
#include "softcuda/nccl/reduce.h"
#include "softcuda/nccl/small_float.h"

#include <string.h>

/*
 * Each element is widened, computed with and narrowed again; the loops are simple enough for the
 * compiler to vectorise.
 * One rounding to float before that to 16 bits changes no result: a float has more than twice the
 * bits of either.
 */
#define SAME(x) (x)
#define NARROW_HALF(x) float_to_half(x)
#define WIDEN_E4M3(x) e4m3_to_float(x)
#define NARROW_E4M3(x) float_to_e4m3(half_to_float(float_to_half(x)))
#define NARROW_E5M2(x) float_to_e5m2(half_to_float(float_to_half(x)))

/*
 * A loop of two sources; `x` and `y` are the widened elements. The pragma: equal addresses are no
 * dependence.
 */
#define DEFINE_COMBINE(name, type, wide, widen, narrow, expression)                               \
	static void name(void *to, const void *a, const void *b, size_t count, uint64_t argument) \
	{                                                                                         \
		const type *first = a, *second = b;                                               \
		type *result = to;                                                                \
                                                                                                  \
		(void)argument;                                                                   \
		_Pragma("GCC ivdep") for (size_t i = 0; i < count; i++)                           \
		{                                                                                 \
			wide x = widen(first[i]);                                                 \
			wide y = widen(second[i]);                                                \
			result[i] = (type)narrow(expression);                                     \
		}                                                                                 \
	}

#define DEFINE_MAP(name, type, wide, widen, narrow, constant_type, constant, expression) \
	static void name(void *to, const void *from, size_t count, uint64_t argument)    \
	{                                                                                \
		const type *source = from;                                               \
		type *result = to;                                                       \
		constant_type c = constant;                                              \
                                                                                         \
		_Pragma("GCC ivdep") for (size_t i = 0; i < count; i++)                  \
		{                                                                        \
			wide x = widen(source[i]);                                       \
			result[i] = (type)narrow(expression);                            \
		}                                                                        \
	}

/* Two's complement: sums and products of signed integers are those of unsigned ones. */
#define DEFINE_INTEGER(suffix, type, signed_type)                                                \
	DEFINE_COMBINE(sum_##suffix, type, type, SAME, SAME, x + y)                              \
	DEFINE_COMBINE(product_##suffix, type, type, SAME, SAME, x *y)                           \
	/* The argument flips the sign bit of signed numbers, and all bits where the maximum is  \
	 * asked. */                                                                             \
	DEFINE_COMBINE(min_max_##suffix, type, type, SAME, SAME,                                 \
		       (type)(x ^ (type)argument) < (type)(y ^ (type)argument) ? x : y)          \
	DEFINE_MAP(multiply_##suffix, type, type, SAME, SAME, type, (type)argument, x *c)        \
	DEFINE_MAP(divide_unsigned_##suffix, type, type, SAME, SAME, uint32_t,                   \
		   (uint32_t)(argument >> 1), x / c)                                             \
	DEFINE_MAP(divide_signed_##suffix, type, signed_type, SAME, SAME, int32_t,               \
		   (int32_t)(argument >> 1), x / c)                                              \
	static void divide_##suffix(void *to, const void *from, size_t count, uint64_t argument) \
	{                                                                                        \
		if (argument & 1)                                                                \
			divide_signed_##suffix(to, from, count, argument);                       \
		else                                                                             \
			divide_unsigned_##suffix(to, from, count, argument);                     \
	}

/* As a GPU's minimum and maximum: not-a-number loses to a number. */
#define DEFINE_FLOATING(suffix, type, wide, widen, narrow)                                  \
	DEFINE_COMBINE(sum_##suffix, type, wide, widen, narrow, x + y)                      \
	DEFINE_COMBINE(product_##suffix, type, wide, widen, narrow, x *y)                   \
	DEFINE_COMBINE(min_##suffix, type, wide, widen, narrow, (y != y) | (x < y) ? x : y) \
	DEFINE_COMBINE(max_##suffix, type, wide, widen, narrow, (y != y) | (x > y) ? x : y) \
	static void min_max_##suffix(void *to, const void *a, const void *b, size_t count,  \
				     uint64_t argument)                                     \
	{                                                                                   \
		if (argument & 1)                                                           \
			max_##suffix(to, a, b, count, argument);                            \
		else                                                                        \
			min_##suffix(to, a, b, count, argument);                            \
	}

static inline float float_argument(uint64_t argument)
{
	return float_of_bits((uint32_t)argument);
}

static inline double double_argument(uint64_t argument)
{
	double value;

	memcpy(&value, &argument, sizeof(value));
	return value;
}

DEFINE_INTEGER(8, uint8_t, int8_t)
DEFINE_INTEGER(32, uint32_t, int32_t)
DEFINE_INTEGER(64, uint64_t, int64_t)
DEFINE_FLOATING(half, uint16_t, float, half_to_float, NARROW_HALF)
DEFINE_FLOATING(float, float, float, SAME, SAME)
DEFINE_FLOATING(double, double, double, SAME, SAME)
DEFINE_FLOATING(bfloat16, uint16_t, float, bfloat16_to_float, float_to_bfloat16)
DEFINE_FLOATING(e4m3, uint8_t, float, WIDEN_E4M3, NARROW_E4M3)
DEFINE_FLOATING(e5m2, uint8_t, float, e5m2_to_float, NARROW_E5M2)
DEFINE_MAP(multiply_half, uint16_t, float, half_to_float, NARROW_HALF, float,
	   half_to_float((uint16_t)argument), x *c)
DEFINE_MAP(multiply_float, float, float, SAME, SAME, float, float_argument(argument), x *c)
DEFINE_MAP(multiply_double, double, double, SAME, SAME, double, double_argument(argument), x *c)
DEFINE_MAP(multiply_bfloat16, uint16_t, float, bfloat16_to_float, float_to_bfloat16, float,
	   bfloat16_to_float((uint16_t)argument), x *c)
DEFINE_MAP(multiply_e4m3, uint8_t, float, WIDEN_E4M3, NARROW_E4M3, float,
	   e4m3_to_float((uint8_t)argument), x *c)
DEFINE_MAP(multiply_e5m2, uint8_t, float, e5m2_to_float, NARROW_E5M2, float,
	   e5m2_to_float((uint8_t)argument), x *c)

#define INTEGER_ROW(suffix)                                                                   \
	{                                                                                     \
		[REDUCE_SUM] = { .combine = sum_##suffix },                                   \
		[REDUCE_PRODUCT] = { .combine = product_##suffix },                           \
		[REDUCE_MIN_MAX] = { .combine = min_max_##suffix },                           \
		[REDUCE_PREMULTIPLY_SUM] = { .combine = sum_##suffix,                         \
					     .prepare = multiply_##suffix },                  \
		[REDUCE_SUM_DIVIDE] = { .combine = sum_##suffix, .finish = divide_##suffix }, \
	}

/* A float's average is a sum of premultiplied inputs. */
#define FLOATING_ROW(suffix)                                                 \
	{                                                                    \
		[REDUCE_SUM] = { .combine = sum_##suffix },                  \
		[REDUCE_PRODUCT] = { .combine = product_##suffix },          \
		[REDUCE_MIN_MAX] = { .combine = min_max_##suffix },          \
		[REDUCE_PREMULTIPLY_SUM] = { .combine = sum_##suffix,        \
					     .prepare = multiply_##suffix }, \
	}

static const struct reduction_functions functions[ELEMENT_TYPE_COUNT][REDUCE_OPERATOR_COUNT] = {
	[ELEMENT_INT8] = INTEGER_ROW(8),
	[ELEMENT_UINT8] = INTEGER_ROW(8),
	[ELEMENT_INT32] = INTEGER_ROW(32),
	[ELEMENT_UINT32] = INTEGER_ROW(32),
	[ELEMENT_INT64] = INTEGER_ROW(64),
	[ELEMENT_UINT64] = INTEGER_ROW(64),
	[ELEMENT_HALF] = FLOATING_ROW(half),
	[ELEMENT_FLOAT] = FLOATING_ROW(float),
	[ELEMENT_DOUBLE] = FLOATING_ROW(double),
	[ELEMENT_BFLOAT16] = FLOATING_ROW(bfloat16),
	[ELEMENT_FLOAT8_E4M3] = FLOATING_ROW(e4m3),
	[ELEMENT_FLOAT8_E5M2] = FLOATING_ROW(e5m2),
};

size_t element_bytes(enum element_type type)
{
	static const uint8_t bytes[ELEMENT_TYPE_COUNT] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1 };

	return bytes[type];
}

bool find_reduction(struct reduction *reduction, enum element_type type,
		    enum reduction_operator operator, uint64_t argument)
{
	reduction->functions = &functions[type][operator];
	reduction->element_bytes = element_bytes(type);
	reduction->argument = argument;
	return reduction->functions->combine != NULL;
}

void find_copy(struct reduction *reduction)
{
	find_reduction(reduction, ELEMENT_INT8, REDUCE_SUM, 0);
}

uint64_t load_argument(const void *pointer, size_t element_bytes, enum reduction_operator operator)
{
	uint64_t argument = 0;

	memcpy(&argument, pointer, operator== REDUCE_SUM_DIVIDE ? sizeof(argument) : element_bytes);
	return argument;
}
