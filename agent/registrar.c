/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/registrar.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define ACCEPTS 32 /* in a row, before others have their turn */
/* The shortest message has 8 bytes and the longest answer 16. */
#define PER_ANSWER 8

struct ha_conn {
	struct ha_watch watch;
	struct ha_registrar *registrar;
	struct ha_owner *owner;
	struct ha_session session;
	uint32_t events;      /* that the loop waits for */
	uint64_t stuck_since; /* ns; 0: it is not in the middle of anything */
	LIST_ENTRY(ha_conn) link;
};

static void hang_up(struct ha_conn *c, bool dropped)
{
	struct ha_registrar *r = c->registrar;

	ha_loop_remove(r->loop, &c->watch);
	close(c->watch.fd);
	LIST_REMOVE(c, link);
	r->nconns--;
	r->dropped += dropped;
	ha_owner_hang_up(r->slots, c->owner);
	free(c);
}

static uint64_t count_handled(const struct ha_session_counts *counts)
{
	return counts->registered + counts->deregistered + counts->no_slot + counts->invalid;
}

/* false: it is gone. */
static bool flush_answers(struct ha_conn *c)
{
	struct ha_session *x = &c->session;
	ssize_t n =
		x->out_len ? send(c->watch.fd, x->out, x->out_len, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;

	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		hang_up(c, false);
		return false;
	}
	if (n > 0) {
		c->stuck_since = 0;
		x->out_len -= (size_t)n;
		memmove(x->out, x->out + n, x->out_len);
	}
	return true;
}

static void wait_for(struct ha_conn *c, uint32_t events)
{
	if (c->events != events)
		ha_loop_change(c->registrar->loop, &c->watch, events);
	c->events = events;
}

/* Never more than the answers have room for, so the session uses all of it. */
static ssize_t receive_bytes(struct ha_conn *c, uint8_t *data, size_t size)
{
	size_t room = (HA_SESSION_OUT - c->session.out_len) / sizeof(struct mpib_register_response);
	size_t most = room ? (room - 1) * PER_ANSWER : 0;

	if (most > size)
		most = size;
	return most ? recv(c->watch.fd, data, most, MSG_DONTWAIT) : 0;
}

/* Something is half received or half answered. */
static bool is_half_done(const struct ha_conn *c)
{
	return c->session.in_len || c->session.out_len;
}

/* Takes what has come; false when the connection was hung up. */
static bool take_received(struct ha_conn *c)
{
	struct ha_registrar *r = c->registrar;
	uint8_t data[2048];
	ssize_t n = receive_bytes(c, data, sizeof(data));

	if (!n || (n < 0 && errno != EAGAIN && errno != EINTR)) {
		/* Its end, in the middle of something or not. */
		hang_up(c, is_half_done(c));
		return false;
	}
	if (n > 0 &&
	    ha_session_feed(&c->session, r->slots, c->owner, &r->counts, data, (size_t)n) != n) {
		HA_INFO("agent",
			"process %d (user %u) does not use the protocol of registration; hung up",
			(int)c->owner->pid, (unsigned)c->owner->uid);
		hang_up(c, true);
		return false;
	}
	return true;
}

static void conn_ready(struct ha_watch *watch, uint32_t events)
{
	struct ha_conn *c = (struct ha_conn *)watch; /* its first member */
	struct ha_registrar *r = c->registrar;
	uint64_t before = count_handled(&r->counts);

	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR) && !take_received(c))
		return;
	if (!flush_answers(c))
		return;
	/* Whoever does not take its answers is not listened to. */
	wait_for(c, c->session.out_len ? EPOLLOUT : EPOLLIN);
	if (!is_half_done(c) || count_handled(&r->counts) != before)
		c->stuck_since = 0; /* nothing is half done, or something has been done whole */
	if (is_half_done(c) && !c->stuck_since)
		c->stuck_since = ha_clock_now(&ha_clock_live);
}

static void open_conn(struct ha_registrar *r, int fd, const struct ucred *peer)
{
	struct ha_owner *owner = ha_owner_get(r->slots, peer->pid, peer->uid);
	struct ha_conn *c =
		owner && owner->sockets <= HA_REGISTRAR_PER_PROCESS ? calloc(1, sizeof(*c)) : NULL;

	if (!c) {
		r->crowded++;
		close(fd);
		if (owner)
			ha_owner_hang_up(r->slots, owner);
		return;
	}
	c->watch = (struct ha_watch) { fd, conn_ready };
	c->registrar = r;
	c->owner = owner;
	c->events = EPOLLIN;
	LIST_INSERT_HEAD(&r->conns, c, link);
	r->nconns++;
	if (ha_loop_add(r->loop, &c->watch, EPOLLIN))
		hang_up(c, true);
}

static void admit_socket(struct ha_registrar *r, int fd)
{
	struct ucred peer;

	r->accepted++;
	if (ha_socket_peer(fd, &peer) || !ha_users_allow(r->users, peer.uid)) {
		if (!(r->unauthorized++ & 1023))
			HA_WARN("agent", "user %u may not register; --users names who may",
				(unsigned)peer.uid);
		close(fd);
	} else if (r->nconns >= r->most) {
		if (!(r->crowded++ & 1023))
			HA_WARN("agent", "%u processes are connected already; others are refused",
				r->nconns);
		close(fd);
	} else {
		open_conn(r, fd, &peer);
	}
}

static void listener_ready(struct ha_watch *watch, uint32_t events)
{
	struct ha_registrar *r = (struct ha_registrar *)watch; /* its first member */

	for (int i = 0; i < ACCEPTS; i++) {
		int fd = ha_socket_accept(watch->fd);

		if (fd >= 0) {
			admit_socket(r, fd);
			continue;
		}
		if (fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM || fd == -ENOBUFS) {
			/* It would be ready again at once. */
			HA_WARN("agent", "no descriptor is left for another process; raise the "
					 "limit of open files");
			ha_loop_change(r->loop, watch, 0);
			r->resting = true;
		}
		return;
	}
}

void ha_registrar_tick(struct ha_registrar *r, uint64_t now)
{
	struct ha_conn *next;

	if (r->resting)
		ha_loop_change(r->loop, &r->listener, EPOLLIN);
	r->resting = false;
	for (struct ha_conn *c = LIST_FIRST(&r->conns); c; c = next) {
		next = LIST_NEXT(c, link);
		if (c->stuck_since && now - c->stuck_since > HA_REGISTRAR_TIME_LIMIT_NS)
			hang_up(c, true);
	}
}

int ha_registrar_relisten(struct ha_registrar *r, int fd)
{
	int err;

	if (r->listener.fd >= 0) {
		ha_loop_remove(r->loop, &r->listener);
		close(r->listener.fd);
	}
	r->listener = (struct ha_watch) { fd, listener_ready };
	err = ha_loop_add(r->loop, &r->listener, EPOLLIN);
	if (err) {
		close(fd);
		r->listener.fd = -1;
	}
	return err;
}

int ha_registrar_open(struct ha_registrar *r, struct ha_loop *loop, struct ha_slots *slots,
		      const struct ha_users *users, int fd, unsigned most)
{
	*r = (struct ha_registrar) {
		.listener.fd = -1, .loop = loop, .slots = slots, .users = users, .most = most
	};
	return ha_registrar_relisten(r, fd);
}

void ha_registrar_close(struct ha_registrar *r)
{
	while (!LIST_EMPTY(&r->conns))
		hang_up(LIST_FIRST(&r->conns), false);
	if (r->listener.fd >= 0) {
		ha_loop_remove(r->loop, &r->listener);
		close(r->listener.fd);
	}
	r->listener.fd = -1;
}
