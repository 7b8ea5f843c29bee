/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/socket.h"
#include "tools/job/fault.h"
#include "tools/job/rendezvous.h"

#define HELLO_MAGIC 0x68617266u /* "harf" */
#define FRAME_DATA 1u           /* followed by size bytes */
#define FRAME_ABORT 2u          /* the sender of the frame's rank failed and has said why */
#define FRAME_LOST 3u           /* the rank named in the frame is gone and has said nothing */
#define FRAME_REPORT 4u         /* of all ranks that failed the receiver is to say why */
/* a barrier may take so many times the timeout: ranks verify at different speed */
#define STUCK_FACTOR 5
#define ANSWER_MS 5000 /* for rank 0 to choose; it looks often, unless a plugin's call holds it */
#define END_MS 3000    /* for the rank that says why to do so, and to leave */
#define UNSEEN_MS 500  /* the same, where its end cannot be seen */

/* First words on a connection, from both ends. */
struct hello {
	uint32_t magic;
	uint32_t rank;
	uint32_t ranks;
	uint32_t pad;
	uint64_t job;
};
_Static_assert(sizeof(struct hello) == 24, "hello goes over the wire");

struct frame {
	uint32_t kind;
	uint32_t rank; /* FRAME_ABORT, FRAME_LOST: the culprit */
	uint64_t size;
};
_Static_assert(sizeof(struct frame) == 16, "frame goes over the wire");

struct ha_rendezvous {
	struct ha_place place;
	int *sockets; /* rank 0: of every rank, own -1; others: [0] only */
	int timeout_ms;
	int culprit;  /* -1: nobody failed; this rank: it is to say why */
	bool lost;    /* the culprit vanished */
	bool offered; /* rank 0 knows that this rank failed: its going is no news */
};

/* The host behind a connection may vanish without a FIN: the kernel finds out within ~10 s. */
static const struct ha_keepalive keepalive = { .idle_s = 3, .interval_s = 2, .count = 3 };

/* ---- somebody failed ---- */

static void send_notice(struct ha_rendezvous *r, int to, uint32_t kind, int culprit)
{
	struct frame frame = { .kind = kind, .rank = (uint32_t)culprit };

	if (r->sockets[to] >= 0)
		(void)ha_socket_send(r->sockets[to], &frame, sizeof(frame),
				     ha_monotonic_ms() + 100);
}

/* In rank 0. */
static void send_culprit(struct ha_rendezvous *r, uint32_t kind, int culprit)
{
	for (int i = 1; i < r->place.ranks; i++)
		if (i != culprit)
			send_notice(r, i, kind, culprit);
}

static int record_failure(struct ha_rendezvous *r, int culprit, bool lost)
{
	if (r->culprit >= 0)
		return -ECONNABORTED;
	r->culprit = culprit;
	r->lost = lost;
	ha_fault_clear();
	if (!r->place.rank)
		send_culprit(r, lost ? FRAME_LOST : FRAME_ABORT, culprit);
	if (!r->place.rank && !lost)
		send_notice(r, culprit, FRAME_REPORT, culprit);
	return ha_fault(-ECONNABORTED, "rank %d %s", culprit,
			lost ? "ended before the run did (its process died or its host is gone)"
			     : "failed");
}

/* What a frame that is no data means. */
static int frame_failed(struct ha_rendezvous *r, const struct frame *frame, int from)
{
	int culprit = r->place.rank ? (int)frame->rank : from;

	if (frame->kind == FRAME_ABORT || frame->kind == FRAME_LOST)
		return record_failure(r, culprit, frame->kind == FRAME_LOST);
	if (frame->kind == FRAME_REPORT && r->offered) {
		r->culprit = r->place.rank;
		return -ECONNABORTED;
	}
	return ha_fault(-EPROTO, "rank %d sent something that is no message of this program", from);
}

static int socket_failed(struct ha_rendezvous *r, int rank, int err)
{
	if (err == -ETIMEDOUT)
		return ha_fault(err, "rank %d does not answer (waited %d s)", rank,
				r->timeout_ms * STUCK_FACTOR / 1000);
	return record_failure(r, rank, true);
}

/* One socket, without waiting: is there a frame that ends the run, or the end of the connection? */
static int socket_peek(struct ha_rendezvous *r, int rank)
{
	struct frame frame;
	ssize_t n;

	if (r->sockets[rank] < 0) /* has not joined yet */
		return 0;
	n = recv(r->sockets[rank], &frame, sizeof(frame), MSG_PEEK | MSG_DONTWAIT);
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		return r->offered ? -EPIPE : record_failure(r, rank, true);
	if (n == (ssize_t)sizeof(frame) && frame.kind != FRAME_DATA)
		return frame_failed(r, &frame, rank);
	return 0;
}

int ha_rendezvous_poll(struct ha_rendezvous *r)
{
	int err = 0;

	if (r->culprit >= 0)
		return -ECONNABORTED;
	if (r->place.rank)
		return socket_peek(r, 0);
	for (int i = 1; i < r->place.ranks && !err; i++)
		err = socket_peek(r, i);
	return err;
}

int ha_rendezvous_linger(struct ha_rendezvous *r, int milliseconds)
{
	int64_t deadline = ha_monotonic_ms() + milliseconds;
	int err;

	do {
		err = ha_rendezvous_poll(r);
		if (!err)
			usleep(2000);
	} while (!err && ha_monotonic_ms() < deadline);
	return err;
}

void ha_rendezvous_offer(struct ha_rendezvous *r)
{
	if (!r->place.rank || r->culprit >= 0 || r->sockets[0] < 0)
		return;
	r->offered = true;
	send_notice(r, 0, FRAME_ABORT, r->place.rank);
	(void)ha_rendezvous_linger(r, ANSWER_MS);
}

void ha_rendezvous_abort(struct ha_rendezvous *r)
{
	if (!r || r->place.rank || r->culprit >= 0)
		return;
	r->culprit = 0;
	send_culprit(r, FRAME_ABORT, 0);
}

void ha_rendezvous_follow(struct ha_rendezvous *r)
{
	int from = r->place.rank ? 0 : r->culprit;
	int64_t limit_ms = r->place.rank ? 2 * END_MS : END_MS; /* rank 0 waits itself */

	if (r->lost && !r->culprit)
		usleep(UNSEEN_MS * 1000); /* rank 1 says it, to which there is no connection */
	else if (r->sockets[from] >= 0)
		(void)ha_socket_wait(r->sockets[from], POLLRDHUP, ha_monotonic_ms() + limit_ms);
}

bool ha_rendezvous_reports(const struct ha_rendezvous *r)
{
	if (!r || r->culprit < 0 || r->culprit == r->place.rank)
		return true;
	if (!r->lost || r->place.forked)
		return false;
	return r->place.rank == (r->culprit ? 0 : 1);
}

/* ---- exchanges ---- */

static int frame_send(struct ha_rendezvous *r, int to, const void *data, size_t size)
{
	struct frame frame = { .kind = FRAME_DATA, .size = size };
	int64_t deadline = ha_monotonic_ms() + (int64_t)r->timeout_ms * STUCK_FACTOR;
	int err = ha_socket_send(r->sockets[to], &frame, sizeof(frame), deadline);

	if (!err)
		err = ha_socket_send(r->sockets[to], data, size, deadline);
	return err ? socket_failed(r, to, err) : 0;
}

static int frame_receive(struct ha_rendezvous *r, int from, void *data, size_t size)
{
	struct frame frame;
	int64_t deadline = ha_monotonic_ms() + (int64_t)r->timeout_ms * STUCK_FACTOR;
	int err = ha_socket_receive(r->sockets[from], &frame, sizeof(frame), deadline);

	if (err)
		return socket_failed(r, from, err);
	if (frame.kind != FRAME_DATA || frame.size != size)
		return frame_failed(r, &frame, from);
	err = ha_socket_receive(r->sockets[from], data, size, deadline);
	return err ? socket_failed(r, from, err) : 0;
}

/*
 * Rank 0 waits for all others at once, or the death of a late one would wait for that of an early
 * one.
 */
static int hub_wait(struct ha_rendezvous *r, int rank)
{
	struct pollfd *polls = calloc((size_t)r->place.ranks, sizeof(*polls));
	int64_t deadline = ha_monotonic_ms() + (int64_t)r->timeout_ms * STUCK_FACTOR;
	int err = 0, n = r->place.ranks;

	if (!polls)
		return -ENOMEM;
	while (!err) {
		for (int i = 0; i < n; i++)
			polls[i] = (struct pollfd) { .fd = r->sockets[i], .events = POLLIN };
		(void)poll(polls, (nfds_t)n, 50);
		err = ha_rendezvous_poll(r);
		if (polls[rank].revents)
			break;
		if (!err && ha_monotonic_ms() > deadline)
			err = socket_failed(r, rank, -ETIMEDOUT);
	}
	free(polls);
	return err;
}

int ha_rendezvous_gather(struct ha_rendezvous *r, const void *mine, size_t size, void *all)
{
	int err = 0;

	if (r->culprit >= 0)
		return -ECONNABORTED;
	if (r->place.rank)
		return frame_send(r, 0, mine, size);
	memcpy(all, mine, size);
	for (int i = 1; i < r->place.ranks && !err; i++) {
		err = hub_wait(r, i);
		if (!err)
			err = frame_receive(r, i, (char *)all + (size_t)i * size, size);
	}
	return err;
}

int ha_rendezvous_allgather(struct ha_rendezvous *r, const void *mine, size_t size, void *all)
{
	size_t total = size * (size_t)r->place.ranks;
	int err = ha_rendezvous_gather(r, mine, size, all);

	if (err)
		return err;
	if (r->place.rank)
		return frame_receive(r, 0, all, total);
	for (int i = 1; i < r->place.ranks && !err; i++)
		err = frame_send(r, i, all, total);
	return err;
}

int ha_rendezvous_barrier(struct ha_rendezvous *r)
{
	char mine = 0, *all = malloc((size_t)r->place.ranks);
	int err = all ? ha_rendezvous_allgather(r, &mine, 1, all) : -ENOMEM;

	free(all);
	return err;
}

/* ---- getting together ---- */

static struct hello hello_of(const struct ha_place *place)
{
	return (struct hello) { .magic = HELLO_MAGIC,
				.rank = (uint32_t)place->rank,
				.ranks = (uint32_t)place->ranks,
				.job = place->job };
}

static int address_find(const struct ha_place *place, union ha_sockaddr *address)
{
	struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM }, *found;
	char port[16];
	int err;

	snprintf(port, sizeof(port), "%d", place->port);
	err = getaddrinfo(place->host, port, &hints, &found);
	if (err)
		return ha_fault(-EHOSTUNREACH, "rank 0's host '%s' is unknown: %s", place->host,
				gai_strerror(err));
	memcpy(address, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	return 0;
}

/*
 * Listens on the port on all addresses: the name under which the others know this host may be one
 * of several.
 */
static int listener_open(const struct ha_place *place, int *listener)
{
	union ha_sockaddr any6 = { .in6 = { .sin6_family = AF_INET6,
					    .sin6_port = htons((uint16_t)place->port) } };
	union ha_sockaddr any4 = { .in = { .sin_family = AF_INET,
					   .sin_port = htons((uint16_t)place->port) } };

	*listener = ha_socket_listen(&any6, NULL);
	if (*listener < 0)
		*listener = ha_socket_listen(&any4, NULL);
	if (*listener >= 0)
		return 0;
	return ha_fault(
		*listener,
		"rank 0 cannot listen on port %d: %s (--rendezvous HOST:PORT names another)",
		place->port, strerror(-*listener));
}

/*
 * A connection that does not begin with our hello is dropped; one of our run with a wrong place
 * ends the run.
 */
static int hub_admit(struct ha_rendezvous *r, int fd, int *joined)
{
	struct hello hello, mine = hello_of(&r->place);

	if (ha_socket_receive(fd, &hello, sizeof(hello), ha_monotonic_ms() + 2000) ||
	    hello.magic != HELLO_MAGIC || hello.job != r->place.job) {
		close(fd);
		return 0;
	}
	if (hello.ranks != mine.ranks || hello.rank < 1 || hello.rank >= mine.ranks ||
	    r->sockets[hello.rank] >= 0) {
		close(fd);
		return ha_fault(
			-EPROTO,
			"a process joined as rank %u of %u, which does not fit a run of %u ranks",
			hello.rank, hello.ranks, mine.ranks);
	}
	ha_socket_tune(fd, &keepalive);
	r->sockets[hello.rank] = fd;
	(*joined)++;
	return ha_socket_send(fd, &mine, sizeof(mine), ha_monotonic_ms() + 2000)
		       ? socket_failed(r, (int)hello.rank, -EPIPE)
		       : 0;
}

static int first_missing(const struct ha_rendezvous *r)
{
	for (int i = 1; i < r->place.ranks; i++)
		if (r->sockets[i] < 0)
			return i;
	return -1;
}

static int hub_open(struct ha_rendezvous *r)
{
	int64_t deadline = ha_monotonic_ms() + r->timeout_ms;
	int listener = r->place.listener, joined = 1, err = 0, fd;

	if (listener < 0)
		err = listener_open(&r->place, &listener);
	while (!err && joined < r->place.ranks) {
		if (ha_socket_wait(listener, POLLIN, ha_monotonic_ms() + 100)) {
			err = 0;
			for (int i = 1; i < r->place.ranks && !err; i++)
				err = socket_peek(r, i);
			if (!err && ha_monotonic_ms() > deadline)
				err = ha_fault(-ETIMEDOUT,
					       "%d of %d ranks joined within %d s (started by %s); "
					       "rank %d did not",
					       joined, r->place.ranks, r->timeout_ms / 1000,
					       r->place.launcher, first_missing(r));
			continue;
		}
		fd = ha_socket_accept(listener);
		if (fd >= 0)
			err = hub_admit(r, fd, &joined);
	}
	if (listener >= 0)
		close(listener);
	return err;
}

/* One attempt to reach rank 0. -EAGAIN: not there yet. */
static int spoke_try(struct ha_rendezvous *r, const union ha_sockaddr *address, int64_t deadline)
{
	struct hello hello = hello_of(&r->place), answer;
	int fd = ha_socket_connect(address, &keepalive, deadline), err;

	if (fd == -EMFILE || fd == -ENFILE)
		return ha_fault(fd, "no socket: %s", strerror(-fd));
	if (fd < 0)
		return -EAGAIN;
	err = ha_socket_send(fd, &hello, sizeof(hello), deadline);
	if (!err)
		err = ha_socket_receive(fd, &answer, sizeof(answer), deadline);
	if (err || answer.magic != HELLO_MAGIC || answer.job != hello.job) {
		close(fd); /* somebody else's port, or rank 0 left: the deadline decides */
		return -EAGAIN;
	}
	if (answer.ranks != hello.ranks) {
		close(fd);
		return ha_fault(-EPROTO, "rank 0 runs with %u ranks, this one with %u",
				answer.ranks, hello.ranks);
	}
	r->sockets[0] = fd;
	return 0;
}

static int spoke_open(struct ha_rendezvous *r)
{
	int64_t deadline = ha_monotonic_ms() + r->timeout_ms;
	union ha_sockaddr address;
	int err = address_find(&r->place, &address);

	if (err)
		return err;
	while ((err = spoke_try(r, &address, deadline)) == -EAGAIN && ha_monotonic_ms() < deadline)
		usleep(50000);
	if (err == -EAGAIN)
		return ha_fault(-ETIMEDOUT, "rank 0 does not answer at %s port %d (waited %d s)",
				r->place.host, r->place.port, r->timeout_ms / 1000);
	return err;
}

int ha_rendezvous_open(struct ha_rendezvous **rendezvous, const struct ha_place *place,
		       int timeout_s)
{
	struct ha_rendezvous *r = calloc(1, sizeof(*r));
	int err;

	*rendezvous = r;
	if (!r)
		return -ENOMEM;
	r->place = *place;
	r->culprit = -1;
	r->timeout_ms = timeout_s * 1000;
	r->sockets = malloc((size_t)place->ranks * sizeof(*r->sockets));
	if (!r->sockets)
		return ha_fault(-ENOMEM, "out of memory");
	for (int i = 0; i < place->ranks; i++)
		r->sockets[i] = -1;
	err = place->rank ? spoke_open(r) : hub_open(r);
	return err;
}

void ha_rendezvous_close(struct ha_rendezvous *r)
{
	if (!r)
		return;
	for (int i = 0; r->sockets && i < r->place.ranks; i++)
		if (r->sockets[i] >= 0)
			close(r->sockets[i]);
	free(r->sockets);
	free(r);
}
