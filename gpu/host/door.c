/* SPDX-License-Identifier: BSD-3-Clause */
#include "gpu/host/door.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/socket.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define ASK_MS 500 /* whether it is in vain */
#define NAP_MS 10  /* while nobody can be let in */
/* that have not shown their card yet; the one that has waited longest makes room */
#define CALLERS 256

struct caller {
	int fd;
	size_t have;
	char card[HA_GPU_CARD_MAX];
};

struct door {
	int listener;
	size_t bytes;
	ha_gpu_door_card look;
	void *self;
	bool full;  /* has been said */
	unsigned n; /* in the order in which they came */
	struct caller caller[CALLERS];
};

static void remove_caller(struct door *d, unsigned i)
{
	memmove(&d->caller[i], &d->caller[i + 1], (--d->n - i) * sizeof(d->caller[0]));
}

static void send_away(struct door *d, unsigned i)
{
	HA_WARN("set-up", "refused a connection that is from no missing rank of this job: another "
			  "job's, or a program that scans ports");
	close(d->caller[i].fd);
	remove_caller(d, i);
}

/*
 * The process has as many files open as it may, or the system has: whoever has waited longest makes
 * room.
 */
static void make_room(struct door *d, int err)
{
	struct timespec nap = { .tv_nsec = NAP_MS * 1000000L };

	if (!d->full)
		HA_WARN("set-up", "no rank can be let in now: %s; is `ulimit -n` high enough?",
			strerror(err));
	d->full = true;
	if (d->n)
		send_away(d, 0);
	else
		/* who dials stays at the door: it would be looked at again at once */
		nanosleep(&nap, NULL);
}

static void let_in(struct door *d)
{
	int fd = ha_socket_accept(d->listener);

	if (fd == -EMFILE || fd == -ENFILE || fd == -ENOBUFS || fd == -ENOMEM)
		make_room(d, -fd);
	if (fd < 0)
		return;
	if (d->n == CALLERS)
		send_away(d, 0);
	ha_socket_tune(fd, NULL);
	d->caller[d->n++] = (struct caller) { .fd = fd };
}

/* True: one more of those who are wanted is in. */
static bool listen_to(struct door *d, unsigned i)
{
	struct caller *c = &d->caller[i];
	ssize_t n = recv(c->fd, c->card + c->have, d->bytes - c->have, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		send_away(d, i);
		return false;
	}
	c->have += (size_t)n;
	if (c->have < d->bytes)
		return false;
	if (!d->look(d->self, c->fd, c->card)) {
		send_away(d, i);
		return false;
	}
	remove_caller(d, i);
	return true;
}

/* How many came in. From the last on, for one that goes moves those behind it. */
static int serve_callers(struct door *d, int wanted, unsigned limit_ms)
{
	struct pollfd p[CALLERS + 1] = { { .fd = d->listener, .events = POLLIN } };
	unsigned n = d->n;
	int in = 0, r;

	for (unsigned i = 0; i < n; i++)
		p[i + 1] = (struct pollfd) { .fd = d->caller[i].fd, .events = POLLIN };
	r = poll(p, n + 1, (int)limit_ms);
	if (r < 0)
		return errno == EINTR ? 0 : -errno;
	for (unsigned i = n; i-- && in < wanted;)
		if (p[i + 1].revents)
			in += listen_to(d, i);
	if (p[0].revents)
		let_in(d);
	return in;
}

int ha_gpu_door_open(int listener, size_t card_bytes, int wanted, unsigned limit_ms,
		     ha_gpu_door_card look, ha_gpu_door_in_vain in_vain, void *self, int *missing)
{
	struct door d = { .listener = listener, .bytes = card_bytes, .look = look, .self = self };
	int64_t now = ha_monotonic_ms(), end = now + limit_ms;
	int r = card_bytes && card_bytes <= HA_GPU_CARD_MAX ? 0 : -EINVAL;

	for (; wanted && !r; now = ha_monotonic_ms()) {
		uint64_t left = now < end ? end - now : 0;
		unsigned ask = left < ASK_MS ? (unsigned)left : ASK_MS;

		r = left ? serve_callers(&d, wanted, ask) : -ETIMEDOUT;
		if (!r && in_vain && in_vain(self))
			r = -ECONNRESET;
		if (r <= 0)
			continue;
		wanted -= r;
		end = ha_monotonic_ms() + limit_ms;
		r = 0;
	}
	while (d.n)
		send_away(&d, d.n - 1);
	*missing = wanted;
	return r;
}
