/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/clock.h"

#include <stddef.h>

static uint64_t live_now(const struct ha_clock *clock)
{
	return (uint64_t)ha_monotonic_ns();
}

const struct ha_clock ha_clock_live = { .now_ns = live_now };

uint64_t ha_clock_virtual_now(const struct ha_clock *clock)
{
	_Static_assert(offsetof(struct ha_clock_virtual, clock) == 0, "the cast below");
	return ((const struct ha_clock_virtual *)clock)->now;
}
