/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * timer.h - a NIC's timers: a binary heap of deadlines
 *
 * Arming is lazy. A retransmission timer is pushed back by every acknowledgement, so moving it to
 * later only stores the new deadline; the heap keeps the old one and finds out when that comes up.
 * Only an earlier deadline moves the heap.
 */
#ifndef SOFTROCE_ENGINE_TIMER_H
#define SOFTROCE_ENGINE_TIMER_H

#include <stdint.h>

#define SR_NEVER UINT64_MAX

struct sr_timer {
	uint64_t due;    /* when it really fires, ns; SR_NEVER = off */
	uint64_t queued; /* the deadline under which the heap has it, at most `due` */
	uint32_t pos;    /* place in the heap + 1; 0 = not in it */
};

struct sr_timers {
	struct sr_timer **heap;
	uint32_t n, reserved, size;
};

void sr_timers_fini(struct sr_timers *timers);
/* Makes room for one more timer, so that arming never allocates. 0 or -ENOMEM. */
int sr_timers_reserve(struct sr_timers *timers);
/* Forgets a timer and gives its room back. */
void sr_timers_release(struct sr_timers *timers, struct sr_timer *timer);

void sr_timer_enqueue(struct sr_timers *timers, struct sr_timer *timer);
/* A timer whose time has come, now off; NULL when there is none. */
struct sr_timer *sr_timers_expired(struct sr_timers *timers, uint64_t now);

/* Earliest moment at which sr_timers_expired() may have something. May be early, is never late. */
static inline uint64_t sr_timers_next(const struct sr_timers *timers)
{
	return timers->n ? timers->heap[0]->queued : SR_NEVER;
}

static inline void sr_timer_arm(struct sr_timers *timers, struct sr_timer *timer, uint64_t due)
{
	timer->due = due;
	if (!timer->pos || due < timer->queued)
		sr_timer_enqueue(timers, timer);
}

static inline void sr_timer_stop(struct sr_timer *timer)
{
	timer->due = SR_NEVER;
}

#endif
