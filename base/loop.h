/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loop.h - one thread, many descriptors: who is called when one of them is ready
 *
 * A daemon serves its loop (ha_loop_serve). The plugin's service dispatches what is ready inside
 * its rounds (ha_loop_dispatch), and other threads wake it (ha_loop_wake). All but ha_loop_wake is
 * for one thread at a time.
 */
#ifndef HA_BASE_LOOP_H
#define HA_BASE_LOOP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Part of whatever waits for a descriptor. */
struct ha_watch {
	int fd; /* -1: watches nothing */
	/* Under ha_loop_serve it may remove and free any watch, under ha_loop_dispatch only its
	 * own. */
	void (*ready)(struct ha_watch *watch, uint32_t events);
	uint32_t events; /* EPOLLIN ..., as last asked for */
};

struct ha_loop {
	int fd;               /* epoll's; -1: not open */
	struct ha_watch wake; /* an eventfd, after ha_loop_open_wake */
	atomic_bool threaded; /* a thread sleeps in it, so it has to be woken */
	bool worked;          /* something has happened since its owner last looked */
};

/* Negative errno each. */
int ha_loop_open(struct ha_loop *loop);
/* The same, for ha_loop_wake. */
int ha_loop_open_wake(struct ha_loop *loop);
void ha_loop_close(struct ha_loop *loop);
/* A watch whose descriptor is -1 is accepted by all three, and watches nothing. */
int ha_loop_add(struct ha_loop *loop, struct ha_watch *watch, uint32_t events);
int ha_loop_change(struct ha_loop *loop, struct ha_watch *watch, uint32_t events);
void ha_loop_remove(struct ha_loop *loop, struct ha_watch *watch);
/* Serve what is ready, until `until` (ns of CLOCK_MONOTONIC) or, if it is sooner, until *stop is
 * not 0. */
void ha_loop_serve(struct ha_loop *loop, uint64_t until, const int *stop);
/* Serve one descriptor that is ready, after waiting for it for at most `ms` (-1: for ever). False:
 * none was. It may remove and free any watch. */
bool ha_loop_serve_one(struct ha_loop *loop, int ms);
/* Serve what is ready now; never waits. */
void ha_loop_dispatch(struct ha_loop *loop);
/* Wait until something is ready, ns at most, and serve nothing. */
void ha_loop_wait(struct ha_loop *loop, uint64_t ns);
/* There is new work: its thread does not sleep on. Any thread; nothing happens to a loop without a
 * thread. */
void ha_loop_wake(struct ha_loop *loop);

#endif
