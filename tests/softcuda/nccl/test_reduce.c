/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_reduce.c - every type and operation of softcuda/nccl/reduce.c against a slow computation of
 * another kind
 *
 * Small floats are decoded by their definition and rounded by a search among all values that the
 * format has.
 */
#include "base/check.h"
#include "softcuda/nccl/reduce.h"

#include <math.h>
#include <stdint.h>

/* A floating-point format of at most 16 bits. */
struct format {
	enum element_type type;
	int exponent_bits;
	int mantissa_bits;
	bool has_infinity;
	bool saturates;
};

static const struct format formats[] = {
	{ ELEMENT_HALF, 5, 10, true, false },
	{ ELEMENT_BFLOAT16, 8, 7, true, false },
	{ ELEMENT_FLOAT8_E4M3, 4, 3, false, true },
	{ ELEMENT_FLOAT8_E5M2, 5, 2, true, true },
};

static int width_of(const struct format *format)
{
	return 1 + format->exponent_bits + format->mantissa_bits;
}

static double decode_number(const struct format *format, unsigned bits)
{
	unsigned mantissa = bits & ((1u << format->mantissa_bits) - 1);
	int exponent = (int)(bits >> format->mantissa_bits & ((1u << format->exponent_bits) - 1));
	int bias = (1 << (format->exponent_bits - 1)) - 1;
	int top = (1 << format->exponent_bits) - 1;
	double sign = bits >> (width_of(format) - 1) ? -1 : 1;

	if (format->has_infinity && exponent == top)
		return mantissa ? NAN : sign * INFINITY;
	if (!format->has_infinity && exponent == top &&
	    mantissa == (1u << format->mantissa_bits) - 1)
		return NAN;
	if (exponent == 0)
		return sign * ldexp(mantissa, 1 - bias - format->mantissa_bits);
	return sign * ldexp(mantissa + (1u << format->mantissa_bits),
			    exponent - bias - format->mantissa_bits);
}

/* The code nearest to `value`, of two equally near ones the even one. Magnitudes grow with their
 * codes. */
static unsigned encode_number(const struct format *format, double value)
{
	unsigned sign = signbit(value) ? 1u << (width_of(format) - 1) : 0;
	unsigned count = 1u << (width_of(format) - 1);
	double magnitude = fabs(value);
	unsigned below = 0;
	unsigned largest =
		format->has_infinity ? count - (1u << format->mantissa_bits) - 1 : count - 2;
	double gap;

	for (unsigned half = count / 2; half; half /= 2) {
		if (below + half <= largest && decode_number(format, below + half) <= magnitude)
			below += half;
	}
	if (below == largest) {
		if (format->saturates)
			return sign | largest;
		/* Half a step above the largest number and more is infinite. */
		gap = decode_number(format, largest) - decode_number(format, largest - 1);
		return sign | (magnitude >= decode_number(format, largest) + gap / 2 ? largest + 1
										     : largest);
	}
	gap = decode_number(format, below + 1) - decode_number(format, below);
	if (magnitude - decode_number(format, below) > gap / 2)
		below++;
	else if (magnitude - decode_number(format, below) == gap / 2 && below & 1)
		below++;
	return sign | below;
}

static const struct format *half_format(void)
{
	return &formats[0];
}

/* A result as a GPU rounds it: 8-bit floats are computed in halves. */
static unsigned round_result(const struct format *format, double value)
{
	if (format->saturates && isfinite(value))
		value = decode_number(half_format(), encode_number(half_format(), value));
	return encode_number(format, value);
}

static double exact_result(enum reduction_operator operator, bool maximum, double x, double y)
{
	switch (operator) {
	case REDUCE_PRODUCT:
		return x * y;
	case REDUCE_MIN_MAX:
		if (isnan(x) || isnan(y))
			return isnan(x) ? y : x;
		return (x < y) != maximum ? x : y;
	default:
		return x + y;
	}
}

/* A sequence that is the same in each run. */
static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static unsigned read_element(const struct format *format, const void *array, size_t index)
{
	if (width_of(format) == 8)
		return ((const uint8_t *)array)[index];
	return ((const uint16_t *)array)[index];
}

static void check_small_float(const struct format *format, unsigned got, double expected,
			      const char *what, double x, double y)
{
	double value = decode_number(format, got);

	if (isnan(expected) ? isnan(value) : got == round_result(format, expected))
		return;
	if (value == 0 && expected == 0)
		return; /* either sign */
	fprintf(stderr, "type %d: %s of %a and %a is %a (code %x), expected %a (code %x)\n",
		format->type, what, x, y, value, got, expected, round_result(format, expected));
	exit(1);
}

#define COUNT 4097 /* blocks of any width, and a rest */

static void test_combine_of_format(const struct format *format, enum reduction_operator operator,
				   bool maximum)
{
	static uint16_t a[COUNT], b[COUNT], result[COUNT];
	uint64_t state = 0x9e3779b97f4a7c15u;
	struct reduction reduction;

	for (size_t i = 0; i < COUNT; i++) {
		a[i] = (uint16_t)next_random(&state);
		b[i] = (uint16_t)next_random(&state);
	}
	CHECK(find_reduction(&reduction, format->type, operator, maximum));
	reduction.functions->combine(result, a, b, COUNT, reduction.argument);
	for (size_t i = 0; i < COUNT; i++) {
		double x = decode_number(format, read_element(format, a, i));
		double y = decode_number(format, read_element(format, b, i));
		double expected = exact_result(operator, maximum, x, y);

		check_small_float(format, read_element(format, result, i), expected, "combination",
				  x, y);
	}
}

static void test_premultiply_of_format(const struct format *format)
{
	static uint16_t from[COUNT], result[COUNT];
	struct reduction reduction;
	unsigned factor = encode_number(format, 0.3125);

	for (size_t i = 0; i < COUNT; i++)
		from[i] = (uint16_t)(i * 16 + i / 16);
	CHECK(find_reduction(&reduction, format->type, REDUCE_PREMULTIPLY_SUM,
			     0xabcd000000000000u | factor));
	CHECK(reduction.functions->prepare != NULL);
	reduction.functions->prepare(result, from, COUNT, reduction.argument);
	for (size_t i = 0; i < COUNT; i++) {
		double x = decode_number(format, read_element(format, from, i));
		double expected = x * decode_number(format, factor);

		check_small_float(format, read_element(format, result, i), expected, "product", x,
				  0.3125);
	}
}

static void test_small_floats(void)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		test_combine_of_format(&formats[i], REDUCE_SUM, false);
		test_combine_of_format(&formats[i], REDUCE_PRODUCT, false);
		test_combine_of_format(&formats[i], REDUCE_MIN_MAX, false);
		test_combine_of_format(&formats[i], REDUCE_MIN_MAX, true);
		test_premultiply_of_format(&formats[i]);
	}
}

/* Integers of `bytes` as 128-bit numbers, cut to their width. */
static __int128 integer_at(const void *array, size_t bytes, bool is_signed, size_t index)
{
	uint64_t value = 0;

	memcpy(&value, (const char *)array + index * bytes, bytes);
	if (is_signed && value >> (8 * bytes - 1))
		return (__int128)value - ((__int128)1 << (8 * bytes));
	return (__int128)value;
}

static void check_integer(const void *result, size_t bytes, size_t index, __int128 expected)
{
	uint64_t mask = ~0ull >> (64 - 8 * bytes);

	if ((uint64_t)integer_at(result, bytes, false, index) == ((uint64_t)expected & mask))
		return;
	fprintf(stderr, "integer of %zu bytes, element %zu: got %llx, expected %llx\n", bytes,
		index, (unsigned long long)integer_at(result, bytes, false, index),
		(unsigned long long)expected & mask);
	exit(1);
}

static void test_integer(enum element_type type, bool is_signed)
{
	static uint64_t a[COUNT], b[COUNT], result[COUNT];
	size_t bytes = element_bytes(type);
	uint64_t all = ~0ull >> (64 - 8 * bytes);
	uint64_t sign = is_signed ? all ^ all >> 1 : 0;
	uint64_t state = 0x123456789abcdefu;
	struct reduction reduction;

	for (size_t i = 0; i < COUNT; i++) {
		a[i] = next_random(&state);
		b[i] = next_random(&state);
	}
	for (size_t i = 0; i < COUNT; i++) {
		__int128 x = integer_at(a, bytes, is_signed, i);
		__int128 y = integer_at(b, bytes, is_signed, i);

		CHECK(find_reduction(&reduction, type, REDUCE_SUM, 0));
		reduction.functions->combine(result, a, b, COUNT, reduction.argument);
		check_integer(result, bytes, i, x + y);
		find_reduction(&reduction, type, REDUCE_PRODUCT, 0);
		reduction.functions->combine(result, a, b, COUNT, reduction.argument);
		check_integer(result, bytes, i,
			      (__int128)((unsigned __int128)x * (unsigned __int128)y));
		find_reduction(&reduction, type, REDUCE_MIN_MAX, sign);
		reduction.functions->combine(result, a, b, COUNT, reduction.argument);
		check_integer(result, bytes, i, x < y ? x : y);
		find_reduction(&reduction, type, REDUCE_MIN_MAX, sign ^ all);
		reduction.functions->combine(result, a, b, COUNT, reduction.argument);
		check_integer(result, bytes, i, x > y ? x : y);
		find_reduction(&reduction, type, REDUCE_PREMULTIPLY_SUM, 7);
		reduction.functions->prepare(result, a, COUNT, reduction.argument);
		check_integer(result, bytes, i, x * 7);
		find_reduction(&reduction, type, REDUCE_SUM_DIVIDE,
			       (uint64_t)1000 << 1 | is_signed);
		reduction.functions->finish(result, a, COUNT, reduction.argument);
		check_integer(result, bytes, i, x / 1000);
		if (i == 16)
			i = COUNT - 17; /* each element costs whole arrays: the ends tell enough */
	}
}

static void test_float_and_double(void)
{
	double a[5] = { 1.5, -2, NAN, INFINITY, 0x1p-1074 };
	double b[5] = { 0.25, 3, 7, -1, 0x1p-1074 };
	double sum[5], least[5], most[5];
	float x[3] = { 1.5f, NAN, -4 }, y[3] = { 2, 5, -3 }, product[3], smaller[3];
	struct reduction reduction;

	find_reduction(&reduction, ELEMENT_DOUBLE, REDUCE_SUM, 0);
	reduction.functions->combine(sum, a, b, 5, 0);
	find_reduction(&reduction, ELEMENT_DOUBLE, REDUCE_MIN_MAX, 0);
	reduction.functions->combine(least, a, b, 5, 0);
	reduction.functions->combine(most, a, b, 5, ~0ull);
	for (int i = 0; i < 5; i++) {
		CHECK(isnan(a[i]) ? isnan(sum[i]) : sum[i] == a[i] + b[i]);
		CHECK(least[i] == fmin(a[i], b[i]));
		CHECK(most[i] == fmax(a[i], b[i]));
	}
	find_reduction(&reduction, ELEMENT_FLOAT, REDUCE_PRODUCT, 0);
	reduction.functions->combine(product, x, y, 3, 0);
	find_reduction(&reduction, ELEMENT_FLOAT, REDUCE_MIN_MAX, 0);
	reduction.functions->combine(smaller, x, y, 3, 0);
	CHECK(product[0] == 3 && isnan(product[1]) && product[2] == 12);
	CHECK(smaller[0] == 1.5f && smaller[1] == 5 && smaller[2] == -4);
}

/* A combination in place of either source, at addresses that are aligned to an element only. */
static void test_in_place(void)
{
	float memory[203], *a = memory + 1, *b = memory + 102;
	struct reduction reduction;

	find_reduction(&reduction, ELEMENT_FLOAT, REDUCE_SUM, 0);
	for (int i = 0; i < 100; i++) {
		a[i] = (float)i;
		b[i] = 1000;
	}
	reduction.functions->combine(a, a, b, 100, 0);
	reduction.functions->combine(b, a, b, 100, 0);
	for (int i = 0; i < 100; i++) {
		CHECK(a[i] == (float)(1000 + i));
		CHECK(b[i] == (float)(2000 + i));
	}
}

static void test_missing_combinations(void)
{
	struct reduction reduction;

	CHECK(!find_reduction(&reduction, ELEMENT_FLOAT, REDUCE_SUM_DIVIDE, 4));
	CHECK(!find_reduction(&reduction, ELEMENT_FLOAT8_E4M3, REDUCE_SUM_DIVIDE, 4));
}

int main(void)
{
	test_small_floats();
	test_integer(ELEMENT_INT8, true);
	test_integer(ELEMENT_UINT8, false);
	test_integer(ELEMENT_INT32, true);
	test_integer(ELEMENT_UINT32, false);
	test_integer(ELEMENT_INT64, true);
	test_integer(ELEMENT_UINT64, false);
	test_float_and_double();
	test_in_place();
	test_missing_combinations();
	return 0;
}
