/* SPDX-License-Identifier: BSD-3-Clause */
/* A stream over a socket that does what the test says: which events the loop is asked for, what is
 * kept of a message, what ends the stream, and how often a call tries. */
#include "plugin/channel/stream.h"

#include "base/check.h"
#include "base/clock.h"
#include "plugin/ctx.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define TRIES 100

/* Its sends and recvs take and give `piece` bytes at most; 0: nothing, and *_end is returned. */
struct ha_oob_conn {
	int fd, connected;
	size_t piece;
	size_t room;      /* it takes so many more, then */
	ssize_t send_end; /* this */
	char sent[256];
	size_t nsent;
	const char *bytes;
	size_t left;      /* it gives so many more, then */
	ssize_t recv_end; /* this */
	size_t asked;     /* by the last recv */
	unsigned sends, recvs, closes;
};

static ssize_t send_some(struct ha_oob_conn *conn, const void *bytes, size_t size)
{
	size_t n = size < conn->piece ? size : conn->piece;

	conn->sends++;
	n = n < conn->room ? n : conn->room;
	if (!n)
		return conn->send_end;
	CHECK(conn->nsent + n <= sizeof(conn->sent));
	memcpy(conn->sent + conn->nsent, bytes, n);
	conn->nsent += n;
	conn->room -= n;
	return (ssize_t)n;
}

static ssize_t recv_some(struct ha_oob_conn *conn, void *to, size_t size)
{
	size_t n = size < conn->piece ? size : conn->piece;

	conn->recvs++;
	conn->asked = size;
	n = n < conn->left ? n : conn->left;
	if (!n)
		return conn->recv_end;
	memcpy(to, conn->bytes, n);
	conn->bytes += n;
	conn->left -= n;
	return (ssize_t)n;
}

static int fd_of(struct ha_oob_conn *conn)
{
	return conn->fd;
}

static int connected(struct ha_oob_conn *conn)
{
	return conn->connected;
}

static void close_conn(struct ha_oob_conn *conn)
{
	conn->closes++;
}

static const struct ha_oob_ops oob = {
	.connected = connected,
	.send = send_some,
	.recv = recv_some,
	.fd = fd_of,
	.close = close_conn,
};

static struct ha_clock_virtual time_now;
static struct ha_ctx ctx;
static struct ha_oob_conn conn;
static int owner;

static void ignore_events(struct ha_watch *watch, uint32_t events)
{
	(void)watch;
	(void)events;
}

static void prepare(void)
{
	time_now = (struct ha_clock_virtual)HA_CLOCK_VIRTUAL_INIT(5 * HA_NS_PER_S);
	memset(&ctx, 0, sizeof(ctx));
	ctx.clock = &time_now.clock;
	ctx.oob.ops = &oob;
	CHECK_INT(ha_loop_open_wake(&ctx.loop), 0);
	ctx.loop.threaded = true;
	memset(&conn, 0, sizeof(conn));
	conn.fd = eventfd(0, EFD_CLOEXEC);
	CHECK(conn.fd >= 0);
	conn.piece = conn.room = SIZE_MAX;
	conn.send_end = conn.recv_end = -EAGAIN;
}

static struct ha_stream *open_stream(bool connecting)
{
	struct ha_stream *s = NULL;

	prepare();
	CHECK_INT(ha_stream_new(&ctx, &conn, connecting, ignore_events, &owner, &s), 0);
	CHECK(s);
	return s;
}

static void finish(void)
{
	ha_loop_close(&ctx.loop);
	close(conn.fd);
}

static void close_stream(struct ha_stream *s)
{
	/* it is in the loop until it is closed, and no longer */
	CHECK_INT(ha_loop_add(&ctx.loop, &(struct ha_watch) { .fd = conn.fd }, EPOLLIN), -EEXIST);
	ha_stream_close(s);
	CHECK_INT(conn.closes, 1);
	CHECK_INT(ha_loop_add(&ctx.loop, &(struct ha_watch) { .fd = conn.fd }, EPOLLIN), 0);
	finish();
}

static struct ha_msg_bye compose_bye(uint64_t done)
{
	return (struct ha_msg_bye) { .header = { HA_MSG_MAGIC, HA_WIRE_VERSION, HA_MSG_BYE,
						 sizeof(struct ha_msg_bye), 0 },
				     .done = done };
}

static void new_streams(void)
{
	struct ha_stream *s = open_stream(false);

	CHECK_INT(s->watch.events, EPOLLIN);
	CHECK_INT(s->watch.fd, conn.fd);
	CHECK(s->watch.ready == ignore_events);
	CHECK(s->owner == &owner);
	CHECK(!ha_stream_busy(s));
	CHECK_INT(ha_stream_received(s), 0);
	close_stream(s);
	s = open_stream(true);
	CHECK_INT(s->watch.events, EPOLLOUT);
	conn.connected = -EAGAIN;
	CHECK_INT(ha_stream_connected(s), -EAGAIN);
	CHECK_INT(s->watch.events, EPOLLOUT);
	conn.connected = -ECONNREFUSED;
	CHECK_INT(ha_stream_connected(s), -ECONNREFUSED);
	conn.connected = 0;
	CHECK_INT(ha_stream_connected(s), 0);
	CHECK_INT(s->watch.events, EPOLLIN);
	close_stream(s);
	ha_stream_close(NULL);
}

/* The loop does not take the socket: the connection is closed. */
static void no_stream(void)
{
	struct ha_stream *s = (struct ha_stream *)&owner;
	int fd;

	prepare();
	fd = conn.fd;
	conn.fd = 1 << 30; /* nobody's */
	CHECK_INT(ha_stream_new(&ctx, &conn, false, ignore_events, &owner, &s), -EBADF);
	CHECK(!s);
	CHECK_INT(conn.closes, 1);
	conn.fd = fd;
	finish();
}

/* Whatever the socket takes at once, the bytes go out in order, and the loop is asked to say when
 * there is room only while something is kept. */
static void put_in_parts(void)
{
	struct ha_msg_bye m[2] = { compose_bye(11), compose_bye(12) };

	for (size_t room = 0; room <= sizeof(m); room++) {
		struct ha_stream *s = open_stream(false);
		bool all = room == sizeof(m);

		conn.room = room;
		conn.piece = 7;
		CHECK_INT(ha_stream_put_all(s, m, sizeof(m)), all ? 0 : -EAGAIN);
		CHECK_INT(conn.nsent, room);
		CHECK_INT(ha_stream_busy(s), !all);
		CHECK_INT(s->watch.events, all ? EPOLLIN : EPOLLIN | EPOLLOUT);
		CHECK_INT(ha_stream_put(s, &m[0]), all ? -EAGAIN : -EBUSY);
		if (!all) {
			CHECK_INT(ha_stream_flush(s), -EAGAIN);
			conn.room = 1;
			CHECK_INT(ha_stream_flush(s), room + 1 == sizeof(m) ? 0 : -EAGAIN);
			conn.room = SIZE_MAX;
			CHECK_INT(ha_stream_flush(s), 0);
			CHECK_INT(s->watch.events, EPOLLIN);
			CHECK(!ha_stream_busy(s));
			CHECK_INT(conn.nsent, sizeof(m));
		}
		CHECK(!memcmp(conn.sent, m, sizeof(m)));
		close_stream(s);
	}
}

/* A socket that takes no byte without an error is full; one that has ended says so, also in the
 * middle of a message. */
static void put_into_nothing(void)
{
	struct ha_msg_bye m = compose_bye(11);
	struct ha_stream *s = open_stream(false);

	conn.room = 5;
	conn.send_end = 0;
	CHECK_INT(ha_stream_put(s, &m), -EAGAIN);
	CHECK_INT(conn.sends, 2);
	CHECK_INT(ha_stream_flush(s), -EAGAIN);
	CHECK_INT(conn.sends, 3);
	conn.send_end = -ECONNRESET;
	CHECK_INT(ha_stream_flush(s), -ECONNRESET);
	close_stream(s);
	for (size_t room = 0; room < 6; room += 5) {
		s = open_stream(false);
		conn.room = room;
		conn.send_end = -EPIPE;
		CHECK_INT(ha_stream_put(s, &m), -EPIPE);
		CHECK_INT(conn.nsent, room);
		CHECK(!ha_stream_busy(s));
		close_stream(s);
	}
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MALLOC_FAILS false /* it ends the program instead */
#else
#define MALLOC_FAILS true
#endif

/* No memory for what the socket has not taken: nothing more can follow the part of a message that
 * is out; but where nothing is, something can. */
static void put_without_memory(void)
{
	struct ha_msg_bye m = compose_bye(11);

	for (size_t room = 0; room < 6 && MALLOC_FAILS; room += 5) {
		struct ha_stream *s = open_stream(false);

		conn.room = room;
		CHECK_INT(ha_stream_put_all(s, &m, SIZE_MAX / 2), -ENOMEM);
		CHECK_INT(ha_stream_busy(s), room > 0);
		conn.room = SIZE_MAX;
		CHECK_INT(ha_stream_put(s, &m), room ? -EBUSY : 0);
		CHECK_INT(ha_stream_flush(s), 0);
		CHECK_INT(conn.nsent, room ? room : sizeof(m));
		close_stream(s);
	}
}

/* The next message comes in these pieces; nothing of what follows is asked for. */
static void get_one_in_parts(struct ha_stream *s, size_t piece, uint64_t number)
{
	const size_t head = sizeof(struct ha_msg_header), all = sizeof(struct ha_msg_bye);
	const union ha_message *got;

	for (size_t given = 0; given < all; given += conn.left) {
		CHECK_INT(ha_stream_get(s, &got), -EAGAIN);
		CHECK_INT(ha_stream_received(s), given);
		CHECK_INT(conn.asked, (given < head ? head : all) - given);
		conn.left = piece < all - given ? piece : all - given;
	}
	CHECK_INT(ha_stream_get(s, &got), 0);
	CHECK_INT(got->bye.done, number);
	CHECK_INT(ha_stream_received(s), 0);
	CHECK_INT(conn.left, 0);
}

static void get_in_parts(void)
{
	struct ha_msg_bye m[3] = { compose_bye(11), compose_bye(12), compose_bye(13) };

	for (size_t piece = 1; piece <= sizeof(m[0]); piece++) {
		struct ha_stream *s = open_stream(false);
		const union ha_message *got;

		conn.bytes = (const char *)m;
		conn.piece = piece;
		get_one_in_parts(s, piece, 11);
		get_one_in_parts(s, piece, 12);
		conn.left = sizeof(m[2]);
		CHECK_INT(ha_stream_get(s, &got), 0);
		CHECK_INT(got->bye.done, 13);
		close_stream(s);
	}
}

static void count_message(void *arg, const union ha_message *m)
{
	unsigned *n = arg;

	CHECK_INT(m->bye.done, 12 + *n);
	++*n;
}

/* From the bootstrap, a message at a time, to all that comes. */
static void get_and_receive(void)
{
	struct ha_msg_bye m[3] = { compose_bye(11), compose_bye(12), compose_bye(13) };
	struct ha_stream *s = open_stream(false);
	const union ha_message *got;
	unsigned n = 0;

	conn.bytes = (const char *)m;
	conn.left = sizeof(m) - 1;
	CHECK_INT(ha_stream_get(s, &got), 0);
	CHECK_INT(ha_stream_receive_all(s, count_message, &n), -EAGAIN);
	CHECK_INT(n, 1);
	CHECK_INT(ha_stream_received(s), sizeof(m[0]) - 1);
	conn.left = 1;
	CHECK_INT(ha_stream_receive_all(s, count_message, &n), -EAGAIN);
	CHECK_INT(n, 2);
	CHECK_INT(ha_stream_received(s), 0);
	conn.recv_end = 0;
	CHECK_INT(ha_stream_receive_all(s, count_message, &n), -EPIPE);
	conn.recv_end = -ECONNRESET;
	CHECK_INT(ha_stream_receive_all(s, count_message, &n), -ECONNRESET);
	close_stream(s);
}

/* Garbage is known by its header, before the rest is there, or by the whole. */
static void get_garbage(void)
{
	const union ha_message *got;
	struct ha_msg_bye m = compose_bye(11);
	struct ha_msg_cause cause = { .rail = { .header = { HA_MSG_MAGIC, HA_WIRE_VERSION,
							    HA_MSG_ABORT, sizeof(cause), 0 },
						.rail = HA_MAX_RAILS } };
	struct ha_stream *s = open_stream(false);

	m.header.magic++;
	conn.bytes = (const char *)&m;
	conn.left = sizeof(m.header);
	CHECK_INT(ha_stream_get(s, &got), -EPROTO);
	close_stream(s);
	s = open_stream(false);
	conn.bytes = (const char *)&cause;
	conn.left = sizeof(cause);
	CHECK_INT(ha_stream_get(s, &got), -EPROTO);
	close_stream(s);
	s = open_stream(false);
	conn.bytes = (const char *)&m;
	conn.left = sizeof(m.header);
	CHECK_INT(ha_stream_receive_all(s, count_message, NULL), -EPROTO);
	close_stream(s);
	s = open_stream(false);
	conn.recv_end = 0;
	CHECK_INT(ha_stream_get(s, &got), -EPIPE);
	conn.recv_end = -ETIMEDOUT;
	CHECK_INT(ha_stream_get(s, &got), -ETIMEDOUT);
	close_stream(s);
}

static struct ha_stream *open_leaving(ssize_t send_end)
{
	static const struct ha_msg_bye begun = { .header = { HA_MSG_MAGIC, HA_WIRE_VERSION,
							     HA_MSG_BYE, sizeof(begun), 0 },
						 .done = 11 };
	struct ha_stream *s = open_stream(false);

	conn.room = 5;
	CHECK_INT(ha_stream_put(s, &begun), -EAGAIN);
	conn.send_end = send_end;
	conn.sends = 0;
	ha_loop_remove(&ctx.loop, &s->watch); /* as who closes a connection does */
	s->watch.fd = -1;
	return s;
}

static unsigned count_wakes(void)
{
	eventfd_t sum = 0;

	if (eventfd_read(ctx.loop.wake.fd, &sum))
		CHECK_INT(errno, EAGAIN);
	return (unsigned)sum;
}

/* The last message comes behind what is half out, for which nobody waits long. */
static void leave_behind_the_rest(void)
{
	struct ha_msg_bye m = compose_bye(12);
	struct ha_stream *s = open_leaving(-EAGAIN);

	conn.room = SIZE_MAX;
	ha_stream_leave(s, &m);
	CHECK_INT(conn.nsent, 2 * sizeof(m));
	CHECK(!memcmp(conn.sent + sizeof(m), &m, sizeof(m)));
	CHECK_INT(conn.recvs, 1);
	CHECK(LIST_FIRST(&ctx.leaving) == s);
	CHECK_INT(s->watch.events, EPOLLIN);
	CHECK_INT(s->watch.fd, conn.fd);
	CHECK_INT(s->leave_at, 6 * HA_NS_PER_S);
	CHECK_INT(count_wakes(), 1);
	ha_stream_part(s);
	CHECK(LIST_EMPTY(&ctx.leaving));
	CHECK_INT(conn.closes, 1);
	CHECK_INT(conn.recvs, 2);
	finish();

	s = open_leaving(-EAGAIN);
	ha_stream_leave(s, &m);
	CHECK_INT(conn.sends, TRIES);
	CHECK_INT(conn.nsent, 5);
	ha_stream_part(s);
	finish();

	s = open_leaving(-EPIPE);
	ha_stream_leave(s, &m);
	CHECK_INT(conn.sends, 1);
	ha_stream_part(s);
	finish();
}

/* The loop does not take it: it is closed at once. */
static void cannot_leave(void)
{
	struct ha_msg_bye m = compose_bye(12);
	struct ha_stream *s = open_stream(false);

	/* still in the loop */
	ha_stream_leave(s, &m);
	CHECK(LIST_EMPTY(&ctx.leaving));
	CHECK_INT(conn.closes, 1);
	CHECK_INT(conn.nsent, sizeof(m));
	CHECK_INT(count_wakes(), 0);
	finish();
}

/* Its socket is ready: what is kept goes on, what comes is thrown away; its end, or an error, ends
 * the wait. */
static void ready_while_leaving(void)
{
	static const struct {
		ssize_t send_end, recv_end;
		bool over;
	} cases[] = { { -EAGAIN, -EAGAIN, false },
		      { 0, -EAGAIN, false },
		      { -EPIPE, -EAGAIN, true },
		      { -EAGAIN, 0, true },
		      { -EAGAIN, -ECONNRESET, true } };
	struct ha_msg_bye m = compose_bye(12);
	char thrown_away[5000] = { 0 };

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ha_stream *s = open_leaving(-EAGAIN);

		ha_stream_leave(s, &m);
		conn.piece = i % 2 ? 1 : 1000;
		conn.bytes = thrown_away;
		conn.left = sizeof(thrown_away);
		conn.send_end = cases[i].send_end;
		conn.recv_end = cases[i].recv_end;
		s->watch.ready(&s->watch, EPOLLIN);
		CHECK_INT(s->leave_at, cases[i].over ? 0 : 6 * HA_NS_PER_S);
		CHECK_INT(conn.left, cases[i].send_end == -EPIPE ? sizeof(thrown_away) : 0);
		ha_stream_part(s);
		finish();
	}
}

/* Only streams without descriptors are read in every round. */
static void rounds_read(void)
{
	struct ha_msg_bye m = compose_bye(12);
	struct ha_stream *s = open_leaving(-EAGAIN);

	ha_stream_leave(s, &m);
	conn.recvs = 0;
	conn.recv_end = 0;
	CHECK_INT(ha_streams_leaving(&ctx, time_now.now), 6 * HA_NS_PER_S);
	CHECK_INT(conn.recvs, 0);
	ctx.oob.soft = true;
	CHECK_INT(ha_streams_leaving(&ctx, time_now.now), UINT64_MAX);
	CHECK(LIST_EMPTY(&ctx.leaving));
	finish();
}

/* What a stream had is given back with it. */
static void gives_back(void)
{
	struct ha_msg_bye m = compose_bye(11);
	size_t used = 0;

	for (unsigned i = 0; i < 20; i++) {
		struct ha_stream *s = open_stream(false);

		conn.room = 5;
		CHECK_INT(ha_stream_put(s, &m), -EAGAIN);
		CHECK_INT(ha_stream_flush(s), -EAGAIN);
		conn.room = SIZE_MAX;
		CHECK_INT(ha_stream_flush(s), 0);
		conn.room = 5;
		CHECK_INT(ha_stream_put(s, &m), -EAGAIN);
		close_stream(s);
		no_stream();
		if (i == 9) /* malloc's own lists are full */
			used = mallinfo2().uordblks;
	}
	CHECK_INT(mallinfo2().uordblks, used);
}

int main(void)
{
	new_streams();
	no_stream();
	gives_back();
	put_in_parts();
	put_into_nothing();
	put_without_memory();
	get_in_parts();
	get_and_receive();
	get_garbage();
	leave_behind_the_rest();
	cannot_leave();
	ready_while_leaving();
	rounds_read();
	return 0;
}
