/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A work request that the peer's NIC refuses: another rail is tried first. The connection ends when
 * the same message has been refused on two rails, or no other is left; not when they were two
 * different messages, which a peer whose NICs fail one after the other refuses, too.
 */
#include "base/check.h"
#include "base/clock.h"
#include "plugin/bundle.h"
#include "plugin/ctx.h"
#include "plugin/transfer/suspect.h"
#include "tests/base/lines.h"
#include "tests/plugin/ends.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RAILS 3

static struct ha_ctx ctx = { .clock = &ha_clock_live };

static void prepare_bundle(struct ha_bundle *b, bool is_send)
{
	b->ctx = &ctx;
	b->is_send = is_send;
	b->nrails = RAILS;
	b->active = (1 << RAILS) - 1;
	b->terms.flags = HA_FLAG_FAILOVER;
	atomic_store(&b->attention, HA_ATTN_DRIVE); /* there is no loop to wake */
	for (unsigned i = 0; i < RAILS; i++) {
		b->rail[i].index = (uint8_t)i;
		b->rail[i].state = HA_RAIL_UP;
		b->balance.weight[i] = 300;
	}
}

static struct ha_recv *make_receiver(void)
{
	struct ha_recv *c = new_recv();

	CHECK(c);
	prepare_bundle(&c->b, false);
	return c;
}

static struct ha_send *make_sender(void)
{
	struct ha_send *s = new_send();

	CHECK(s);
	prepare_bundle(&s->b, true);
	return s;
}

static void open_receive(struct ha_recv *c)
{
	c->slot[c->head % HA_SLOTS].idx = c->head;
	c->slot[c->head % HA_SLOTS].busy = HA_SLOT_WIRE | HA_SLOT_HELD;
	c->head++;
}

static void open_send(struct ha_send *s)
{
	s->slot[s->head % HA_SLOTS].idx = s->head;
	s->slot[s->head % HA_SLOTS].n = 1;
	s->slot[s->head % HA_SLOTS].pending = 1;
	s->head++;
}

static void fail_rail(struct ha_bundle *b, unsigned rail, enum ibv_wc_status status)
{
	struct ibv_wc wc = { .status = status };

	ha_rail_failed(b, &b->rail[rail], &wc, 0);
}

/* held: the connection will end, unless the peer closes in order before. */
static void refuse_on_rail(struct ha_bundle *b, unsigned rail, bool held)
{
	fail_rail(b, rail, IBV_WC_REM_ACCESS_ERR);
	CHECK_INT(b->abort->held, held ? -EIO : 0);
	CHECK_INT(b->abort->error, 0);
	CHECK_INT(b->rail[rail].state, HA_RAIL_FENCING);
	CHECK(!(b->active >> rail & 1));
	CHECK(!b->rail[rail].loss.local);
	CHECK(ha_bundle_closing(b, ha_clock_now(ctx.clock)));
}

static void the_same_message_twice(void)
{
	struct ha_recv *c = make_receiver();
	struct ha_send *s = make_sender();
	uint64_t now = ha_clock_now(ctx.clock);

	for (int i = 0; i < 2; i++) {
		open_receive(c);
		open_send(s);
	}
	refuse_on_rail(&c->b, 0, false);
	refuse_on_rail(&c->b, 1, true);
	CHECK(c->b.abort->held_until >= now + HA_CLOSING_NS);
	CHECK(strstr(c->b.abort->text, "rail 1"));
	refuse_on_rail(&s->b, 0, false);
	refuse_on_rail(&s->b, 1, true);
	free(c);
	free(s);
}

/* The first has come through over the other rail meanwhile. */
static void two_different_messages(void)
{
	struct ha_recv *c = make_receiver();
	struct ha_send *s = make_sender();

	for (int i = 0; i < 2; i++) {
		open_receive(c);
		open_send(s);
	}
	refuse_on_rail(&c->b, 0, false);
	c->slot[0].busy = HA_SLOT_HELD;
	refuse_on_rail(&c->b, 1, false);
	refuse_on_rail(&s->b, 0, false);
	s->slot[0].pending = 0;
	refuse_on_rail(&s->b, 1, false);
	free(c);
	free(s);
}

/* What was refused was no message: a heartbeat, or what the driver writes. */
static void no_message(void)
{
	struct ha_recv *c = make_receiver();
	struct ha_send *s = make_sender();

	refuse_on_rail(&c->b, 0, false);
	refuse_on_rail(&c->b, 1, false);
	refuse_on_rail(&s->b, 0, false);
	refuse_on_rail(&s->b, 1, false);
	free(c);
	free(s);
}

static void on_the_only_rail(void)
{
	struct ha_recv *c = make_receiver();

	c->b.active = 4;
	open_receive(c);
	refuse_on_rail(&c->b, 2, true);
	free(c);
}

/* The peer has reported its own error first, and the rail is being fenced. */
static void behind_the_peers_error(void)
{
	struct ha_send *s = make_sender();

	open_send(s);
	refuse_on_rail(&s->b, 0, false);
	s->b.rail[1].state = HA_RAIL_FENCING;
	fail_rail(&s->b, 1, IBV_WC_WR_FLUSH_ERR); /* its flush: says nothing */
	CHECK_INT(s->b.abort->held, 0);
	fail_rail(&s->b, 1, IBV_WC_REM_ACCESS_ERR);
	CHECK_INT(s->b.abort->held, -EIO);
	free(s);
}

/* Our own NIC says that the request was wrong: at once; but when the program has given buffers back
 * a moment ago it is how it ends the connection. */
static void wrong_here(void)
{
	struct ha_send *s = make_sender();

	open_send(s);
	fail_rail(&s->b, 0, IBV_WC_LOC_PROT_ERR);
	CHECK_INT(s->b.abort->error, -EIO);
	CHECK_INT(s->b.abort->cause, HA_CAUSE_WORK_FAILED);
	CHECK(s->b.abort->due);
	CHECK(!s->b.abort->quiet);
	CHECK_INT(s->b.rail[0].state, HA_RAIL_UP); /* the end takes every rail */
	free(s);

	s = make_sender();
	open_send(s);
	atomic_store(&s->b.registered.given_back_at, ha_clock_now(ctx.clock));
	fail_rail(&s->b, 0, IBV_WC_LOC_PROT_ERR);
	CHECK_INT(s->b.abort->error, 0);
	CHECK_INT(s->b.abort->held, -EIO);
	CHECK_INT(s->b.rail[0].loss.cause, HA_CAUSE_QUEUE_ERROR); /* which excuses it there */
	free(s);
}

/* What comes back first is flushed: no work request of ours has failed. When the program has given
 * buffers back a moment ago the peer has asked for one of them, which breaks the queue pair, and
 * its event says so now or a moment later: which of the two comes first must not matter. */
static void flushed_first(void)
{
	struct ha_recv *c = make_receiver();

	open_receive(c);
	fail_rail(&c->b, 0, IBV_WC_WR_FLUSH_ERR);
	CHECK_INT(c->b.rail[0].state, HA_RAIL_FENCING);
	CHECK_INT(c->b.rail[0].loss.cause, HA_CAUSE_WORK_FAILED);
	atomic_store(&c->b.registered.given_back_at, ha_clock_now(ctx.clock));
	fail_rail(&c->b, 1, IBV_WC_WR_FLUSH_ERR);
	CHECK_INT(c->b.rail[1].loss.cause, HA_CAUSE_QUEUE_ERROR);
	fail_rail(&c->b, 2, IBV_WC_RETRY_EXC_ERR);
	fail_rail(&c->b, 2, IBV_WC_WR_FLUSH_ERR); /* what has failed before is the cause */
	CHECK_INT(c->b.rail[2].loss.cause, HA_CAUSE_WORK_FAILED);
	CHECK_INT(c->b.abort->error, 0);
	free(c);
}

/* A rail that works is lost; where failover is off that ends the connection. */
static void a_lost_rail(void)
{
	struct ha_send *s = make_sender();

	atomic_store(&s->b.attention, 0);
	fail_rail(&s->b, 0, IBV_WC_RETRY_EXC_ERR);
	CHECK_INT(atomic_load(&s->b.attention), HA_ATTN_DRIVE); /* now, not at the next heartbeat */
	CHECK_INT(s->b.rail[0].state, HA_RAIL_FENCING);
	CHECK_INT(s->b.abort->error, 0);
	CHECK_INT(s->b.active, 6);
	CHECK_INT(s->b.rail[0].loss.cause, HA_CAUSE_WORK_FAILED);
	CHECK(!s->b.rail[0].loss.local);
	CHECK(s->b.rail[0].loss.lost_at);
	fail_rail(&s->b, 0, IBV_WC_RETRY_EXC_ERR); /* once is enough */
	fail_rail(&s->b, 1,
		  IBV_WC_FATAL_ERR); /* the fault is here: others on this NIC are notified */
	CHECK(s->b.rail[1].loss.local);
	CHECK_INT(s->b.rail[2].state, HA_RAIL_UP);

	s->b.rail[2].state = HA_RAIL_JOIN; /* it was not up: it was never lost */
	s->b.terms.flags = 0;
	ha_rail_failed(&s->b, &s->b.rail[2], NULL, -ENODEV);
	CHECK_INT(s->b.rail[2].loss.cause, HA_CAUSE_WORK_REFUSED);
	CHECK(s->b.rail[2].loss.local);
	CHECK_INT(s->b.rail[2].loss.lost_at, 0);
	CHECK_INT(s->b.abort->error, -EIO);
	CHECK_INT(s->b.abort->cause, HA_CAUSE_NO_RAIL);
	CHECK(!s->b.abort->due); /* the peer would not understand */
	free(s);
}

/* A rail that fails at an end that has closed, or is about to end, is no news. */
static void no_news(void)
{
	for (unsigned i = 0; i < 4; i++) {
		struct ha_send *s = make_sender();

		s->b.peer_closed = i == 1;
		s->b.abort->error = i == 2 ? -EIO : 0;
		s->b.error = i == 3 ? -EIO : 0;
		lines_catch();
		ha_rail_suspect(&s->b, &s->b.rail[0], HA_CAUSE_TIMEOUT, "no answer");
		CHECK_INT(lines_contain("no answer"), i == 0);
		CHECK_INT(s->b.rail[0].state, HA_RAIL_FENCING);
		free(s);
	}
}

/* The first error counts; a peer that is gone, or has closed, is sent nothing. */
static void the_first_error(void)
{
	struct ha_send *s = make_sender();

	atomic_store(&s->b.attention, 0);
	ha_bundle_abort(&s->b, -EPROTO, HA_CAUSE_PROTOCOL, "the %s", "first");
	CHECK_INT(atomic_load(&s->b.attention), HA_ATTN_DRIVE);
	CHECK(atomic_load(&ctx.round.called)); /* now, not at the next heartbeat */
	ha_bundle_abort(&s->b, -EIO, HA_CAUSE_PEER_GONE, "the second");
	CHECK_INT(s->b.abort->error, -EPROTO);
	CHECK_TEXT(s->b.abort->text, "the first");
	CHECK(s->b.abort->due);
	free(s);

	s = make_sender();
	ha_bundle_abort(&s->b, -EIO, HA_CAUSE_PEER_GONE, "gone");
	CHECK(!s->b.abort->due);
	CHECK(!s->b.abort->quiet);
	free(s);

	s = make_sender();
	s->b.peer_closed = true;
	ha_bundle_abort(&s->b, -EIO, HA_CAUSE_PROTOCOL, "closed");
	CHECK(!s->b.abort->due);
	free(s);

	s = make_sender();
	ha_bundle_abort(&s->b, -EPIPE, HA_CAUSE_NONE, "closed in order");
	CHECK(s->b.abort->quiet);
	CHECK(!s->b.abort->due);
	free(s);
}

/* What to do stands at the end of the line, behind the names of NICs. */
static void a_long_reason(void)
{
	const char *advice = "free some memory or raise `ulimit -l`";
	struct ha_send *s = make_sender();

	ha_bundle_abort(&s->b, -ENOMEM, HA_CAUSE_STANDBY_FAILED, "%0*d; %s", 300, 7, advice);
	CHECK(strstr(s->b.abort->text, advice));
	free(s);
}

int main(void)
{
	the_same_message_twice();
	two_different_messages();
	no_message();
	on_the_only_rail();
	behind_the_peers_error();
	wrong_here();
	flushed_first();
	a_lost_rail();
	the_first_error();
	a_long_reason();
	no_news();
	return 0;
}
