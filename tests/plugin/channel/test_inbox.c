/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a peer has sent on a socket waits for the driver: in order, a limited number, and the news
 * that it has ended the connection in any case, since that is sent once.
 */
#include "base/check.h"
#include "base/clock.h"
#include "plugin/bundle.h"
#include "plugin/channel/inbox.h"
#include "plugin/channel/peer.h"
#include "plugin/channel/stream.h"
#include "plugin/ctx.h"
#include "tests/plugin/ends.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#define KEPT 64

static struct ha_ctx ctx = { .clock = &ha_clock_live };
static unsigned ntaken;
static union ha_message taken[KEPT + 2];

static void record_message(struct ha_bundle *b, const union ha_message *m)
{
	(void)b;
	CHECK(ntaken < sizeof(taken) / sizeof(taken[0]));
	taken[ntaken++] = *m;
}

static struct ha_bundle *make_bundle(void)
{
	struct ha_send *s = new_send();

	CHECK(s);
	s->b.ctx = &ctx;
	s->b.schedule->due = UINT64_MAX;
	STAILQ_INIT(&s->b.link->inbox);
	ntaken = 0;
	return &s->b;
}

static void put_message(struct ha_bundle *b, enum ha_msg_type type, uint32_t epoch)
{
	union ha_message m = { .cause = { .rail = { .header = { HA_MSG_MAGIC, 1, (uint16_t)type,
								sizeof(m.cause), 0 },
						    .epoch = epoch },
					  .error = 7 } };

	ha_inbox_put(b, &m);
	memset(&m, 0x55, sizeof(m)); /* a copy was made */
}

static void in_order(void)
{
	struct ha_bundle *b = make_bundle();

	for (uint32_t i = 0; i < 3; i++)
		put_message(b, HA_MSG_RAIL_DOWN, i);
	CHECK_INT(b->schedule->due, 0); /* the driver looks at once */
	ha_inbox_read(b, record_message);
	CHECK_INT(ntaken, 3);
	for (uint32_t i = 0; i < 3; i++) {
		CHECK_INT(taken[i].rail.epoch, i);
		CHECK_INT(taken[i].cause.error, 7);
	}
	ha_inbox_read(b, record_message); /* once */
	CHECK_INT(ntaken, 3);
	free(b);
}

/* What has been read, or dropped, is given back. */
static void gives_back(void)
{
	struct ha_bundle *b = make_bundle();
	size_t used = 0;

	for (unsigned i = 0; i < 20; i++) {
		ntaken = 0;
		put_message(b, HA_MSG_RAIL_DOWN, i);
		ha_inbox_read(b, record_message);
		put_message(b, HA_MSG_RAIL_DOWN, i);
		ha_inbox_drop(b);
		if (i == 9) /* malloc's own lists are full */
			used = mallinfo2().uordblks;
	}
	CHECK_INT(mallinfo2().uordblks, used);
	free(b);
}

/* More than that nobody could mean. ABORT still gets in, once. */
static void not_too_many(void)
{
	struct ha_bundle *b = make_bundle();

	for (uint32_t i = 0; i < KEPT + 3; i++)
		put_message(b, HA_MSG_RAIL_DOWN, i);
	put_message(b, HA_MSG_ABORT, 1000);
	put_message(b, HA_MSG_ABORT, 1001);
	ha_inbox_read(b, record_message);
	CHECK_INT(ntaken, KEPT + 1);
	CHECK_INT(taken[KEPT - 1].rail.epoch, KEPT - 1);
	CHECK_INT(taken[KEPT].header.type, HA_MSG_ABORT);
	CHECK_INT(taken[KEPT].rail.epoch, 1000);
	put_message(b, HA_MSG_RAIL_DOWN, 5); /* there is room again */
	put_message(b, HA_MSG_RAIL_DOWN, 6);
	ha_inbox_drop(b); /* the connection ends */
	CHECK_INT(b->link->inbox_count, 0);
	ha_inbox_read(b, record_message);
	CHECK_INT(ntaken, KEPT + 1);
	free(b);
}

/* ---- a socket that takes nothing ---- */

static size_t accepts; /* bytes that the socket takes at once */
static char sent[256];
static size_t nsent;

static ssize_t take_some(struct ha_oob_conn *conn, const void *data, size_t size)
{
	size_t n = size < accepts ? size : accepts;

	(void)conn;
	CHECK(nsent + n <= sizeof(sent));
	memcpy(sent + nsent, data, n);
	nsent += n;
	return (ssize_t)n;
}

/* It is full without saying so: what it has not taken is kept, and sent when it takes more. */
static void nothing_is_taken(void)
{
	static const struct ha_oob_ops oob = { .send = take_some };
	struct ha_ctx own = { .clock = &ha_clock_live, .oob.ops = &oob, .loop = { .fd = -1 } };
	struct ha_stream s = { .ctx = &own };
	struct ha_msg_bye m = { .header = { HA_MSG_MAGIC, 1, HA_MSG_BYE, sizeof(m), 0 },
				.done = 12 };

	CHECK_INT(ha_stream_put(&s, &m), -EAGAIN);
	CHECK(ha_stream_busy(&s));
	CHECK_INT(ha_stream_put(&s, &m), -EBUSY); /* not in the middle of another */
	CHECK_INT(ha_stream_flush(&s), -EAGAIN);
	accepts = 7;
	CHECK_INT(ha_stream_flush(&s), 0);
	CHECK(!ha_stream_busy(&s));
	CHECK_INT(nsent, sizeof(m));
	CHECK(!memcmp(sent, &m, sizeof(m)));
	free(s.out);
}

/* ---- what a socket brings ---- */

/* A socket that has these bytes, and then this result; a send returns `full`. */
struct ha_oob_conn {
	unsigned char bytes[512];
	size_t have, at;
	ssize_t then, full;
	unsigned sends, recvs;
};

static ssize_t refuse_bytes(struct ha_oob_conn *conn, const void *bytes, size_t size)
{
	(void)bytes;
	(void)size;
	conn->sends++;
	return conn->full;
}

static ssize_t give_bytes(struct ha_oob_conn *conn, void *to, size_t size)
{
	size_t n = conn->have - conn->at < size ? conn->have - conn->at : size;

	conn->recvs++;
	memcpy(to, conn->bytes + conn->at, n);
	conn->at += n;
	return n ? (ssize_t)n : conn->then;
}

static const struct ha_oob_ops scripted = { .send = refuse_bytes, .recv = give_bytes };

/* A connection with a socket. */
struct line {
	struct ha_oob_conn conn;
	struct ha_stream stream;
	struct ha_bundle *b;
};

static void open_line(struct line *l, uint64_t ring)
{
	memset(l, 0, sizeof(*l));
	l->b = make_bundle();
	l->b->ring = (void *)(uintptr_t)ring;
	l->b->link->stream = &l->stream;
	l->conn.then = l->conn.full = -EAGAIN;
	l->stream = (struct ha_stream) {
		.ctx = &ctx, .conn = &l->conn, .owner = l->b, .watch = { .fd = -1 }
	};
	ctx.oob.ops = &scripted;
	ctx.loop.fd = -1;
	LIST_INSERT_HEAD(&ctx.bundles, l->b, entry);
	ha_peer_join(l->b);
	ctx.round.due = UINT64_MAX;
}

static void close_line(struct line *l)
{
	LIST_REMOVE(l->b, entry);
	ha_peer_leave(l->b);
	ha_inbox_drop(l->b);
	free(l->b);
}

static void bring(struct line *l, const void *message)
{
	const struct ha_msg_header *header = message;

	CHECK(l->conn.have + header->length <= sizeof(l->conn.bytes));
	memcpy(l->conn.bytes + l->conn.have, message, header->length);
	l->conn.have += header->length;
}

static void bring_rail_ack(struct line *l, uint32_t epoch)
{
	struct ha_msg_rail m = { .header = { HA_MSG_MAGIC, 1, HA_MSG_RAIL_ACK, sizeof(m), 0 },
				 .epoch = epoch };

	bring(l, &m);
}

static void bring_bye(struct line *l, uint64_t done)
{
	struct ha_msg_bye m = { .header = { HA_MSG_MAGIC, 1, HA_MSG_BYE, sizeof(m), 0 },
				.done = done };

	bring(l, &m);
}

static void bring_for(struct line *l, uint64_t ring)
{
	struct ha_msg_for m = { .header = { HA_MSG_MAGIC, 1, HA_MSG_FOR, sizeof(m), 0 },
				.ring = ring };

	bring(l, &m);
}

/* The driver is asked for at once, or not. */
static void check_due(const struct line *l, bool now)
{
	CHECK_INT(l->b->schedule->due, now ? 0 : UINT64_MAX);
	CHECK_INT(ctx.round.due, now ? 0 : UINT64_MAX);
}

/* The epochs of the messages in a connection's inbox. */
static void check_inbox(struct line *l, unsigned n, uint32_t first)
{
	ntaken = 0;
	ha_inbox_read(l->b, record_message);
	CHECK_INT(ntaken, n);
	for (unsigned i = 0; i < n; i++) {
		CHECK_INT(taken[i].header.type, HA_MSG_RAIL_ACK);
		CHECK_INT(taken[i].rail.epoch, first + i);
	}
}

/* What is about a rail waits; what belongs to the bootstrap is late; BYE is noted, once. */
static void socket_is_read(void)
{
	struct ha_msg_ready ready = { { HA_MSG_MAGIC, 1, HA_MSG_READY, sizeof(ready), 0 }, 7 };
	struct line l;

	open_line(&l, 0x10000);
	ha_inbox_ready(&l.stream.watch, 0);
	check_due(&l, false);
	bring(&l, &ready);
	ha_inbox_ready(&l.stream.watch, 0);
	check_due(&l, false);
	bring_rail_ack(&l, 1);
	bring_rail_ack(&l, 2);
	ha_inbox_ready(&l.stream.watch, 0);
	check_due(&l, true);
	check_inbox(&l, 2, 1);
	l.b->schedule->due = ctx.round.due = UINT64_MAX;
	CHECK(!l.b->link->bye);
	bring_bye(&l, 5);
	ha_inbox_ready(&l.stream.watch, 0);
	check_due(&l, true);
	CHECK(l.b->link->bye);
	CHECK_INT(l.b->link->bye_done, 5);
	l.b->schedule->due = ctx.round.due = UINT64_MAX;
	bring_bye(&l, 6);
	ha_inbox_ready(&l.stream.watch, 0);
	check_due(&l, false);
	CHECK_INT(l.b->link->bye_done, 5);
	CHECK_INT(l.b->link->stream_error, 0);
	close_line(&l);
}

/* One message for another connection, and the next one is for this one again. */
static void read_for_another(void)
{
	struct line l, other;

	open_line(&other, 0x10008);
	open_line(&l, 0x10000);
	l.b->terms.flags = HA_FLAG_BATCHES;
	bring_for(&l, 0x10008);
	bring_rail_ack(&l, 1);
	bring_rail_ack(&l, 2);
	bring_for(&l, 0x10010); /* nobody's */
	bring_rail_ack(&l, 3);
	bring_for(&l, 0x10008);
	bring_bye(&l, 4);
	ha_inbox_ready(&l.stream.watch, 0);
	CHECK(!l.b->link->bye && !other.b->link->bye);
	CHECK_INT(l.b->link->for_another, 0);
	check_inbox(&other, 1, 1);
	check_inbox(&l, 1, 2);
	l.b->terms.flags = 0; /* and not at all where it was not agreed */
	bring_for(&l, 0x10008);
	bring_rail_ack(&l, 5);
	bring_rail_ack(&l, 6);
	ha_inbox_ready(&l.stream.watch, 0);
	check_inbox(&other, 0, 0);
	check_inbox(&l, 1, 6);
	close_line(&l);
	close_line(&other);
}

static void check_end(ssize_t then, int err)
{
	struct line l;

	open_line(&l, 0x10000);
	bring_rail_ack(&l, 1);
	l.conn.then = then;
	ha_inbox_ready(&l.stream.watch, 0);
	CHECK_INT(l.b->link->stream_error, err);
	check_due(&l, true);
	check_inbox(&l, 1, 1); /* what came before the end counts */
	l.b->schedule->due = ctx.round.due = UINT64_MAX;
	l.conn.recvs = 0;
	ha_inbox_ready(&l.stream.watch, 0); /* nobody has acted on it yet */
	CHECK_INT(l.conn.recvs, 0);
	CHECK_INT(l.b->link->stream_error, err);
	check_due(&l, false);
	l.b->link->stream_error = 0;
	l.stream.read_stopped = true;
	ha_inbox_ready(&l.stream.watch, 0);
	CHECK_INT(l.conn.recvs, 0);
	CHECK_INT(l.conn.sends, 0);
	close_line(&l);
}

/* What waits goes out first; a socket that takes nothing is read all the same, one that has ended
 * is not. */
static void written_before_read(void)
{
	static const int ends[] = { -EAGAIN, -EPIPE };

	for (unsigned i = 0; i < 2; i++) {
		uint8_t rest[3] = { 0 };
		struct line l;

		open_line(&l, 0x10000);
		bring_rail_ack(&l, 1);
		l.stream.out = rest;
		l.stream.out_len = sizeof(rest);
		l.conn.full = ends[i];
		ha_inbox_ready(&l.stream.watch, 0);
		CHECK_INT(l.conn.sends, 1);
		CHECK_INT(l.b->link->stream_error, i ? -EPIPE : 0);
		check_due(&l, true);
		check_inbox(&l, i ? 0 : 1, 1);
		close_line(&l);
	}
}

/* Every connection that has a socket. */
static void all_are_asked(void)
{
	struct line l[3];

	for (unsigned i = 0; i < 3; i++) {
		open_line(&l[i], 0x10000 + 8 * i);
		bring_rail_ack(&l[i], i);
	}
	l[1].b->link->stream = NULL;
	ha_inboxes_poll(&ctx);
	for (unsigned i = 0; i < 3; i++)
		check_inbox(&l[i], i == 1 ? 0 : 1, i);
	for (unsigned i = 0; i < 3; i++)
		close_line(&l[i]);
}

int main(void)
{
	in_order();
	gives_back();
	not_too_many();
	nothing_is_taken();
	socket_is_read();
	read_for_another();
	check_end(0, -EPIPE);
	check_end(-ECONNRESET, -ECONNRESET);
	written_before_read();
	all_are_asked();
	return 0;
}
