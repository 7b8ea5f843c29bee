/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/host/backend/mailbox.h"

#include <stddef.h>

void ha_mailbox_open(struct ha_mailbox *m, struct ha_sleeper *reader)
{
	pthread_mutex_init(&m->lock, NULL);
	STAILQ_INIT(&m->messages);
	atomic_init(&m->filled, false);
	m->reader = reader;
}

void ha_mailbox_close(struct ha_mailbox *m)
{
	pthread_mutex_destroy(&m->lock);
}

void ha_mailbox_send(struct ha_mailbox *m, struct ha_message *message, int kind, void *what)
{
	message->kind = kind;
	message->what = what;
	pthread_mutex_lock(&m->lock);
	STAILQ_INSERT_TAIL(&m->messages, message, link);
	atomic_store_explicit(&m->filled, true, memory_order_release);
	pthread_mutex_unlock(&m->lock);
	ha_sleeper_wake(m->reader);
}

struct ha_message *ha_mailbox_take(struct ha_mailbox *m)
{
	struct ha_message *message;

	if (!ha_mailbox_filled(m))
		return NULL;
	pthread_mutex_lock(&m->lock);
	message = STAILQ_FIRST(&m->messages);
	if (message)
		STAILQ_REMOVE_HEAD(&m->messages, link);
	atomic_store_explicit(&m->filled, !STAILQ_EMPTY(&m->messages), memory_order_release);
	pthread_mutex_unlock(&m->lock);
	return message;
}
