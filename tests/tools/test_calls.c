/* SPDX-License-Identifier: BSD-3-Clause */
/* The bins of --time-test against the sorted times themselves: never below the percentile, at most
 * a sixteenth above; sums; extremes. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "tools/perf/calls.h"

#define CALLS 20000

static uint64_t times[CALLS];

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Times of every order of magnitude up to 2^bits ns. */
static void against_sorted(unsigned bits)
{
	static const double parts[] = { 0.0001, 0.01, 0.5, 0.9, 0.99, 0.999, 0.9999, 1 };
	static struct ha_calls half[2], all;
	uint64_t random = 88172645463325252u;

	all = half[0] = half[1] = (struct ha_calls) { 0 };
	for (unsigned i = 0; i < CALLS; i++) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		times[i] = (random >> 8 & ((UINT64_C(1) << bits) - 1)) >> i % bits;
		ha_calls_add(&half[i % 2], times[i]);
	}
	ha_calls_sum(&all, &half[0]);
	ha_calls_sum(&all, &half[1]);
	qsort(times, CALLS, sizeof(*times), by_value);
	CHECK_THAT(all.count == CALLS && all.longest == times[CALLS - 1],
		   "%lu calls, the longest %lu", all.count, all.longest);
	for (unsigned i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		uint64_t true_one = times[(unsigned)(parts[i] * CALLS + 0.999999) - 1],
			 got = ha_calls_percentile(&all, parts[i]);

		CHECK_THAT(got >= true_one && got <= true_one + true_one / 16,
			   "%g of %u bits: %lu instead of %lu", parts[i], bits, got, true_one);
	}
}

int main(void)
{
	struct ha_calls none = { 0 }, one = { 0 };

	CHECK(!ha_calls_percentile(&none, 0.99));
	ha_calls_add(&one, UINT64_MAX);
	ha_calls_add(&one, 0);
	CHECK_THAT(ha_calls_percentile(&one, 0.5) == 0 &&
			   ha_calls_percentile(&one, 1) == UINT64_MAX,
		   "both ends");
	for (unsigned bits = 4; bits <= 56; bits += 4)
		against_sorted(bits);
	return 0;
}
