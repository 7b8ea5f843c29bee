/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * notice.h - a queue of events behind a descriptor
 *
 * The descriptor is an eventfd that is readable exactly while the queue is not empty, so that
 * poll() on it, O_NONBLOCK set by the application, and the removal of an object's events all behave
 * as they do on the kernel's event files.
 */
#ifndef SOFTROCE_VERBS_NOTICE_H
#define SOFTROCE_VERBS_NOTICE_H

#include <pthread.h>
#include <stdint.h>
#include <sys/queue.h>

struct sr_notice {
	TAILQ_ENTRY(sr_notice) link;
	int type; /* enum ibv_event_type, for asynchronous events */
	void *object;
	/* counted up when the application takes the event; NULL: nobody waits for that */
	uint32_t *taken;
};

struct sr_notices {
	pthread_mutex_t lock;
	TAILQ_HEAD(, sr_notice) notices; /* oldest first */
	unsigned n;
	int fd;
};

/* 0 or -errno. */
int sr_notices_init(struct sr_notices *queue);
void sr_notices_destroy(struct sr_notices *queue);
/* Lost silently when memory is out or a thousand lie there unread. */
void sr_notices_push(struct sr_notices *queue, int type, void *object, uint32_t *taken);
/* Take the oldest; waits unless the descriptor is O_NONBLOCK. 0, -EAGAIN, -EINTR, ... */
int sr_notices_take(struct sr_notices *queue, struct sr_notice *out);
/* Forget the untaken events of an object; returns how often *taken was counted. */
uint32_t sr_notices_purge(struct sr_notices *queue, const void *object, const uint32_t *taken);

#endif
