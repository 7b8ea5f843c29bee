/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/device/dmabuf.h"

#include "plugin/device/mr.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

/* The program needs descriptors, too, and so does a failover. */
static bool room_for_one(const struct ha_dmabufs *all)
{
	struct rlimit files;

	return getrlimit(RLIMIT_NOFILE, &files) || all->count < files.rlim_cur / 2;
}

/* As mr_cache.c has it: what is registered at an address is one buffer until it is deregistered. */
static struct ha_dmabuf *find_dmabuf(const struct ha_dmabufs *all, const struct ha_mr_want *want)
{
	struct ha_dmabuf *one;

	LIST_FOREACH(one, &all->list, entry)
		if (one->addr == want->addr && one->size == want->size &&
		    one->offset == want->offset)
			break;
	return one;
}

static struct ha_dmabuf *add_dmabuf(struct ha_dmabufs *all, const struct ha_mr_want *want)
{
	struct ha_dmabuf *one;

	errno = EMFILE;
	if (!room_for_one(all))
		return NULL;
	one = calloc(1, sizeof(*one));
	if (!one)
		return NULL;
	one->fd = fcntl(want->fd, F_DUPFD_CLOEXEC, 0);
	if (one->fd < 0) {
		free(one);
		return NULL;
	}
	one->addr = want->addr;
	one->size = want->size;
	one->offset = want->offset;
	LIST_INSERT_HEAD(&all->list, one, entry);
	all->count++;
	return one;
}

struct ha_dmabuf *ha_dmabuf_keep(struct ha_dmabufs *all, const struct ha_mr_want *want)
{
	struct ha_dmabuf *one;

	pthread_mutex_lock(&all->lock);
	one = find_dmabuf(all, want);
	if (!one)
		one = add_dmabuf(all, want);
	if (one)
		one->users++;
	pthread_mutex_unlock(&all->lock);
	return one;
}

void ha_dmabuf_drop(struct ha_dmabufs *all, struct ha_dmabuf *one)
{
	pthread_mutex_lock(&all->lock);
	one->users--;
	if (!one->users) {
		LIST_REMOVE(one, entry);
		all->count--;
		close(one->fd);
		free(one);
	}
	pthread_mutex_unlock(&all->lock);
}

bool ha_dmabuf_report_once(struct ha_dmabufs *all, unsigned *count)
{
	bool first;

	pthread_mutex_lock(&all->lock);
	*count = all->count;
	first = !all->logged;
	all->logged = true;
	pthread_mutex_unlock(&all->lock);
	return first;
}
