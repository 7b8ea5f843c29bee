/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mailbox.h - rare messages to a thread, from any other
 *
 * A message is part of what it is about, and on its way at most once at a time: so sending needs no
 * memory, and cannot fail.
 */
#ifndef INA_BACKEND_MAILBOX_H
#define INA_BACKEND_MAILBOX_H

#include "ina/host/backend/sleeper.h"

#include <pthread.h>
#include <sys/queue.h>

struct ha_message {
	int kind;
	void *what;
	STAILQ_ENTRY(ha_message) link;
};

struct ha_mailbox {
	pthread_mutex_t lock; /* protects messages */
	STAILQ_HEAD(, ha_message) messages;
	_Atomic bool filled; /* read without the lock */
	struct ha_sleeper *reader;
};

void ha_mailbox_open(struct ha_mailbox *m, struct ha_sleeper *reader);
void ha_mailbox_close(struct ha_mailbox *m);
/* kind and what are the message's; it is the reader's from here on. */
void ha_mailbox_send(struct ha_mailbox *m, struct ha_message *message, int kind, void *what);
/* NULL: there is none. */
struct ha_message *ha_mailbox_take(struct ha_mailbox *m);

static inline bool ha_mailbox_filled(struct ha_mailbox *m)
{
	return atomic_load_explicit(&m->filled, memory_order_acquire);
}

#endif
