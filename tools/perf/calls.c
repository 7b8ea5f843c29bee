/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/perf/calls.h"

#define FINE 4 /* bits: bins per power of two */

/* The number's highest bits: its power of two and the FINE bits below. */
static unsigned bin_of(uint64_t ns)
{
	unsigned power;

	if (ns < 1u << FINE)
		return (unsigned)ns;
	power = 63 - (unsigned)__builtin_clzll(ns);
	return ((power - FINE + 1) << FINE) + (unsigned)(ns >> (power - FINE) & ((1u << FINE) - 1));
}

/* The largest number of a bin. */
static uint64_t bin_end(unsigned bin)
{
	unsigned shift;

	if (bin < 1u << FINE)
		return bin;
	shift = (bin >> FINE) - 1;
	return (((uint64_t)(bin & ((1u << FINE) - 1)) + (1u << FINE) + 1) << shift) - 1;
}

void ha_calls_add(struct ha_calls *calls, uint64_t ns)
{
	calls->bins[bin_of(ns)]++;
	calls->count++;
	if (ns > calls->longest)
		calls->longest = ns;
}

void ha_calls_sum(struct ha_calls *to, const struct ha_calls *from)
{
	for (unsigned i = 0; i < HA_CALLS_BINS; i++)
		to->bins[i] += from->bins[i];
	to->count += from->count;
	if (from->longest > to->longest)
		to->longest = from->longest;
}

uint64_t ha_calls_percentile(const struct ha_calls *calls, double part)
{
	uint64_t rank = (uint64_t)(part * (double)calls->count + 0.999999), seen = 0;

	for (unsigned i = 0; i < HA_CALLS_BINS; i++) {
		seen += calls->bins[i];
		if (seen && seen >= rank)
			return bin_end(i) < calls->longest ? bin_end(i) : calls->longest;
	}
	return calls->longest;
}
