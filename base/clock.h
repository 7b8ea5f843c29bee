/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * clock.h - where time comes from
 *
 * Everything that waits asks a clock it was given, so that the same code runs live and under a
 * simulator.
 */
#ifndef HA_BASE_CLOCK_H
#define HA_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define HA_NS_PER_US UINT64_C(1000)
#define HA_NS_PER_MS UINT64_C(1000000)
#define HA_NS_PER_S UINT64_C(1000000000)

struct ha_clock {
	/* Nanoseconds since an arbitrary fixed moment; never goes backwards. */
	uint64_t (*now_ns)(const struct ha_clock *clock);
};

/* CLOCK_MONOTONIC. */
extern const struct ha_clock ha_clock_live;

/* A clock that stands still until its owner moves it. Initialise with HA_CLOCK_VIRTUAL_INIT. One
 * thread only. */
struct ha_clock_virtual {
	struct ha_clock clock;
	uint64_t now;
};

uint64_t ha_clock_virtual_now(const struct ha_clock *clock);

#define HA_CLOCK_VIRTUAL_INIT(start_ns)                              \
	{                                                            \
		.clock = { ha_clock_virtual_now }, .now = (start_ns) \
	}

static inline uint64_t ha_clock_now(const struct ha_clock *clock)
{
	return clock->now_ns(clock);
}

/* The kernel's clocks as numbers: for what never runs under a simulator. */
static inline int64_t ha_kernel_clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (int64_t)t.tv_sec * (int64_t)HA_NS_PER_S + t.tv_nsec;
}

static inline int64_t ha_monotonic_ns(void)
{
	return ha_kernel_clock_ns(CLOCK_MONOTONIC);
}

static inline int64_t ha_monotonic_ms(void)
{
	return ha_monotonic_ns() / (int64_t)HA_NS_PER_MS;
}

static inline double ha_monotonic_s(void)
{
	return (double)ha_monotonic_ns() * 1e-9;
}

/* Processor time that all threads of this process have used. */
static inline int64_t ha_process_cpu_ns(void)
{
	return ha_kernel_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

#endif
