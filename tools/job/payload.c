/* SPDX-License-Identifier: BSD-3-Clause */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "tools/job/payload.h"

#define BLOCK 4096              /* bytes generated at a time when comparing */
#define COMMON_RANK 0xffffffffu /* stands for "the same in all ranks" in hashes */
#define PRODUCT_RANKS 8         /* only these ranks scale a product, by at most 2 each */

/* Mixes a linear combination: good bits, no state, ~1 ns. */
static uint64_t hash_element(uint64_t seed, uint32_t rank, uint64_t index)
{
	return ha_mix64(seed + index * 0x9e3779b97f4a7c15u + (rank + 1) * 0xd1342543de82ef95u);
}

/* 2^e for a normal result. */
static double power_of_two(int e)
{
	uint64_t bits = (uint64_t)(e + 1023) << 52;
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

/*
 * Common scales of elements are 2^-limit to 2^(limit-1), so that no value leaves the type's range.
 */
static int scale_limit(const struct ha_datatype *type)
{
	return type->precision == 11 ? 4 : 16;
}

/* ---- floating values as numbers ---- */

static int common_exponent(const struct ha_payload *p, uint64_t index)
{
	int limit = scale_limit(p->type);

	if (p->one_scale)
		return 0;
	return (int)(hash_element(p->seed, COMMON_RANK, index) & (uint64_t)(2 * limit - 1)) - limit;
}

int ha_payload_factor(int rank)
{
	return 1 + (rank & 1);
}

/*
 * The largest power of two that `ranks` times, each with its factor, does not need more than the
 * type's precision.
 */
static uint64_t sum_limit(const struct ha_payload *p)
{
	uint64_t limit = UINT64_C(1) << p->type->precision, times = (uint64_t)p->ranks;

	if (p->redop == HA_MULSUM)
		times *= 2;
	while (limit > 1 && limit * times > UINT64_C(1) << p->type->precision)
		limit >>= 1;
	return limit;
}

/* A rank's integer significand of a sum, -limit to limit-1: no partial sum rounds. */
static int64_t sum_significand(const struct ha_payload *p, uint64_t limit, uint32_t rank,
			       uint64_t index)
{
	return (int64_t)(hash_element(p->seed, rank, index) & (2 * limit - 1)) - (int64_t)limit;
}

static int product_exponent(const struct ha_payload *p, uint32_t rank, uint64_t index)
{
	return rank < PRODUCT_RANKS ? (int)(hash_element(p->seed, rank, index) >> 8 & 0xff) % 3 - 1
				    : 0;
}

static bool product_negative(const struct ha_payload *p, uint32_t rank, uint64_t index)
{
	return hash_element(p->seed, rank, index) & 1;
}

/* In [1, 2), with all the bits of the type; one rank of each element has it, the others 1. */
static double product_significand(const struct ha_payload *p, uint32_t rank, uint64_t index)
{
	uint64_t common = hash_element(p->seed, COMMON_RANK, index);
	int bits = p->type->precision - 1;

	if (common % (uint64_t)p->ranks != rank)
		return 1;
	return 1 + (double)(common >> (64 - bits)) * power_of_two(-bits);
}

static double product_value(const struct ha_payload *p, uint32_t rank, uint64_t index)
{
	double value = product_significand(p, rank, index) *
		       power_of_two(product_exponent(p, rank, index));

	return product_negative(p, rank, index) ? -value : value;
}

/* Any sign, a spread of exponents, all significand bits; never zero, infinite or NaN. */
static double order_value(const struct ha_payload *p, uint32_t rank, uint64_t index)
{
	uint64_t h = hash_element(p->seed, rank, index);
	int limit = scale_limit(p->type), bits = p->type->precision - 1;
	int e = (int)(h >> 1 & (uint64_t)(2 * limit - 1)) - limit;
	double value = (1 + (double)(h >> (64 - bits)) * power_of_two(-bits)) * power_of_two(e);

	return h & 1 ? -value : value;
}

static double float_value(const struct ha_payload *p, uint64_t limit, uint32_t rank, uint64_t index)
{
	switch (p->redop) {
	case HA_PROD:
		return product_value(p, rank, index);
	case HA_MAX:
	case HA_MIN:
		return order_value(p, rank, index);
	default:
		/* half: up to 2048 times 2^3 stays below 65504 */
		return (double)sum_significand(p, limit, rank, index) *
		       power_of_two(common_exponent(p, index));
	}
}

/*
 * Rounds to `precision` bits, ties to even, for values in the normal range of the type. Averages
 * need it, everything else is exact. Float first: averages of the small types are divided in float.
 */
static double round_to(double value, int precision)
{
	double as_float = (float)value;
	int e;

	(void)frexp(as_float, &e);
	return ldexp(nearbyint(ldexp(as_float, precision - e)), e - precision);
}

static double float_expected(const struct ha_payload *p, uint64_t limit, uint64_t index)
{
	int64_t sum = 0;
	double best = 0, significand = 1;
	int exponent = 0;
	bool negative = false;

	for (uint32_t r = 0; r < (uint32_t)p->ranks; r++) {
		switch (p->redop) {
		case HA_PROD:
			exponent += product_exponent(p, r, index);
			negative ^= product_negative(p, r, index);
			significand *= product_significand(p, r, index);
			break;
		case HA_MAX:
		case HA_MIN: {
			double v = order_value(p, r, index);

			if (!r || (p->redop == HA_MAX ? v > best : v < best))
				best = v;
			break;
		}
		case HA_MULSUM:
			sum += sum_significand(p, limit, r, index) * ha_payload_factor((int)r);
			break;
		default:
			sum += sum_significand(p, limit, r, index);
		}
	}
	switch (p->redop) {
	case HA_PROD:
		return (negative ? -significand : significand) * power_of_two(exponent);
	case HA_MAX:
	case HA_MIN:
		return best;
	case HA_AVG:
		best = (double)sum * power_of_two(common_exponent(p, index)) / p->ranks;
		return p->type->precision < 24 ? round_to(best, p->type->precision) : best;
	default:
		return (double)sum * power_of_two(common_exponent(p, index));
	}
}

/* ---- elements ---- */

/*
 * The bits of a half or bfloat16 that represents the value exactly and is normal (or zero): cut off
 * what is zero.
 */
static uint16_t small_float_bits(double value, int precision)
{
	float as_float = (float)value;
	uint32_t bits;

	memcpy(&bits, &as_float, sizeof(bits));
	if (precision == 8 || value == 0)
		return (uint16_t)(bits >> 16);
	return (uint16_t)((bits >> 16 & 0x8000) |
			  ((bits & 0x7fffffff) - (UINT32_C(112) << 23)) >> 13);
}

static void float_store(const struct ha_datatype *type, void *dst, size_t i, double value)
{
	if (type->size == 8)
		((double *)dst)[i] = value;
	else if (type->size == 4)
		((float *)dst)[i] = (float)value;
	else
		((uint16_t *)dst)[i] = small_float_bits(value, type->precision);
}

static void int_store(const struct ha_datatype *type, void *dst, size_t i, uint64_t value)
{
	if (type->size == 8)
		((uint64_t *)dst)[i] = value;
	else if (type->size == 4)
		((uint32_t *)dst)[i] = (uint32_t)value;
	else
		((uint8_t *)dst)[i] = (uint8_t)value;
}

/* The value cut to the type and widened again with its sign. */
static uint64_t int_widen(const struct ha_datatype *type, uint64_t value)
{
	int shift = 64 - (int)type->size * 8;

	return type->kind == HA_SIGNED ? (uint64_t)((int64_t)(value << shift) >> shift)
				       : value << shift >> shift;
}

static uint64_t int_value(const struct ha_payload *p, uint32_t rank, uint64_t index)
{
	uint64_t h = hash_element(p->seed, rank, index);

	/* odd factors, or all products would end in zeros */
	return int_widen(p->type, p->redop == HA_PROD ? h | 1 : h);
}

static uint64_t int_combine(const struct ha_payload *p, uint64_t a, uint64_t b)
{
	bool less = p->type->kind == HA_SIGNED ? (int64_t)a < (int64_t)b : a < b;

	switch (p->redop) {
	case HA_PROD:
		return a * b;
	case HA_MAX:
		return less ? b : a;
	case HA_MIN:
		return less ? a : b;
	default:
		return a + b;
	}
}

/* avg ends with a division of the wrapped sum */
static uint64_t int_finish(const struct ha_payload *p, uint64_t value)
{
	if (p->redop != HA_AVG)
		return value;
	value = int_widen(p->type, value);
	if (p->type->kind == HA_SIGNED)
		return (uint64_t)((int64_t)value / p->ranks);
	return value / (uint64_t)p->ranks;
}

/* ---- files ---- */

static size_t file_index(const struct ha_payload *p, uint32_t rank, size_t index)
{
	/* ranks start at different places of the file, and every seed at another */
	uint64_t shift = hash_element(p->seed, COMMON_RANK, 0) % p->file_count +
			 (uint64_t)rank * (p->file_count / (size_t)p->ranks);

	return (size_t)((index + shift) % p->file_count);
}

static void file_fill(const struct ha_payload *p, uint32_t rank, size_t first, size_t count,
		      void *dst)
{
	size_t at = file_index(p, rank, first), n, size = p->type->size;

	for (; count; count -= n, at = 0) {
		n = p->file_count - at < count ? p->file_count - at : count;
		memcpy(dst, (const char *)p->file + at * size, n * size);
		dst = (char *)dst + n * size;
	}
}

/* The file's data need not be aligned. */
static double element_load(const struct ha_datatype *type, const void *src, size_t i)
{
	const char *at = (const char *)src + i * type->size;
	double as_double;
	float as_float;
	uint16_t bits;

	if (type->size == 8) {
		memcpy(&as_double, at, sizeof(as_double));
		return as_double;
	}
	if (type->size == 4) {
		memcpy(&as_float, at, sizeof(as_float));
		return as_float;
	}
	memcpy(&bits, at, sizeof(bits));
	return type->precision == 11 ? ha_half_decode(bits) : ha_bfloat16_decode(bits);
}

static uint64_t element_load_int(const struct ha_datatype *type, const void *src, size_t i)
{
	uint64_t value = 0;

	memcpy(&value, (const char *)src + i * type->size, type->size); /* little-endian */
	return int_widen(type, value);
}

/*
 * Half of the distance from 1 to the next number; below, the smallest subnormal: the absolute error
 * near zero.
 */
static long double unit_roundoff(const struct ha_datatype *type)
{
	return ldexpl(1, -type->precision);
}

/* The floating types by their precision: smallest subnormal, smallest normal and largest number. */
static const struct range {
	int precision;
	long double tiny, smallest, largest;
} ranges[] = {
	{ 24, 0x1p-149L, 0x1p-126L, FLT_MAX },
	{ 8, 0x1p-133L, 0x1p-126L, 0x1.fep127L },
	{ 11, 0x1p-24L, 0x1p-14L, 65504.0L },
	{ 53, 0x1p-1074L, 0x1p-1022L, DBL_MAX },
};

static const struct range *find_range(const struct ha_datatype *type)
{
	size_t i = sizeof(ranges) / sizeof(*ranges) - 1;

	while (i && ranges[i].precision != type->precision)
		i--;
	return &ranges[i];
}

/* What is known of an element's contributions without choosing an order. */
struct bounds {
	long double sum, absolute, product;
	/* products of those below and above 1: all partial products lie between */
	long double small, large;
	double low, high;
	bool finite, nan;
};

static struct bounds bounds_of(const struct ha_payload *p, uint64_t limit, size_t index)
{
	struct bounds b = { .product = 1,
			    .small = 1,
			    .large = 1,
			    .low = INFINITY,
			    .high = -INFINITY,
			    .finite = true };

	for (uint32_t r = 0; r < (uint32_t)p->ranks; r++) {
		double v = p->file ? element_load(p->type, p->file, file_index(p, r, index))
				   : float_value(p, limit, r, index);

		if (p->redop == HA_MULSUM)
			v *= ha_payload_factor((int)r);
		b.finite &= isfinite(v) != 0;
		b.nan |= isnan(v) != 0;
		b.sum += v;
		b.absolute += fabsl((long double)v);
		b.product *= v;
		*(fabs(v) < 1 ? &b.small : &b.large) *= fabsl((long double)v);
		b.high = v > b.high ? v : b.high;
		b.low = v < b.low ? v : b.low;
	}
	return b;
}

/*
 * Whether a floating element is within what some order of rounding steps can yield. Where the order
 * decides whether a partial result leaves the type's range, every outcome is one that some order
 * has, and none is judged.
 */
static bool element_within(const struct ha_payload *p, uint64_t limit, size_t index, double actual)
{
	struct bounds b = bounds_of(p, limit, index);
	const struct range *range = find_range(p->type);
	long double unit = unit_roundoff(p->type) * 2 * p->ranks,
		    bound = b.absolute * unit + range->tiny;

	if (p->redop == HA_MAX || p->redop == HA_MIN)
		return b.nan || actual == (p->redop == HA_MAX ? b.high : b.low);
	if (!b.finite)
		return !isfinite(actual) || p->redop == HA_PROD;
	if (p->redop == HA_PROD)
		return b.small < range->smallest || b.large > range->largest / 2 ||
		       fabsl(actual - b.product) <= fabsl(b.product) * unit;
	if (b.absolute + bound > range->largest)
		return true;
	if (p->redop == HA_AVG) {
		b.sum /= p->ranks;
		bound = bound / p->ranks + fabsl(b.sum) * unit + range->tiny;
	}
	return fabsl(actual - b.sum) <= bound;
}

/* ---- the interface ---- */

/* Random bits: the 8 bytes at byte offset 8w are hash w. */
static void bits_fill(const struct ha_payload *p, uint32_t rank, size_t offset, size_t bytes,
		      char *dst)
{
	uint64_t word;
	size_t n, within;

	for (; bytes; bytes -= n, offset += n, dst += n) {
		word = hash_element(p->seed, rank, offset / 8);
		within = offset % 8;
		n = 8 - within < bytes ? 8 - within : bytes;
		memcpy(dst, (char *)&word + within, n);
	}
}

void ha_payload_fill(const struct ha_payload *p, int rank, size_t first, size_t count, void *dst)
{
	const struct ha_datatype *type = p->type;
	uint64_t limit = sum_limit(p);

	if (p->file)
		file_fill(p, (uint32_t)rank, first, count, dst);
	else if (!p->reduced)
		bits_fill(p, (uint32_t)rank, first * type->size, count * type->size, dst);
	else if (type->kind == HA_FLOATING)
		for (size_t i = 0; i < count; i++)
			float_store(type, dst, i, float_value(p, limit, (uint32_t)rank, first + i));
	else
		for (size_t i = 0; i < count; i++)
			int_store(type, dst, i, int_value(p, (uint32_t)rank, first + i));
}

static uint64_t count_different(const void *a, const void *b, size_t count, size_t size)
{
	uint64_t wrong = 0;

	if (!memcmp(a, b, count * size))
		return 0;
	for (size_t i = 0; i < count; i++)
		wrong += memcmp((const char *)a + i * size, (const char *)b + i * size, size) != 0;
	return wrong;
}

uint64_t ha_payload_compare(const struct ha_payload *p, int rank, size_t first, size_t count,
			    const void *actual)
{
	uint64_t block[BLOCK / 8], wrong = 0;
	size_t n, size = p->type->size;

	for (size_t i = 0; i < count; i += n) {
		n = BLOCK / size < count - i ? BLOCK / size : count - i;
		ha_payload_fill(p, rank, first + i, n, block);
		wrong += count_different(block, (const char *)actual + i * size, n, size);
	}
	return wrong;
}

static void reduced_block(const struct ha_payload *p, size_t first, size_t n, void *block)
{
	uint64_t value, limit = sum_limit(p);

	for (size_t i = 0; i < n; i++) {
		if (p->type->kind == HA_FLOATING) {
			float_store(p->type, block, i, float_expected(p, limit, first + i));
			continue;
		}
		value = 0;
		for (uint32_t r = 0; r < (uint32_t)p->ranks; r++) {
			uint64_t v = p->file ? element_load_int(p->type, p->file,
								file_index(p, r, first + i))
					     : int_value(p, r, first + i);

			if (p->redop == HA_MULSUM)
				v *= (uint64_t)ha_payload_factor((int)r);
			value = r ? int_combine(p, value, v) : v;
		}
		int_store(p->type, block, i, int_finish(p, value));
	}
}

/*
 * Whether a reduction has rounding errors that depend on the order. 1/ranks is exact for powers of
 * two.
 */
static bool has_rounding_errors(const struct ha_payload *p)
{
	if (p->type->kind != HA_FLOATING)
		return false;
	return p->file || (p->redop == HA_AVG && p->divides_first && (p->ranks & (p->ranks - 1)));
}

uint64_t ha_payload_compare_reduced(const struct ha_payload *p, size_t first, size_t count,
				    const void *actual)
{
	uint64_t block[BLOCK / 8], wrong = 0, limit = sum_limit(p);
	size_t n, size = p->type->size;

	if (has_rounding_errors(p)) {
		for (size_t i = 0; i < count; i++)
			wrong += !element_within(p, limit, first + i,
						 element_load(p->type, actual, i));
		return wrong;
	}
	for (size_t i = 0; i < count; i += n) {
		n = BLOCK / size < count - i ? BLOCK / size : count - i;
		reduced_block(p, first + i, n, block);
		wrong += count_different(block, (const char *)actual + i * size, n, size);
	}
	return wrong;
}
