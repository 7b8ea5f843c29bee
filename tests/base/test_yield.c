/* SPDX-License-Identifier: BSD-3-Clause */
/* test_yield.c - short yields go on, long ones make a thread sleep for a while, ever longer; naps
 * grow with what they wait for */
#include "base/check.h"
#include "base/yield.h"

#include <sys/prctl.h>

static void short_yields(void)
{
	struct ha_yield y = { 0 };

	CHECK(!ha_yield_sleeps(&y, 0));
	for (uint64_t now = 0; now < HA_NS_PER_S; now += HA_NS_PER_MS) {
		ha_yield_took(&y, now, now + HA_YIELD_LONG_NS - 1);
		CHECK(!ha_yield_sleeps(&y, now + HA_YIELD_LONG_NS - 1));
	}
}

/* 10 ms, 20 ms, ... 1 s; one short yield, and it begins anew. */
static void long_yields(void)
{
	struct ha_yield y = { 0 };
	uint64_t now = HA_NS_PER_S, want = HA_YIELD_SLEEP_MIN_NS;

	for (int i = 0; i < 12; i++) {
		now += 3 * HA_NS_PER_MS;
		ha_yield_took(&y, now - 3 * HA_NS_PER_MS, now);
		CHECK(ha_yield_sleeps(&y, now) && ha_yield_sleeps(&y, now + want - 1) &&
		      !ha_yield_sleeps(&y, now + want));
		now += want;
		want = want * 2 < HA_YIELD_SLEEP_MAX_NS ? want * 2 : HA_YIELD_SLEEP_MAX_NS;
	}
	CHECK(want == HA_YIELD_SLEEP_MAX_NS);
	ha_yield_took(&y, now, now + 1);
	CHECK(!ha_yield_sleeps(&y, now + 1));
	ha_yield_took(&y, now, now + HA_YIELD_LONG_NS);
	CHECK(ha_yield_sleeps(&y, now + HA_YIELD_SLEEP_MIN_NS) &&
	      !ha_yield_sleeps(&y, now + HA_YIELD_LONG_NS + HA_YIELD_SLEEP_MIN_NS));
}

/* What is long is its owner's word. */
static void owners_word(void)
{
	struct ha_yield y = { .long_ns = 200 * HA_NS_PER_US };

	ha_yield_took(&y, 0, 200 * HA_NS_PER_US - 1);
	CHECK(!ha_yield_sleeps(&y, 0));
	ha_yield_took(&y, 0, 200 * HA_NS_PER_US);
	CHECK(ha_yield_sleeps(&y, HA_YIELD_SLEEP_MIN_NS));
}

static void yields_unless_it_sleeps(void)
{
	struct ha_yield y = { .sleep_until = UINT64_MAX };

	CHECK(!ha_yield(&y));
	y.sleep_until = 0;
	CHECK(ha_yield(&y));
}

static void sleeps_grow_with_idle_time(void)
{
	uint64_t last = 0;

	for (uint64_t idle = 0; idle < HA_NS_PER_S; idle = idle * 2 + 1) {
		uint64_t nap = ha_idle_sleep_ns(idle);

		CHECK(nap >= last && nap >= HA_IDLE_SLEEP_MIN_NS && nap <= HA_IDLE_SLEEP_MAX_NS);
		CHECK(nap == HA_IDLE_SLEEP_MIN_NS || nap <= idle / 8);
		last = nap;
	}
	CHECK(last == HA_IDLE_SLEEP_MAX_NS);
}

static void sleeps_are_exact(void)
{
	ha_set_exact_sleeps();
	CHECK_INT(prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0), 1000);
}

int main(void)
{
	short_yields();
	long_yields();
	owners_word();
	yields_unless_it_sleeps();
	sleeps_grow_with_idle_time();
	sleeps_are_exact();
	return 0;
}
