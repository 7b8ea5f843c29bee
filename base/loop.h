/* SPDX-License-Identifier: BSD-3-Clause */
/* loop.h - one thread, many descriptors: who is called when one of them is ready */
#ifndef HA_AGENT_LOOP_H
#define HA_AGENT_LOOP_H

#include <stdint.h>

/* Part of whatever waits for a descriptor. */
struct ha_watch {
	int fd;
	/* events: EPOLLIN ... It may remove and free any watch, its own too. */
	void (*ready)(struct ha_watch *watch, uint32_t events);
};

struct ha_loop {
	int fd;
};

/* Negative errno each. */
int ha_loop_open(struct ha_loop *loop);
void ha_loop_close(struct ha_loop *loop);
int ha_loop_add(struct ha_loop *loop, struct ha_watch *watch, uint32_t events);
int ha_loop_change(struct ha_loop *loop, struct ha_watch *watch, uint32_t events);
void ha_loop_remove(struct ha_loop *loop, struct ha_watch *watch);
/* Serve what is ready, until `until` (ns of CLOCK_MONOTONIC) or, if it is sooner, until *stop is not 0. */
void ha_loop_serve(struct ha_loop *loop, uint64_t until, const int *stop);

#endif
