/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/signals.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

static void take_signal(struct ha_watch *watch, uint32_t events)
{
	struct ha_signals *s =
		(struct ha_signals *)((char *)watch - offsetof(struct ha_signals, watch));
	struct signalfd_siginfo info;

	if (read(watch->fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		s->take(s->user, (int)info.ssi_signo);
}

int ha_signals_open(struct ha_signals *s, struct ha_loop *loop, const int *numbers,
		    void (*take)(void *user, int number), void *user)
{
	sigset_t set;
	int err;

	*s = (struct ha_signals) { .watch = { .fd = -1, .ready = take_signal },
				   .take = take,
				   .user = user };
	sigemptyset(&set);
	for (; *numbers; numbers++)
		sigaddset(&set, *numbers);
	err = pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (err)
		return -err;
	s->watch.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->watch.fd < 0)
		return -errno;
	err = ha_loop_add(loop, &s->watch, EPOLLIN);
	if (err)
		ha_signals_close(s);
	return err;
}

void ha_signals_close(struct ha_signals *s)
{
	if (s->watch.fd >= 0)
		close(s->watch.fd);
	s->watch.fd = -1;
}
