/* SPDX-License-Identifier: BSD-3-Clause */
/* What a socket does not take at once is kept, in order and once; a stream that is closed stays
 * until its BYE message has arrived, and no longer than a second. */
#include "base/check.h"
#include "plugin/bundle.h"
#include "plugin/channel/link.h"
#include "plugin/channel/stream.h"
#include "plugin/ctx.h"
#include "tests/base/lines.h"
#include "tests/plugin/dummy.h"

#include <errno.h>
#include <string.h>

static struct world w;
static struct ha_listen *listen[3];
static struct ha_send *send[3];
static struct ha_recv *recv[3];

static void open_connections(void)
{
	world_prepare(&w);
	w.config.enable_backup = true;
	strcpy(w.config.ib_hca, "=dummy0"); /* no standby: nothing else is sent */
	lines_catch();
	CHECK_INT(world_open_over(&w, NULL, NULL), 0);
	for (int i = 0; i < 3; i++)
		world_connect(&w, &listen[i], &send[i], &recv[i]);
}

static void close_connections(void)
{
	for (int i = 0; i < 3; i++) {
		if (send[i])
			ha_close_send(send[i]);
		if (recv[i])
			ha_close_recv(recv[i]);
		ha_close_listen(listen[i]);
	}
	world_close(&w);
}

static uint64_t close_sender(int i)
{
	const struct ha_stream *leaving;

	ha_close_send(send[i]);
	send[i] = NULL;
	leaving = LIST_FIRST(&w.b->leaving);
	CHECK(leaving);
	CHECK_INT(leaving->leave_at, w.clock.now + HA_NS_PER_S);
	return leaving->leave_at;
}

static unsigned count_leaving(const struct ha_ctx *ctx)
{
	const struct ha_stream *s;
	unsigned n = 0;

	LIST_FOREACH(s, &ctx->leaving, leaving)
		n++;
	return n;
}

/* Nobody reads at the other end: each waits for its own second. */
static void leaves_after_a_second(void)
{
	uint64_t at[3];

	open_connections();
	for (int i = 0; i < 3; i++) {
		at[i] = close_sender(i);
		w.clock.now += 100 * HA_NS_PER_MS;
	}
	CHECK_INT(count_leaving(w.b), 3);
	CHECK_INT(ha_streams_leaving(w.b, at[0] - 1), at[0]);
	CHECK_INT(count_leaving(w.b), 3);
	CHECK_INT(ha_streams_leaving(w.b, at[0]), at[1]);
	CHECK_INT(count_leaving(w.b), 2);
	CHECK_INT(ha_streams_leaving(w.b, at[2]), UINT64_MAX);
	CHECK_INT(count_leaving(w.b), 0);
	close_connections();
}

/* The peer has ended the stream: nothing is left to wait for. */
static void leaves_behind_the_peer(void)
{
	uint64_t first;

	open_connections();
	first = close_sender(0);
	close_sender(1);
	w.clock.now += HA_NS_PER_MS;
	ha_close_recv(recv[1]);
	recv[1] = NULL;
	CHECK_INT(count_leaving(w.a), 1);
	ha_stream_part(LIST_FIRST(&w.a->leaving));
	CHECK_INT(count_leaving(w.a), 0);
	CHECK_INT(ha_streams_leaving(w.b, w.clock.now), first);
	CHECK_INT(count_leaving(w.b), 1);
	/* and one that ends before its turn leaves the others in the list */
	ha_stream_part(LIST_FIRST(&w.b->leaving));
	CHECK_INT(count_leaving(w.b), 0);
	close_connections();
}

static struct ha_msg_cause compose_abort(uint16_t number)
{
	return (struct ha_msg_cause) {
		.rail = { .header = { HA_MSG_MAGIC, HA_WIRE_VERSION, HA_MSG_ABORT,
				      sizeof(struct ha_msg_cause), 0 },
			  .nonce = number },
	};
}

static struct {
	unsigned n;
	uint64_t number[8];
} taken;

static void record_message(void *arg, const union ha_message *m)
{
	CHECK(arg == &taken);
	CHECK(taken.n < 8);
	CHECK(m->header.type == HA_MSG_ABORT || m->header.type == HA_MSG_BYE);
	taken.number[taken.n++] = m->rail.nonce;
}

/* What arrives at the receiver's end; -EAGAIN: nothing more now. */
static void expect_messages(unsigned n, uint64_t first)
{
	memset(&taken, 0, sizeof(taken));
	CHECK_INT(ha_stream_receive_all(recv[0]->b.link->stream, record_message, &taken), -EAGAIN);
	CHECK_INT(taken.n, n);
	for (unsigned i = 0; i < n; i++)
		CHECK_INT(taken.number[i], first + i);
}

static void kept_until_there_is_room(void)
{
	struct ha_msg_cause two[2] = { compose_abort(3), compose_abort(4) }, one = compose_abort(5);
	struct ha_stream *s;

	open_connections();
	s = send[0]->b.link->stream;
	CHECK(!ha_stream_busy(s));
	w.net.stall = 1; /* no room at all */
	CHECK_INT(ha_stream_put_all(s, two, sizeof(two)), -EAGAIN);
	CHECK(ha_stream_busy(s));
	CHECK_INT(ha_stream_put(s, &one), -EBUSY);
	CHECK_INT(ha_stream_flush(s), -EAGAIN);
	CHECK(ha_stream_busy(s));
	w.net.stall = 0;
	expect_messages(0, 0);
	CHECK_INT(ha_stream_flush(s), 0);
	CHECK(!ha_stream_busy(s));
	CHECK_INT(ha_stream_put(s, &one), 0);
	expect_messages(3, 3);
	close_connections();
}

/* Room for a part of it each time. */
static void kept_in_part(void)
{
	struct ha_msg_cause two[2] = { compose_abort(7), compose_abort(8) };
	struct ha_stream *s;
	int err;

	for (unsigned piece = 1; piece < sizeof(two); piece += 5) {
		open_connections();
		s = send[0]->b.link->stream;
		w.net.piece = piece;
		w.net.stall = 3;
		err = ha_stream_put_all(s, two, sizeof(two));
		CHECK(!err || err == -EAGAIN);
		CHECK(ha_stream_busy(s) == (err != 0));
		for (int i = 0; i < 1000 && ha_stream_flush(s); i++)
			;
		CHECK(!ha_stream_busy(s));
		w.net.stall = 0;
		expect_messages(2, 7);
		close_connections();
	}
}

/* An unsound header, and a message that is not what its type has, end the stream. */
static void unsound_messages_end_it(void)
{
	struct ha_msg_cause m[2] = { compose_abort(1), compose_abort(2) };

	open_connections();
	m[1].rail.rail = HA_MAX_RAILS;
	CHECK_INT(ha_stream_put_all(send[0]->b.link->stream, m, sizeof(m)), 0);
	memset(&taken, 0, sizeof(taken));
	CHECK_INT(ha_stream_receive_all(recv[0]->b.link->stream, record_message, &taken), -EPROTO);
	CHECK_INT(taken.n, 1);
	m[0].rail.header.magic++;
	CHECK_INT(ha_stream_put_all(send[1]->b.link->stream, m, sizeof(m)), 0);
	CHECK_INT(ha_stream_receive_all(recv[1]->b.link->stream, record_message, &taken), -EPROTO);
	CHECK_INT(taken.n, 1);
	ha_close_send(send[2]);
	send[2] = NULL;
	ha_stream_part(LIST_FIRST(&w.b->leaving));
	memset(&taken, 0, sizeof(taken));
	CHECK_INT(ha_stream_receive_all(recv[2]->b.link->stream, record_message, &taken), -EPIPE);
	CHECK_INT(taken.n, 1); /* BYE */
	close_connections();
}

int main(void)
{
	leaves_after_a_second();
	leaves_behind_the_peer();
	kept_until_there_is_room();
	kept_in_part();
	unsound_messages_end_it();
	return 0;
}
