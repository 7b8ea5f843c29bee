/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * limit.h - what a wire lets through per second: a token bucket, of one device or of several behind one upstream
 *
 * A sender that is refused comes back at the time it is told. Whoever comes late finds what has gathered meanwhile, of twenty
 * milliseconds at most, so that a thread that a busy machine wakes late loses nothing in the long run. Taking is safe from several
 * threads; two that ask at the same moment may both be let through, and both are charged.
 */
#ifndef SOFTROCE_LIMIT_H
#define SOFTROCE_LIMIT_H

#include <stdatomic.h>
#include <stdint.h>

#define SR_LIMIT_BURST_NS 20000000u

struct sr_limit {
	_Atomic uint64_t rate; /* bytes per millisecond; 0 = no limit */
	_Atomic uint64_t free; /* ns: when all that was let through has passed */
};

/* ns: when something may be sent; `now` or earlier: at once. */
static inline uint64_t sr_limit_when(const struct sr_limit *l)
{
	return atomic_load_explicit(&l->rate, memory_order_relaxed) ? atomic_load_explicit(&l->free, memory_order_relaxed) : 0;
}

/* It is. */
void sr_limit_charge(struct sr_limit *l, uint32_t bytes, uint64_t now);

/* MB/s -> bytes per millisecond. The n-th (from 0) number of a list as "400,234.5", 0 where there is none. -1: it is no such list. */
int64_t sr_limit_parse(const char *text, unsigned n);

#endif
