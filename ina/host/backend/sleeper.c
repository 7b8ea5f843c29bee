/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/host/backend/sleeper.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

int ha_sleeper_open(struct ha_sleeper *s)
{
	atomic_init(&s->asleep, 0);
	s->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return s->fd < 0 ? -errno : 0;
}

void ha_sleeper_close(struct ha_sleeper *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

void ha_sleeper_wait(struct ha_sleeper *s, int fd, uint64_t timeout_ns)
{
	struct pollfd p[2] = { { .fd = s->fd, .events = POLLIN }, { .fd = fd, .events = POLLIN } };
	struct timespec t = { (time_t)(timeout_ns / 1000000000), (long)(timeout_ns % 1000000000) };
	uint64_t rings;

	if (ppoll(p, fd < 0 ? 1 : 2, timeout_ns == UINT64_MAX ? NULL : &t, NULL) > 0 &&
	    p[0].revents & POLLIN)
		while (read(s->fd, &rings, sizeof(rings)) < 0 && errno == EINTR)
			;
	ha_sleeper_stay(s);
}

void ha_sleeper_ring(struct ha_sleeper *s)
{
	uint64_t one = 1;

	while (write(s->fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}
