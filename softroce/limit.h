/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * limit.h - what a wire lets through per second, of one device or of several behind one upstream
 *
 * A sender that is refused comes back at the time it is given. If a busy machine wakes it later,
 * what it sends then counts as sent when it might have been, twenty milliseconds ago at most: a NIC
 * would not have been late. What nobody wanted to send is gone: as on a wire, idleness saves
 * nothing up. A device behind an upstream has a queue of some packets for what has passed that:
 * without one its wire stood still whenever another's packet was on the upstream. Charging is safe
 * from several threads; two that ask at the same moment may both be let through, and both are
 * charged.
 */
#ifndef SOFTROCE_LIMIT_H
#define SOFTROCE_LIMIT_H

#include <stdatomic.h>
#include <stdint.h>

#define SR_LIMIT_LATE_NS 20000000u
#define SR_LIMIT_QUEUE 32768u /* bytes */

struct sr_limit {
	_Atomic uint64_t rate; /* bytes per millisecond; 0 = no limit */
	_Atomic uint64_t free; /* ns: when all that was let through has passed */
};

/* ns: when something may be sent; `now` or earlier: at once. */
static inline uint64_t sr_limit_when(const struct sr_limit *l)
{
	return atomic_load_explicit(&l->rate, memory_order_relaxed)
		       ? atomic_load_explicit(&l->free, memory_order_relaxed)
		       : 0;
}

/* ns: when there is room again in a queue of `bytes` in front of it. */
static inline uint64_t sr_limit_room(const struct sr_limit *l, uint32_t bytes)
{
	uint64_t rate = atomic_load_explicit(&l->rate, memory_order_relaxed),
		 when = sr_limit_when(l);
	uint64_t queue = rate ? (uint64_t)bytes * 1000000 / rate : 0;

	return when > queue ? when - queue : 0;
}

/* ns: as of when something counts that is sent now and was refused until `due`; 0: it was not
 * refused. */
static inline uint64_t sr_limit_since(uint64_t due, uint64_t now)
{
	uint64_t late = now > SR_LIMIT_LATE_NS ? now - SR_LIMIT_LATE_NS : 0;

	if (!due)
		return now;
	return due > late ? due : late;
}

/* It is, as of `since`. */
void sr_limit_charge(struct sr_limit *l, uint32_t bytes, uint64_t since);

/*
 * MB/s -> bytes per millisecond. The n-th (from 0) number of a list as "400,234.5", 0 where there
 * is none. -1: it is no such list.
 */
int64_t sr_limit_parse(const char *text, unsigned n);

#endif
