/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/host/backend/mailbox.h"

#include <stddef.h>

void ha_mailbox_open(struct ha_mailbox *m, struct ha_sleeper *reader)
{
	pthread_mutex_init(&m->lock, NULL);
	m->head = m->tail = NULL;
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
	message->next = NULL;
	pthread_mutex_lock(&m->lock);
	if (m->tail)
		m->tail->next = message;
	else
		m->head = message;
	m->tail = message;
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
	message = m->head;
	if (message) {
		m->head = message->next;
		if (!m->head)
			m->tail = NULL;
	}
	atomic_store_explicit(&m->filled, m->head != NULL, memory_order_release);
	pthread_mutex_unlock(&m->lock);
	return message;
}
