/* SPDX-License-Identifier: BSD-3-Clause */
#include "softroce/verbs/notice.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define NOTICES_MAX 4096

int sr_notices_init(struct sr_notices *queue)
{
	queue->fd = eventfd(0, EFD_CLOEXEC);
	if (queue->fd < 0)
		return -errno;
	pthread_mutex_init(&queue->lock, NULL);
	TAILQ_INIT(&queue->notices);
	queue->n = 0;
	return 0;
}

void sr_notices_destroy(struct sr_notices *queue)
{
	struct sr_notice *notice;

	while ((notice = TAILQ_FIRST(&queue->notices))) {
		TAILQ_REMOVE(&queue->notices, notice, link);
		free(notice);
	}
	close(queue->fd);
	pthread_mutex_destroy(&queue->lock);
}

void sr_notices_push(struct sr_notices *queue, int type, void *object, uint32_t *taken)
{
	struct sr_notice *notice;

	pthread_mutex_lock(&queue->lock);
	notice = queue->n < NOTICES_MAX ? malloc(sizeof(*notice)) : NULL;
	if (notice) {
		*notice = (struct sr_notice) { .type = type, .object = object, .taken = taken };
		TAILQ_INSERT_TAIL(&queue->notices, notice, link);
		if (!queue->n++)
			eventfd_write(queue->fd, 1);
	}
	pthread_mutex_unlock(&queue->lock);
}

/*
 * The queue has become empty: the descriptor must say so. Its count is 1, so this does not block.
 */
static void fd_clear(struct sr_notices *queue)
{
	eventfd_t value;

	eventfd_read(queue->fd, &value);
}

static void first_remove(struct sr_notices *queue, struct sr_notice *out)
{
	struct sr_notice *notice = TAILQ_FIRST(&queue->notices);

	*out = *notice;
	TAILQ_REMOVE(&queue->notices, notice, link);
	if (!--queue->n)
		fd_clear(queue);
	if (notice->taken)
		++*notice->taken;
	free(notice);
}

int sr_notices_take(struct sr_notices *queue, struct sr_notice *out)
{
	for (;;) {
		struct pollfd pfd = { .fd = queue->fd, .events = POLLIN };
		int flags;

		pthread_mutex_lock(&queue->lock);
		if (!TAILQ_EMPTY(&queue->notices)) {
			first_remove(queue, out);
			pthread_mutex_unlock(&queue->lock);
			return 0;
		}
		pthread_mutex_unlock(&queue->lock);
		flags = fcntl(queue->fd, F_GETFL);
		if (flags < 0)
			return -errno;
		if (flags & O_NONBLOCK)
			return -EAGAIN;
		if (poll(&pfd, 1, -1) < 0)
			return -errno;
	}
}

uint32_t sr_notices_purge(struct sr_notices *queue, const void *object, const uint32_t *taken)
{
	struct sr_notice *next;
	uint32_t count;

	pthread_mutex_lock(&queue->lock);
	for (struct sr_notice *notice = TAILQ_FIRST(&queue->notices); notice; notice = next) {
		next = TAILQ_NEXT(notice, link);
		if (notice->object != object)
			continue;
		TAILQ_REMOVE(&queue->notices, notice, link);
		free(notice);
		if (!--queue->n)
			fd_clear(queue);
	}
	count = *taken;
	pthread_mutex_unlock(&queue->lock);
	return count;
}
