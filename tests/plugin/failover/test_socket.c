/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the end of a connection's socket says about the peer, and what BYE does; windows of a
 * one-sided connection, which is sent to the sender rail by rail.
 */
#include "base/check.h"
#include "base/clock.h"
#include "plugin/bundle.h"
#include "plugin/channel/inbox.h"
#include "plugin/channel/stream.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "plugin/device/mr.h"
#include "plugin/failover/failover.h"
#include "plugin/transfer/one_sided.h"
#include "tests/base/lines.h"
#include "tests/plugin/ends.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RAIL 1
#define MS HA_NS_PER_MS
#define START (1000000 * MS)

static unsigned closed; /* sockets */

static void close_socket(struct ha_oob_conn *conn)
{
	(void)conn;
	closed++;
}

static int no_descriptor(struct ha_oob_conn *conn)
{
	(void)conn;
	return -1;
}

static const struct ha_oob_ops oob = { .close = close_socket, .fd = no_descriptor };
static struct ha_clock_virtual virtual_time = HA_CLOCK_VIRTUAL_INIT(START);
static struct ha_device device;
static struct ha_ctx ctx = { .clock = &virtual_time.clock, .oob.ops = &oob, .loop = { .fd = -1 } };

static void prepare_bundle(struct ha_bundle *b, bool is_send)
{
	b->ctx = &ctx;
	b->is_send = is_send;
	b->nrails = 2;
	b->active = 3;
	b->terms.flags = HA_FLAG_FAILOVER | HA_FLAG_ONE_SIDED;
	b->registered.rails = 3;
	atomic_store(&b->attention, HA_ATTN_DRIVE); /* there is no loop to wake */
	pthread_mutex_init(&b->registered.list_lock, NULL);
	for (unsigned i = 0; i < 2; i++) {
		b->rail[i].index = (uint8_t)i;
		b->rail[i].state = HA_RAIL_UP;
		b->rail[i].dev = &device;
		b->failover->ctl[i].heartbeat.at = UINT64_MAX;
	}
	b->link->stream = calloc(1, sizeof(*b->link->stream));
	CHECK(b->link->stream);
	b->link->stream->ctx = &ctx;
	b->link->stream->watch.fd = -1;
	closed = 0;
	lines_catch();
}

static struct ha_send *make_sender(void)
{
	struct ha_send *s = new_send();

	CHECK(s);
	prepare_bundle(&s->b, true);
	STAILQ_INIT(&s->b.link->inbox);
	return s;
}

static void free_bundle(struct ha_bundle *b)
{
	free(b->link->stream);
	free(b);
}

/* ---- the socket ---- */

/* Its kernel has closed it without BYE: the process is dead, and asking the NIC only costs time. */
static void process_is_gone(void)
{
	struct ha_send *s = make_sender();

	s->b.link->stream_error = -EPIPE;
	ha_socket_take(&s->b);
	CHECK_INT(s->b.abort->error, -ECONNRESET);
	CHECK_INT(s->b.abort->cause, HA_CAUSE_PEER_GONE);
	CHECK(!s->b.link->stream);
	CHECK_INT(closed, 1);
	free_bundle(&s->b);
}

/* Anything else is the network between the sockets: the rails show it, by a heartbeat now. */
static void network_fails(void)
{
	static const int errors[] = { -ECONNRESET, -ETIMEDOUT };

	for (unsigned i = 0; i < 2; i++) {
		struct ha_send *s = make_sender();

		s->b.link->stream_error = errors[i];
		ha_socket_take(&s->b);
		CHECK_INT(s->b.abort->error, 0);
		CHECK(!s->b.link->stream);
		CHECK_INT(s->b.link->reset, i == 0);
		CHECK_INT(s->b.link->stream_error, 0);
		for (unsigned k = 0; k < 2; k++)
			CHECK_INT(s->b.failover->ctl[k].heartbeat.at, 0);
		CHECK(lines_contain("the rails go on as long as they answer"));
		free_bundle(&s->b);
	}
}

/* Nothing more is read from it; it stays open, so that the peer does not take this end for dead. */
static void garbage_ends_reading(void)
{
	struct ha_send *s = make_sender();

	s->b.link->stream_error = -EPROTO;
	ha_socket_take(&s->b);
	CHECK_INT(s->b.abort->error, 0);
	CHECK(s->b.link->stream && s->b.link->stream->read_stopped);
	CHECK_INT(closed, 0);
	CHECK(lines_contain("the peer sent what is no message"));
	ha_socket_take(&s->b);
	CHECK_INT(lines_count("the peer sent what is no message"), 1);
	free_bundle(&s->b);
}

/* BYE, then the end: in order. What it had sent has a second to arrive. */
static void in_order(void)
{
	struct ha_send *s = make_sender();

	s->b.link->bye = true;
	s->b.link->bye_done = 12;
	s->b.link->stream_error = -EPIPE;
	ha_socket_take(&s->b);
	CHECK(s->b.peer_closed);
	CHECK_INT(s->b.failover->peer_done, 12);
	CHECK_INT(s->b.failover->peer_closed_until, START + 1000 * MS);
	CHECK_INT(s->b.abort->error, 0);
	CHECK(!s->b.link->stream);
	CHECK_INT(lines_count("peer closed"), 1);
	virtual_time.now += MS;
	ha_socket_take(&s->b); /* once */
	CHECK_INT(s->b.failover->peer_closed_until, START + 1000 * MS);
	virtual_time.now = START;
	free_bundle(&s->b);
}

/* Messages that came before it ended count. */
static void messages_first(void)
{
	struct ha_send *s = make_sender();
	union ha_message m = { .cause = { .rail = { .header = { HA_MSG_MAGIC, 1, HA_MSG_ABORT,
								sizeof(m.cause), 0 },
						    .nonce = 5 },
					  .cause = HA_CAUSE_WORK_FAILED } };

	s->b.terms.nonce = 5;
	ha_inbox_put(&s->b, &m);
	s->b.link->stream_error = -EPIPE;
	ha_socket_take(&s->b);
	CHECK_INT(s->b.abort->error, -ECONNABORTED);
	CHECK(!s->b.link->stream);
	free_bundle(&s->b);
}

/* ---- windows ---- */

static struct ha_mr window_mr = { .addr = (void *)0x1000, .size = 64, .rkey = { 5, 6 } };

/* Twenty windows are offered, of which the second has been withdrawn. */
static struct ha_recv *make_receiver(struct ha_takes *takes, struct ha_offered *offered)
{
	struct ha_recv *c = new_recv();

	CHECK(c);
	prepare_bundle(&c->b, false);
	*takes = (struct ha_takes) { .noffered = 20, .room = 20, .offered = offered };
	for (unsigned i = 0; i < 20; i++)
		offered[i] =
			(struct ha_offered) { .window = 100 + i, .mr = i == 1 ? NULL : &window_mr };
	c->takes = takes;
	return c;
}

/* As many as a message holds, the rest when those are acknowledged; each rail with its own keys. */
static void windows_are_sent(void)
{
	struct ha_msg_windows m = { 0 };
	struct ha_offered offered[20];
	struct ha_takes takes;
	struct ha_recv *c = make_receiver(&takes, offered);
	struct ha_control *k = &c->b.failover->ctl[RAIL];

	ha_windows_step(&c->b, &c->b.rail[RAIL]);
	CHECK_INT(k->out.due, HA_SEND(WINDOWS));
	ha_windows_fill(&c->b, &c->b.rail[RAIL], &m);
	CHECK_INT(m.n, HA_WINDOWS_SENT);
	CHECK_INT(m.next, HA_WINDOWS_SENT);
	CHECK_INT(m.window[0].window, 100);
	CHECK_INT(m.window[0].key, 6);
	CHECK_INT(m.window[0].addr, 0x1000);
	CHECK_INT(m.window[0].size, 64);
	CHECK_INT(m.window[1].window, 101);
	CHECK_INT(m.window[1].key + m.window[1].addr + m.window[1].size, 0);
	k->out.due = 0;
	ha_windows_step(&c->b, &c->b.rail[RAIL]); /* one message at a time */
	CHECK_INT(k->out.due, 0);
	ha_windows_known(&c->b, &c->b.rail[RAIL], HA_WINDOWS_SENT + 1); /* of what was not sent */
	CHECK_INT(k->windows.known, 0);
	ha_windows_known(&c->b, &c->b.rail[RAIL], HA_WINDOWS_SENT);
	CHECK_INT(k->windows.known, HA_WINDOWS_SENT);
	ha_windows_known(&c->b, &c->b.rail[RAIL], 1); /* a late copy */
	CHECK_INT(k->windows.known, HA_WINDOWS_SENT);
	ha_windows_step(&c->b, &c->b.rail[RAIL]);
	CHECK_INT(k->out.due, HA_SEND(WINDOWS));
	memset(&m, 0, sizeof(m));
	ha_windows_fill(&c->b, &c->b.rail[RAIL], &m);
	CHECK_INT(m.n, 2);
	CHECK_INT(m.next, 20);
	k->out.due = 0;
	ha_windows_known(&c->b, &c->b.rail[RAIL], 20);
	ha_windows_step(&c->b, &c->b.rail[RAIL]); /* all are known */
	CHECK_INT(k->out.due, 0);
	free_bundle(&c->b);
}

/* Of a rail that is up, with its own keys. */
static void when_windows_are_sent(void)
{
	for (unsigned i = 0; i < 5; i++) {
		struct ha_offered offered[20];
		struct ha_takes takes;
		struct ha_recv *c = make_receiver(&takes, offered);

		c->takes = i == 1 ? NULL : c->takes;
		c->b.rail[RAIL].state = i == 2 ? HA_RAIL_JOIN : HA_RAIL_UP;
		c->b.registered.rails = i == 3 ? 1 : 3;
		c->b.failover->ctl[RAIL].keys.stage = i == 4 ? HA_KEYS_REGISTERED : HA_KEYS_IDLE;
		ha_windows_step(&c->b, &c->b.rail[RAIL]);
		CHECK_INT(c->b.failover->ctl[RAIL].out.due, i ? 0 : HA_SEND(WINDOWS));
		free_bundle(&c->b);
	}
}

static void windows_are_taken(void)
{
	struct ha_send *s = make_sender();
	struct ha_puts *puts = calloc(1, sizeof(*puts));
	struct ha_msg_windows m = { .n = 2,
				    .next = 7,
				    .window = { { .window = 1, .key = 8, .addr = 64, .size = 9 },
						{ .window = 3, .key = 4 } } };

	CHECK(puts);
	ha_windows_take(&s->b, &s->b.rail[RAIL], &m); /* it is not one-sided */
	CHECK_INT(s->b.failover->ctl[RAIL].out.due, 0);
	s->puts = puts;
	ha_windows_take(&s->b, &s->b.rail[RAIL], &m);
	CHECK_INT(s->b.failover->ctl[RAIL].out.due, HA_SEND(WINDOWS_ACK));
	CHECK_INT(s->b.failover->ctl[RAIL].windows.known, 7);
	CHECK_INT(puts->window[1].rkey[RAIL], 8);
	CHECK_INT(puts->window[1].rkey[0], 0);
	CHECK_INT(puts->window[1].addr, 64);
	CHECK_INT(puts->window[1].size, 9);
	CHECK_INT(puts->window[3].rkey[RAIL], 4);
	puts->window[1].rkey[0] = 2;
	ha_windows_void(&s->b, &s->b.rail[RAIL]); /* the peer's end is on another device */
	CHECK_INT(puts->window[1].rkey[RAIL], 0);
	CHECK_INT(puts->window[3].rkey[RAIL], 0);
	CHECK_INT(puts->window[1].rkey[0], 2);
	free(puts->window);
	free(puts);
	free_bundle(&s->b);
}

int main(void)
{
	process_is_gone();
	network_fails();
	garbage_ends_reading();
	in_order();
	messages_first();
	windows_are_sent();
	when_windows_are_sent();
	windows_are_taken();
	return 0;
}
