/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * yield.h - what a thread does that polls on a processor which others need, too: when it gives the
 * processor away, and when it sleeps
 *
 * Whoever is to answer may be waiting for exactly this processor. Among threads that poll,
 * sched_yield() is the best there is: it returns at once when nobody waits. But beside threads that
 * just compute, a yield gives away a whole round of everybody's time slices, milliseconds each. So
 * every yield is timed; one that took long is followed by a while in which the thread sleeps
 * instead: who is woken is run soon. The while doubles as long as yields take long.
 */
#ifndef HA_BASE_YIELD_H
#define HA_BASE_YIELD_H

#include "base/clamp.h"
#include "base/clock.h"

#include <stdbool.h>

#define HA_YIELD_LONG_NS (2 * HA_NS_PER_MS) /* who polls has less to do at a time */
#define HA_YIELD_SLEEP_MIN_NS (10 * HA_NS_PER_MS)
#define HA_YIELD_SLEEP_MAX_NS HA_NS_PER_S
#define HA_IDLE_SLEEP_MIN_NS (20 * HA_NS_PER_US)
#define HA_IDLE_SLEEP_MAX_NS HA_NS_PER_MS

/* A thread's; all zero at first, but for its owner's word. */
struct ha_yield {
	uint64_t sleep_until, sleep_ns;
	/*
	 * a yield that took longer gave the processor to threads that compute; 0: HA_YIELD_LONG_NS
	 */
	uint64_t long_ns;
};

/* Is this a time to sleep, and not to yield? */
static inline bool ha_yield_sleeps(const struct ha_yield *y, uint64_t now)
{
	return now < y->sleep_until;
}

/* A yield from `from` to `to`. */
void ha_yield_took(struct ha_yield *y, uint64_t from, uint64_t to);

/* True: the processor was given to whoever waited for it, and is back. False: sleep. */
bool ha_yield(struct ha_yield *y);

/* How long to sleep when nothing has come for so long: an eighth of it, so what comes then is late
 * by no more than that; 20 us to 1 ms. */
static inline uint64_t ha_idle_sleep_ns(uint64_t idle_ns)
{
	return (uint64_t)ha_clamp((int64_t)(idle_ns / 8), HA_IDLE_SLEEP_MIN_NS,
				  HA_IDLE_SLEEP_MAX_NS);
}

/* The calling thread's short sleeps are as long as they say. Linux rounds them up by 50 us
 * otherwise. */
void ha_set_exact_sleeps(void);

#endif
