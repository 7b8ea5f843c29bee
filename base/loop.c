/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/loop.h"

#include "base/clock.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

int ha_loop_open(struct ha_loop *loop)
{
	loop->fd = epoll_create1(EPOLL_CLOEXEC);
	return loop->fd < 0 ? -errno : 0;
}

void ha_loop_close(struct ha_loop *loop)
{
	if (loop->fd >= 0)
		close(loop->fd);
	loop->fd = -1;
}

static int control(struct ha_loop *loop, int what, struct ha_watch *watch, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = watch };

	return epoll_ctl(loop->fd, what, watch->fd, &event) ? -errno : 0;
}

int ha_loop_add(struct ha_loop *loop, struct ha_watch *watch, uint32_t events)
{
	return control(loop, EPOLL_CTL_ADD, watch, events);
}

int ha_loop_change(struct ha_loop *loop, struct ha_watch *watch, uint32_t events)
{
	return control(loop, EPOLL_CTL_MOD, watch, events);
}

void ha_loop_remove(struct ha_loop *loop, struct ha_watch *watch)
{
	control(loop, EPOLL_CTL_DEL, watch, 0);
}

void ha_loop_serve(struct ha_loop *loop, uint64_t until, const int *stop)
{
	uint64_t now = ha_clock_now(&ha_clock_live);

	while (!*stop && now < until) {
		/* One at a time, so that nobody removes a watch whose event has been fetched already. The kernel's
		 * queue of ready descriptors goes round, so each has its turn. */
		int ms = (int)((until - now + HA_NS_PER_MS - 1) / HA_NS_PER_MS);
		struct epoll_event event;
		struct ha_watch *watch;

		if (epoll_wait(loop->fd, &event, 1, ms) == 1) {
			watch = event.data.ptr;
			watch->ready(watch, event.events);
		}
		now = ha_clock_now(&ha_clock_live);
	}
}
