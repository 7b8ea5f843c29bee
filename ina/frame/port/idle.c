/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/frame/port/idle.h"

static void sleep_ns(uint64_t ns)
{
	const struct timespec t = { .tv_nsec = (long)ns };

	clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

void ina_idle_share(struct ina_idle *i)
{
	uint64_t now = ha_clock_now(&ha_clock_live);

	if (!i->rounds) {
		i->rounds = 1;
		i->since = now;
	}
	if (i->us && now - i->since >= i->us * HA_NS_PER_US)
		sleep_ns(ha_idle_sleep_ns(now - i->since));
	else if (!ha_yield(&i->yield))
		sleep_ns(HA_IDLE_SLEEP_MIN_NS);
}
