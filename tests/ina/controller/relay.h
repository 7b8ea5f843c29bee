/* SPDX-License-Identifier: BSD-3-Clause */
/* relay.h - a way to a controller on which answers can be lost; one connection at a time */
#ifndef HA_TESTS_CONTROLLER_RELAY_H
#define HA_TESTS_CONTROLLER_RELAY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct relay {
	char at[96], to[96]; /* paths of Unix sockets */
	int listener;
	/*
	 * what the controller says is lost; a connection that has lost something ends when it may
	 * be received
	 */
	atomic_bool withholds;
	atomic_bool over;
	pthread_t thread;
};

void relay_start(struct relay *r, const char *at, const char *to);
void relay_stop(struct relay *r);

#endif
