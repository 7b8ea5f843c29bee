/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/loop.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define DISPATCHED_MAX 64 /* by one call */

int ha_loop_open(struct ha_loop *loop)
{
	loop->fd = epoll_create1(EPOLL_CLOEXEC);
	loop->wake.fd = -1;
	return loop->fd < 0 ? -errno : 0;
}

static void take_wake(struct ha_watch *watch, uint32_t events)
{
	uint64_t count;

	(void)!read(watch->fd, &count, sizeof(count));
	(void)events;
}

int ha_loop_open_wake(struct ha_loop *loop)
{
	int err = ha_loop_open(loop);

	if (err)
		return err;
	loop->wake.ready = take_wake;
	loop->wake.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = loop->wake.fd < 0 ? -errno : ha_loop_add(loop, &loop->wake, EPOLLIN);
	if (err)
		ha_loop_close(loop);
	return err;
}

void ha_loop_close(struct ha_loop *loop)
{
	if (loop->fd < 0)
		return;
	if (loop->wake.fd >= 0)
		close(loop->wake.fd);
	close(loop->fd);
	loop->wake.fd = loop->fd = -1;
}

static int control_watch(struct ha_loop *loop, int what, struct ha_watch *watch, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = watch };

	if (watch->fd < 0)
		return 0;
	watch->events = events;
	return epoll_ctl(loop->fd, what, watch->fd, &event) ? -errno : 0;
}

int ha_loop_add(struct ha_loop *loop, struct ha_watch *watch, uint32_t events)
{
	return control_watch(loop, EPOLL_CTL_ADD, watch, events);
}

int ha_loop_change(struct ha_loop *loop, struct ha_watch *watch, uint32_t events)
{
	if (watch->events == events)
		return 0;
	return control_watch(loop, EPOLL_CTL_MOD, watch, events);
}

void ha_loop_remove(struct ha_loop *loop, struct ha_watch *watch)
{
	control_watch(loop, EPOLL_CTL_DEL, watch, 0);
}

/* One at a time, so that nobody removes a watch whose event has been fetched already. The kernel's
 * queue of ready descriptors goes round, so each has its turn. */
bool ha_loop_serve_one(struct ha_loop *loop, int ms)
{
	struct epoll_event event;
	struct ha_watch *watch;

	if (epoll_wait(loop->fd, &event, 1, ms) != 1)
		return false;
	watch = event.data.ptr;
	watch->ready(watch, event.events);
	return true;
}

void ha_loop_serve(struct ha_loop *loop, uint64_t until, const int *stop)
{
	uint64_t now = ha_clock_now(&ha_clock_live);

	while (!*stop && now < until) {
		(void)ha_loop_serve_one(loop,
					(int)((until - now + HA_NS_PER_MS - 1) / HA_NS_PER_MS));
		now = ha_clock_now(&ha_clock_live);
	}
}

void ha_loop_dispatch(struct ha_loop *loop)
{
	struct epoll_event events[DISPATCHED_MAX];
	int n = epoll_wait(loop->fd, events, DISPATCHED_MAX, 0);

	for (int i = 0; i < n; i++) {
		struct ha_watch *watch = events[i].data.ptr;

		watch->ready(watch, events[i].events);
	}
	if (n > 0)
		loop->worked = true;
}

void ha_loop_wait(struct ha_loop *loop, uint64_t ns)
{
	const struct timespec limit = { .tv_sec = (time_t)(ns / HA_NS_PER_S),
					.tv_nsec = (long)(ns % HA_NS_PER_S) };
	struct pollfd any = { .fd = loop->fd, .events = POLLIN };

	/* Not epoll_wait, which counts in milliseconds. */
	(void)ppoll(&any, 1, &limit, NULL);
}

void ha_loop_wake(struct ha_loop *loop)
{
	uint64_t one = 1;

	if (loop->threaded)
		(void)!write(loop->wake.fd, &one, sizeof(one));
}
