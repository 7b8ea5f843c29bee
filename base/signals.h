/* SPDX-License-Identifier: BSD-3-Clause */
/* signals.h - a daemon's signals, as one more descriptor of its loop */
#ifndef HA_BASE_SIGNALS_H
#define HA_BASE_SIGNALS_H

#include "base/loop.h"

struct ha_signals {
	struct ha_watch watch; /* fd -1: not open */
	void (*take)(void *user, int number);
	void *user;
};

/*
 * From now on take() gets those of `numbers`, at whose end is a 0. They are blocked in this thread
 * and in those that it starts: call it before there are others. Negative errno.
 */
int ha_signals_open(struct ha_signals *signals, struct ha_loop *loop, const int *numbers,
		    void (*take)(void *user, int number), void *user);
/* They stay blocked. */
void ha_signals_close(struct ha_signals *signals);

#endif
