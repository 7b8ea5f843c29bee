/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/yield.h"

#include <sched.h>
#include <sys/prctl.h>

void ha_yield_took(struct ha_yield *y, uint64_t from, uint64_t to)
{
	if (to - from < (y->long_ns ? y->long_ns : HA_YIELD_LONG_NS)) {
		y->sleep_ns = 0;
		return;
	}
	y->sleep_ns = y->sleep_ns ? y->sleep_ns * 2 : HA_YIELD_SLEEP_MIN_NS;
	if (y->sleep_ns > HA_YIELD_SLEEP_MAX_NS)
		y->sleep_ns = HA_YIELD_SLEEP_MAX_NS;
	y->sleep_until = to + y->sleep_ns;
}

bool ha_yield(struct ha_yield *y)
{
	uint64_t from = ha_clock_now(&ha_clock_live);

	if (ha_yield_sleeps(y, from))
		return false;
	sched_yield();
	ha_yield_took(y, from, ha_clock_now(&ha_clock_live));
	return true;
}

void ha_set_exact_sleeps(void)
{
	prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
}
