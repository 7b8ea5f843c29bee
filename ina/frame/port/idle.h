/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * idle.h - what a polling thread does when there is nothing: spin, or after a while sleep, to leave
 * the processor to others
 *
 * A shared one yields instead of spinning, and sleeps the longer the longer nothing has come
 * (base/yield.h).
 */
#ifndef INA_PORT_IDLE_H
#define INA_PORT_IDLE_H

#include "base/yield.h"

#include <rte_pause.h>
#include <time.h>

#define INA_IDLE_ROUNDS 64

struct ina_idle {
	unsigned us;     /* of a sleep, or if shared until the first one; 0 = never */
	bool shared;     /* others need its processor, too */
	unsigned rounds; /* without work */
	uint64_t since;  /* shared: when the first of them was, ns */
	struct ha_yield yield;
};

/* A round without work on a shared processor. */
void ina_idle_share(struct ina_idle *i);

/* After each round: was there anything to do? */
static inline void ina_idle_round(struct ina_idle *i, bool worked)
{
	struct timespec t = { .tv_nsec = (long)i->us * 1000 };

	if (worked) {
		i->rounds = 0;
	} else if (i->shared) {
		ina_idle_share(i);
	} else if (++i->rounds < INA_IDLE_ROUNDS || !i->us) {
		rte_pause();
	} else {
		clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
	}
}

#endif
