/* SPDX-License-Identifier: BSD-3-Clause */
/* Rates from completions, and parts of a message from rates and what is out
 * (plugin/balance/pace.c). */
#include "base/check.h"
#include "plugin/balance/adaptive.h"

#define MS UINT64_C(1000000)

static void parts_follow_rates(void)
{
	const uint64_t rate[] = { 400, 234, 100 }, none[3] = { 0 }, behind[3] = { 0, 500000, 0 };
	uint64_t part[3];

	ha_pace_parts(rate, none, 3, 3, 634000, part);
	CHECK_INT(part[0], 400000);
	CHECK_INT(part[1], 234000);
	CHECK_INT(part[2], 0);
	/* What is out already counts: all are done at the same time, or get nothing. */
	ha_pace_parts(rate, behind, 7, 3, 734000, part);
	CHECK(part[0] + part[1] + part[2] >= 734000 - 3 && part[0] + part[1] + part[2] <= 734000);
	CHECK_INT(part[1], 0);
	CHECK_INT(part[0], 587200);
	CHECK_INT(part[2], 146800);
	/* Only one can. */
	ha_pace_parts(rate, behind, 2, 3, 1000, part);
	CHECK_INT(part[1], 1000);
	/* Sizes and rates beyond what there is. */
	ha_pace_parts((uint64_t[]) { UINT64_C(1) << 40, UINT64_C(1) << 40 }, none, 3, 2,
		      UINT64_C(1) << 40, part);
	CHECK_INT(part[0], UINT64_C(1) << 39);
}

static void rates_are_of_busy_time(void)
{
	struct ha_pace p = { 0 };
	uint64_t now = 1000 * MS;

	CHECK_INT(ha_pace_rate(&p, now), 1);
	for (int i = 0; i < 100; i++) {
		ha_pace_posted(&p, 1 << 20, now);
		ha_pace_posted(&p, 1 << 20, now + MS / 2);
		ha_pace_done(&p, 1 << 20, now + MS);
		ha_pace_done(&p, 1 << 20, now + 2 * MS);
		now += 50 * MS; /* rest */
	}
	CHECK(ha_pace_rate(&p, now) > (1 << 20) - 1000 && ha_pace_rate(&p, now) < (1 << 20) * 1.06);
	CHECK_INT(p.out, 0);
}

static void silence_counts_before_it_ends(void)
{
	struct ha_pace p = { 0 };
	uint64_t now = MS;

	ha_pace_posted(&p, 3000, now);
	ha_pace_done(&p, 1000, now + MS);
	ha_pace_done(&p, 1000, now + 2 * MS);
	CHECK(ha_pace_rate(&p, now + 3 * MS) > 1000); /* in time */
	CHECK(ha_pace_rate(&p, now + 22 * MS) < 110); /* it has done 2000 in 21 ms */
	ha_pace_lost(&p, 5000);
	CHECK_INT(p.out, 0);
	CHECK(ha_pace_rate(&p, now + 22 * MS) > 1000);
}

/* Eight are posted at once, nothing is received for 100 ms, then all of them are: 80 000 bytes in
 * 100 ms, at any moment. */
static void bursts_are_not_rates(void)
{
	struct ha_pace p = { 0 };
	uint64_t now = MS, mean = (UINT64_C(80000) << 20) / (100 * MS);

	for (int batch = 0; batch < 20; batch++) {
		ha_pace_posted(&p, 80000, now);
		/* no more silent than usual */
		CHECK(!batch || ha_pace_rate(&p, now + 99 * MS) > mean * 8 / 10);
		now += 100 * MS;
		for (int i = 0; i < 8; i++) {
			ha_pace_done(&p, 10000, now);
			CHECK(!batch || (ha_pace_rate(&p, now) > mean / 2 &&
					 ha_pace_rate(&p, now) < mean * 3 / 2));
		}
		CHECK(ha_pace_rate(&p, now) > mean * 8 / 10 &&
		      ha_pace_rate(&p, now) < mean * 12 / 10);
	}
	CHECK(ha_pace_flight(&p) == 80000);
	ha_pace_posted(&p, 80000, now);
	/* but ten times as long says something */
	CHECK(ha_pace_rate(&p, now + 1000 * MS) < mean / 2);
}

/* It forgets: a tenth of the rate is known to be so after some tens of milliseconds. */
static void rates_change(void)
{
	struct ha_pace p = { 0 };
	uint64_t now = MS;

	ha_pace_posted(&p, 20000, now);
	for (int i = 0; i < 1000; i++) {
		ha_pace_done(&p, 10000, now += MS / 10);
		ha_pace_posted(&p, 10000, now);
	}
	CHECK(ha_pace_rate(&p, now) > 100000);
	for (int i = 0; i < 16; i++) {
		ha_pace_done(&p, 10000, now += MS);
		ha_pace_posted(&p, 10000, now);
	}
	CHECK(ha_pace_rate(&p, now) < 12000);
}

int main(void)
{
	parts_follow_rates();
	rates_are_of_busy_time();
	silence_counts_before_it_ends();
	bursts_are_not_rates();
	rates_change();
	return 0;
}
