/* SPDX-License-Identifier: BSD-3-Clause */
/* test_quant.c - numbers into words and back: NetCCL's way exactly, ours against float64, and three
 * writings that are one */
#include "base/rng.h"
#include "ina/frame/bytes.h"
#include "ina/frame/quant.h"
#include "ina/switch/slot.h"
#include "tests/ina/switch/named.h"

#include <errno.h>
#include <float.h>
#include <math.h>

static struct sr_rng rng = { 3 };

static double draw_uniform(void)
{
	return ((double)(sr_rng_next(&rng) >> 11) + 0.5) * 0x1p-53;
}

static double draw_gauss(void)
{
	return sqrt(-2 * log(draw_uniform())) * cos(2 * M_PI * draw_uniform());
}

/* Any bits at all, with the odd ones more often than chance has them. */
static float any_float(void)
{
	static const uint32_t odd[] = { 0,          0x80000000, 1,          0x80000001,
					0x007fffff, 0x00800000, 0x7f7fffff, 0xff7fffff,
					0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345,
					0x7f800001, 0x4f000000, 0xcf000000, 0x4effffff };

	return ina_float_of_bits(sr_rng_below(&rng, 8)
					 ? (uint32_t)sr_rng_next(&rng)
					 : odd[sr_rng_below(&rng, sizeof(odd) / sizeof(odd[0]))]);
}

static float finite_float(void)
{
	float x;

	do
		x = any_float();
	while (!isfinite(x));
	return x;
}

/* ---- three writings ---- */

static void same_arrays(const struct ina_quant *q, const float *x, size_t n, float factor)
{
	static int32_t a[512], b[512];
	static float y[512], z[512];

	CHECK_INT(q->largest(x, n), ina_quant_scalar.largest(x, n));
	memset(a, 0x55, sizeof(a));
	memset(b, 0x55, sizeof(b));
	CHECK_INT(q->scale(x, a + 1, n, factor), ina_quant_scalar.scale(x, b + 1, n, factor));
	CHECK(!memcmp(a, b, sizeof(a))); /* and nothing is written behind the end */
	memset(y, 0x55, sizeof(y));
	memset(z, 0x55, sizeof(z));
	q->unscale((const int32_t *)x, y + 1, n, factor);
	ina_quant_scalar.unscale((const int32_t *)x, z + 1, n, factor);
	CHECK(!memcmp(y, z, sizeof(y)));
	memset(a, 0x55, sizeof(a));
	memset(b, 0x55, sizeof(b));
	q->swap(x, a + 1, n);
	ina_quant_scalar.swap(x, b + 1, n);
	CHECK(!memcmp(a, b, sizeof(a)));
	for (size_t i = 0; i < n; i++)
		CHECK(ina_get32(&a[1 + i]) == *(const uint32_t *)(x + i));
}

static void same_block(const struct ina_quant *q, const float *x, unsigned headroom,
		       uint8_t exponent)
{
	static uint8_t a[INA_PAYLOAD_BYTES + 8], b[INA_PAYLOAD_BYTES + 8];
	static float y[INA_WORDS + 1], z[INA_WORDS + 1];
	struct ina_block is, want;

	memset(a, 0x55, sizeof(a));
	memset(b, 0x55, sizeof(b));
	is = q->block(x, a + 3, headroom);
	want = ina_quant_scalar.block(x, b + 3, headroom);
	CHECK(is.exponent == want.exponent && is.flags == want.flags);
	CHECK(!memcmp(a, b, sizeof(a)));
	is.exponent = exponent; /* whatever came over the wire */
	is.flags = exponent & 1 ? is.flags : 0;
	memset(y, 0x55, sizeof(y));
	memset(z, 0x55, sizeof(z));
	q->unblock((const uint8_t *)x, is, y);
	ina_quant_scalar.unblock((const uint8_t *)x, is, z);
	CHECK(!memcmp(y, z, sizeof(y)));
}

static void identical_arrays(const struct ina_quant *q)
{
	float x[512];

	for (size_t n = 0; n < 300; n++)
		for (int turn = 0; turn < 4; turn++) {
			for (unsigned i = 0; i < 512; i++)
				x[i] = turn & 1 ? any_float() : finite_float();
			same_arrays(q, x + turn, n,
				    turn & 2 ? finite_float() : (float)(draw_uniform() * 1e9));
		}
}

static float block_float(int kind, int spread)
{
	if (kind == 0)
		return any_float();
	return kind == 1 ? finite_float() : (float)ldexp(draw_gauss(), spread);
}

static void identical_blocks(const struct ina_quant *q)
{
	float x[INA_WORDS];

	for (int turn = 0; turn < 20000; turn++) {
		int spread = (int)sr_rng_below(&rng, 250) - 140;

		for (unsigned i = 0; i < INA_WORDS; i++)
			x[i] = block_float(turn % 3, spread);
		same_block(q, x, (unsigned)sr_rng_below(&rng, 6), (uint8_t)sr_rng_next(&rng));
	}
}

static const struct ina_quant *best_quant(void)
{
	for (int simd = INA_AVX512; simd > INA_SCALAR; simd--)
		if (ina_quant_of((enum ina_simd)simd))
			return ina_quant_of((enum ina_simd)simd);
	return ina_quant_of(INA_SCALAR);
}

/* AVX-512, AVX2 and plain give the same bits for every length, alignment and bit pattern. */
static void processors_agree(void)
{
	int tried = 0;

	for (int simd = INA_SCALAR; simd < INA_SIMDS; simd++) {
		const struct ina_quant *q = ina_quant_of((enum ina_simd)simd);

		if (!q) {
			printf("this processor has no %s\n", simd == INA_AVX2 ? "AVX2" : "AVX-512");
			continue;
		}
		tried++;
		identical_arrays(q);
		identical_blocks(q);
	}
	CHECK(tried >= 1);
	CHECK(ina_quant_best() == best_quant());
}

/* ---- NetCCL's way ---- */

/* Section 6.1 once more, in its own order and types: Python's double, torch's float32. */
static int32_t seed_quant(float x, float sum_of_max)
{
	double factor = 0x7fffff80 / (double)sum_of_max;
	float y = x * (float)factor;

	return (int32_t)y;
}

static void seed_exact(void)
{
	const struct ina_quant *q = ina_quant_best();

	for (int turn = 0; turn < 2000; turn++) {
		float x[100], back[100], sum_of_max, factor;
		int32_t is[100];
		double ranks = 2 + (double)sr_rng_below(&rng, 31);

		for (unsigned i = 0; i < 100; i++)
			x[i] = (float)ldexp(draw_gauss(), (int)sr_rng_below(&rng, 60) - 30);
		sum_of_max = ina_float_of_bits(q->largest(x, 100)) *
			     (float)(1 + draw_uniform() * (ranks - 1));
		CHECK_INT(ina_quant_factor(sum_of_max, &factor), 0);
		CHECK(factor == (float)(2147483520.0 / (double)sum_of_max));
		CHECK_INT(q->scale(x, is, 100, factor), 0);
		for (unsigned i = 0; i < 100; i++)
			CHECK_INT(is[i], seed_quant(x[i], sum_of_max));
		q->unscale(is, back, 100, factor);
		for (unsigned i = 0; i < 100; i++)
			CHECK(back[i] == (float)is[i] / factor);
		/* Truncation: never away from zero, never a whole unit off but for the two
		 * roundings of float32. */
		for (unsigned i = 0; i < 100; i++)
			CHECK(fabs((double)x[i] * factor - is[i]) <=
			      1 + fabs((double)is[i]) * 0x1p-23);
	}
}

static int32_t saturated_sum(const float *x, unsigned ranks, float factor, bool *over)
{
	uint32_t past = 0;
	int32_t sum = 0;

	for (unsigned i = 0; i < ranks; i++) {
		int32_t one;

		*over |= ina_quant_best()->scale(x + i, &one, 1, factor) > 0;
		sum = ina_word_add(sum, one, &past);
	}
	*over |= past >> 31;
	return sum;
}

/* All ranks' largest elements lie in the same place, with the same sign: roundings let the sum pass
 * 2^31 - 1. It is held, and says so. */
static void seed_saturates(void)
{
	unsigned over = 0, cases = 0;

	for (int turn = 0; turn < 40000; turn++) {
		unsigned ranks = 2 + (unsigned)sr_rng_below(&rng, 31);
		float x[INA_RANKS_MAX], sum_of_max = 0, factor;
		double exact = 0;
		bool flag = false;
		int32_t sum;

		for (unsigned i = 0; i < ranks; i++) {
			x[i] = (float)fabs(draw_gauss());
			sum_of_max += x[i];
			exact += x[i];
		}
		CHECK_INT(ina_quant_factor(sum_of_max, &factor), 0);
		sum = saturated_sum(x, ranks, factor, &flag);
		over += flag;
		cases++;
		CHECK(sum > 0); /* NetCCL's has turned negative in these cases */
		CHECK(fabs((double)sum / factor - exact) <= 1e-5 * exact);
	}
	printf("%.1f %% of %u aligned cases pass 2^31 - 1\n", 100.0 * over / cases, cases);
	CHECK(over > cases / 20 && over < cases / 2);
}

/* What NetCCL's way breaks on is refused, or held, never nonsense. */
static void seed_refuses(void)
{
	float factor = 0, x[4] = { INFINITY, -INFINITY, NAN, 3e38f };
	int32_t q[4];

	CHECK_INT(ina_quant_factor(INFINITY, &factor), -EDOM);
	CHECK_INT(ina_quant_factor(NAN, &factor), -EDOM);
	CHECK_INT(ina_quant_factor(-1, &factor), -EDOM);
	CHECK_INT(ina_quant_factor(FLT_TRUE_MIN, &factor), -ERANGE);
	CHECK_INT(ina_quant_factor(6.3e-30f, &factor), -ERANGE);
	CHECK_INT(ina_quant_factor(6.32e-30f, &factor), 0);
	CHECK(isfinite(factor));
	CHECK_INT(ina_quant_factor(FLT_MAX, &factor), 0);
	CHECK(factor > 0);
	CHECK_INT(ina_quant_factor(0, &factor), 0);
	CHECK(factor == 1);
	for (int simd = 0; simd < INA_SIMDS; simd++) {
		const struct ina_quant *o = ina_quant_of((enum ina_simd)simd);

		if (!o)
			continue;
		CHECK_INT(o->scale(x, q, 4, 1), 4);
		CHECK(q[0] == INT32_MAX && q[1] == INT32_MIN && q[2] == 0 && q[3] == INT32_MAX);
		CHECK(o->largest(x, 4) > INA_INFINITY_BITS);
		CHECK(o->largest(x, 2) == INA_INFINITY_BITS);
		x[0] = -0x1p31f; /* the lowest end is a number, the highest is not */
		CHECK_INT(o->scale(x, q, 1, 1), 0);
		CHECK_INT(q[0], INT32_MIN);
		x[0] = 0x1p31f;
		CHECK_INT(o->scale(x, q, 1, 1), 1);
		CHECK_INT(q[0], INT32_MAX);
		x[0] = INFINITY;
	}
}

/* ---- an exponent for each block ---- */

/* Half a unit of the block's exponent at most, and float32's own half on the way back. */
static void block_error(void)
{
	const struct ina_quant *q = ina_quant_best();

	for (int turn = 0; turn < 20000; turn++) {
		unsigned headroom = (unsigned)sr_rng_below(&rng, 6);
		int spread = (int)sr_rng_below(&rng, 270) - 145;
		float x[INA_WORDS], y[INA_WORDS];
		uint8_t words[INA_PAYLOAD_BYTES];
		struct ina_block b;
		double unit, most = 0;

		for (unsigned i = 0; i < INA_WORDS; i++) {
			x[i] = (float)ldexp(draw_gauss(), spread);
			x[i] = isfinite(x[i]) ? x[i] : FLT_MAX;
			most = fmax(most, fabs((double)x[i]));
		}
		b = q->block(x, words, headroom);
		unit = ldexp(1, b.exponent - INA_EXPONENT_BIAS);
		CHECK_INT(b.flags, 0);
		CHECK(most < ldexp(unit, 31 - (int)headroom));
		/* no smaller exponent would do */
		CHECK(b.exponent == 0 || most >= ldexp(unit, 30 - (int)headroom));
		q->unblock(words, b, y);
		for (unsigned i = 0; i < INA_WORDS; i++) {
			int32_t m = (int32_t)ina_get32(words + 4 * i);

			CHECK(fabs(m * unit - (double)x[i]) <= unit / 2);
			CHECK(y[i] == (float)(m * unit));
		}
	}
}

/* The worst blocks of as many ranks as the headroom is for: the sum fits, whatever the order. */
static void block_never_saturates(void)
{
	static const float worst[] = { FLT_MAX,   0x1.fffffep0f, 0x1.fffffep-100f, 0x1.fffffcp-126f,
				       0x1p-149f, 1.0f,          0x1.fffffep30f };

	for (unsigned ranks = 2; ranks <= INA_RANKS_MAX; ranks++)
		for (unsigned n = 0; n < 2 * sizeof(worst) / sizeof(worst[0]); n++) {
			float v = worst[n / 2] * (n & 1 ? -1 : 1), x[INA_WORDS];
			uint8_t words[INA_PAYLOAD_BYTES];
			uint32_t over = 0;
			int32_t sum = 0;

			for (unsigned i = 0; i < INA_WORDS; i++)
				x[i] = v;
			ina_quant_best()->block(x, words, ina_quant_headroom(ranks));
			for (unsigned i = 0; i < ranks; i++)
				sum = ina_word_add(sum, (int32_t)ina_get32(words), &over);
			CHECK(!(over >> 31));
			CHECK_INT(sum, (int32_t)ina_get32(words) * (int64_t)ranks);
		}
	CHECK_INT(ina_quant_headroom(1), 0);
	CHECK_INT(ina_quant_headroom(2), 1);
	CHECK_INT(ina_quant_headroom(3), 2);
	CHECK_INT(ina_quant_headroom(4), 2);
	CHECK_INT(ina_quant_headroom(5), 3);
	CHECK_INT(ina_quant_headroom(32), 5);
}

/* One element that is none makes all of its block none. */
static void block_nonfinite(const struct ina_quant *q)
{
	static const float odd[] = { INFINITY, -INFINITY, NAN };
	uint8_t words[INA_PAYLOAD_BYTES], zero[INA_PAYLOAD_BYTES] = { 0 };
	float x[INA_WORDS], y[INA_WORDS];

	for (unsigned at = 0; at < INA_WORDS; at += 9)
		for (int kind = 0; kind < 3; kind++) {
			struct ina_block b;

			for (unsigned i = 0; i < INA_WORDS; i++)
				x[i] = 1;
			x[at] = odd[kind];
			b = q->block(x, words, 5);
			CHECK(b.exponent == 0 && b.flags == INA_F_NONFINITE &&
			      !memcmp(words, zero, sizeof(zero)));
			q->unblock(words, b, y);
			for (unsigned i = 0; i < INA_WORDS; i++)
				CHECK(isnan(y[i]));
		}
}

static void block_denormal(const struct ina_quant *q)
{
	uint8_t words[INA_PAYLOAD_BYTES];
	float x[INA_WORDS], y[INA_WORDS];
	struct ina_block b;

	for (unsigned i = 0; i < INA_WORDS; i++)
		x[i] = ina_float_of_bits((uint32_t)sr_rng_below(&rng, 1u << 23) | (i & 1) << 31);
	b = q->block(x, words, 5);
	CHECK_INT(b.exponent, 0);
	q->unblock(words, b, y);
	for (unsigned i = 0; i < INA_WORDS; i++)
		CHECK(y[i] == x[i]);
}

/* A sum beyond float32's end is infinite, as it is in float32. */
static void block_overflow(const struct ina_quant *q)
{
	uint8_t words[INA_PAYLOAD_BYTES];
	float y[INA_WORDS];

	for (unsigned i = 0; i < INA_WORDS; i++)
		ina_put32(words + 4 * i, i & 1 ? 0x80000000 : 0x7fffffff);
	q->unblock(words, (struct ina_block) { .exponent = 251 }, y);
	CHECK(isinf(y[0]) && y[0] > 0 && isinf(y[1]) && y[1] < 0);
}

/* Infinity and NaN are never hidden; denormals are kept, all of float32's bits of them. */
static void block_odd(void)
{
	for (int simd = 0; simd < INA_SIMDS; simd++) {
		const struct ina_quant *q = ina_quant_of((enum ina_simd)simd);
		uint8_t words[INA_PAYLOAD_BYTES], zero[INA_PAYLOAD_BYTES] = { 0 };
		float x[INA_WORDS] = { 0 };
		struct ina_block b;

		if (!q)
			continue;
		b = q->block(x, words, 5);
		CHECK(b.exponent == 0 && b.flags == 0 && !memcmp(words, zero, sizeof(zero)));
		block_denormal(q);
		block_nonfinite(q);
		block_overflow(q);
	}
}

/* Rounding to even favours no side; NetCCL's truncation is half a unit towards zero. */
static void rounding_has_no_bias(void)
{
	const struct ina_quant *q = ina_quant_best();
	double ours = 0, seeds = 0;
	unsigned n = 0;

	for (int turn = 0; turn < 4000; turn++) {
		float x[INA_WORDS];
		uint8_t words[INA_PAYLOAD_BYTES];
		int32_t one[INA_WORDS];
		struct ina_block b;
		double unit;

		for (unsigned i = 0; i < INA_WORDS; i++)
			x[i] = (float)fabs(draw_gauss() * exp(-5 * draw_uniform()));
		x[0] = 8000; /* so that the others lose bits */
		b = q->block(x, words, 5);
		unit = ldexp(1, b.exponent - INA_EXPONENT_BIAS);
		q->scale(x, one, INA_WORDS, (float)(1 / unit));
		for (unsigned i = 1; i < INA_WORDS; i++, n++) {
			ours += (int32_t)ina_get32(words + 4 * i) - x[i] / unit;
			seeds += one[i] - x[i] / unit;
		}
	}
	printf("mean error in units: %.4f by exponents, %.4f by NetCCL's factor\n", ours / n,
	       seeds / n);
	CHECK(fabs(ours / n) < 0.01);
	CHECK(fabs(seeds / n + 0.5) < 0.05);
}

/* One factor for a tensor with heavy tails loses small elements; an exponent for each 64 keeps
 * nearly all. */
static void heavy_tail(void)
{
	enum { N = 1 << 18 };
	static float x[N], y[N], z[N];
	static int32_t q[N];
	static uint8_t words[4 * N];
	static struct ina_block block[N / INA_WORDS];
	const struct ina_quant *o = ina_quant_best();
	unsigned factor_lost = 0, block_lost = 0;
	float factor;

	/* what the largest of so many is decides a lot: the same dice also after other tests */
	rng.state = 3;
	for (unsigned i = 0; i < N; i++)
		x[i] = (float)(exp(2.2 * draw_gauss()) * (sr_rng_next(&rng) & 1 ? 1 : -1));
	/* of eight ranks alike */
	CHECK_INT(ina_quant_factor(8 * ina_float_of_bits(o->largest(x, N)), &factor), 0);
	o->scale(x, q, N, factor);
	o->unscale(q, y, N, factor);
	ina_quant_blocks(o, x, N, ina_quant_headroom(8), words, block);
	ina_quant_unblocks(o, words, block, z, N);
	for (unsigned i = 0; i < N; i++) {
		factor_lost += fabs((double)y[i] - x[i]) > 1e-3 * fabs(x[i]);
		block_lost += fabs((double)z[i] - x[i]) > 1e-3 * fabs(x[i]);
	}
	printf("off by more than 10^-3: %.2f %% by one factor, %.2f %% by exponents\n",
	       100.0 * factor_lost / N, 100.0 * block_lost / N);
	CHECK(factor_lost > N / 20);
	CHECK(block_lost < N / 200);
}

/* Any number of floats, the last block filled up. */
static void any_number_of_floats(void)
{
	static float x[300], y[300];
	static uint8_t words[5 * INA_PAYLOAD_BYTES];
	struct ina_block block[6];

	for (size_t n = 0; n <= 300; n++) {
		for (unsigned i = 0; i < 300; i++)
			x[i] = (float)draw_gauss();
		memset(y, 0x55, sizeof(y));
		block[(n + 63) / 64].exponent = 77;
		ina_quant_blocks(ina_quant_best(), x, n, 3, words, block);
		CHECK_INT(block[(n + 63) / 64].exponent, 77);
		ina_quant_unblocks(ina_quant_best(), words, block, y, n);
		for (unsigned i = 0; i < n; i++)
			CHECK(fabs((double)y[i] - x[i]) < 1e-6);
		for (size_t i = n; i < 300; i++)
			CHECK(*(uint32_t *)&y[i] == 0x55555555);
	}
}

int main(int argc, char **argv)
{
	static const struct named_test tests[] = {
		{ "identical", processors_agree },
		{ "seed_exact", seed_exact },
		{ "seed_saturates", seed_saturates },
		{ "seed_refuses", seed_refuses },
		{ "block_error", block_error },
		{ "block_never_saturates", block_never_saturates },
		{ "block_odd", block_odd },
		{ "bias", rounding_has_no_bias },
		{ "heavy_tail", heavy_tail },
		{ "blocks", any_number_of_floats },
	};

	return NAMED_TESTS_RUN(tests, argc, argv);
}
