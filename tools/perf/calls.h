/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_PERF_CALLS_H
#define HAWSER_PERF_CALLS_H

#include <stdint.h>

/*
 * calls - how long the plugin's test() takes, call by call (--time-test)
 *
 * Most calls find nothing to do and take a fraction of a microsecond, and there are millions of
 * them: they are counted in bins, sixteen per power of two, so that a percentile is at most a
 * sixteenth too long. The longest is exact.
 * Times are ns of CLOCK_MONOTONIC, two readings per call included.
 */
#define HA_CALLS_BINS 976 /* 16 below 16 ns, then 60 powers of two */

struct ha_calls {
	uint64_t count, longest;
	uint64_t bins[HA_CALLS_BINS];
};

void ha_calls_add(struct ha_calls *calls, uint64_t ns);
void ha_calls_sum(struct ha_calls *to, const struct ha_calls *from);

/*
 * The end of the bin that holds the call which at least the given part of all is not above (nearest
 * rank); 0: no calls.
 */
uint64_t ha_calls_percentile(const struct ha_calls *calls, double part);

#endif
