/* SPDX-License-Identifier: BSD-3-Clause */
/* How long messages take beside how long they used to (plugin/balance/past.c). */
#include "base/check.h"
#include "plugin/balance/past.h"

#define US UINT64_C(1000)
#define KIB UINT64_C(1024)

/* Near the shortest: down quickly, up slowly, and one that takes for ever is only one. */
static void shortest_times_are_learned(void)
{
	struct ha_past p = { 0 };

	CHECK(!ha_past_knows(&p, 64 * KIB));
	CHECK_INT(ha_past_expect(&p, 64 * KIB), 0);
	CHECK_INT(ha_past_ratio(&p, 64 * KIB, 5000 * US), HA_PAST_UNIT);
	ha_past_learn(&p, 64 * KIB, 1000 * US);
	CHECK(ha_past_knows(&p, 64 * KIB));
	for (int i = 0; i < 20; i++)
		ha_past_learn(&p, 64 * KIB, 100 * US);
	CHECK(ha_past_expect(&p, 64 * KIB) < 105 * US);
	ha_past_learn(&p, 64 * KIB, 1000000 * US);
	CHECK(ha_past_expect(&p, 64 * KIB) < 110 * US);
	for (int i = 0; i < 500; i++)
		ha_past_learn(&p, 64 * KIB, 200 * US);
	CHECK(ha_past_expect(&p, 64 * KIB) > 190 * US);
}

/* As much in the queue as has been seen; or less, or more, which is rather too short. */
static void times_are_compared(void)
{
	struct ha_past p = { 0 };

	ha_past_learn(&p, 64 * KIB, 1000 * US);
	CHECK_INT(ha_past_ratio(&p, 64 * KIB, 10000 * US), 10 * HA_PAST_UNIT);
	CHECK_INT(ha_past_ratio(&p, 127 * KIB, 10000 * US), 10 * HA_PAST_UNIT);
	CHECK_INT(ha_past_ratio(&p, 64 * KIB, 500 * US), HA_PAST_UNIT / 2);
	CHECK(!ha_past_knows(&p, 16 * KIB) && !ha_past_knows(&p, 128 * KIB));
	CHECK_INT(ha_past_expect(&p, 16 * KIB), 250 * US + 1);
	CHECK_INT(ha_past_expect(&p, 1024 * KIB), 1000 * US);
	/* what a busy processor does to a short message is nothing */
	ha_past_learn(&p, 1, 10 * US);
	CHECK_INT(ha_past_ratio(&p, 1, 150 * US), HA_PAST_UNIT);
	CHECK(ha_past_ratio(&p, 1, 500 * US) > 40 * HA_PAST_UNIT);
	ha_past_accept(&p, 3 * HA_PAST_UNIT);
	CHECK_INT(ha_past_expect(&p, 64 * KIB), 3000 * US);
	CHECK_INT(ha_past_ratio(&p, 64 * KIB, 3000 * US), HA_PAST_UNIT);
	/* beyond any queue */
	ha_past_learn(&p, UINT64_MAX, 1);
	CHECK_INT(ha_past_expect(&p, UINT64_C(1) << 40), 1);
	CHECK_INT(ha_past_ratio(&p, UINT64_MAX, UINT64_MAX / HA_PAST_UNIT), UINT32_MAX);
}

static void windows_keep_samples(void)
{
	struct ha_past_window w = { 0 };

	CHECK_INT(ha_past_median(&w), 0);
	for (uint32_t i = 0; i < 2 * HA_PAST_SAMPLES; i++)
		ha_past_add(&w, i % 8);
	CHECK_INT(w.n, HA_PAST_SAMPLES);
	CHECK_INT(ha_past_median(&w), 4);
	CHECK_INT(ha_past_least(&w, HA_PAST_SAMPLES), 0);
	CHECK_INT(ha_past_least(&w, 3), 5);
	CHECK_INT(ha_past_most(&w), 7);
	w = (struct ha_past_window) { 0 };
	ha_past_add(&w, 9);
	CHECK_INT(ha_past_median(&w), 9);
	CHECK_INT(ha_past_least(&w, 8), 9);
}

int main(void)
{
	shortest_times_are_learned();
	times_are_compared();
	windows_keep_samples();
	puts("past: down quickly, up slowly; by what stands in the queue");
	return 0;
}
