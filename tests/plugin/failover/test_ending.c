/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a connection ends: in order, when what had arrived counts as sent; with an error, once every
 * rail is fenced; because no rail came back in time.
 */
#include "base/check.h"
#include "base/clock.h"
#include "plugin/bundle.h"
#include "plugin/channel/stream.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "plugin/failover/failover.h"
#include "rdma/topo/device.h"
#include "tests/plugin/ends.h"

#include <errno.h>
#include <stdlib.h>

#define RAILS 2

static struct ha_topo_device topo;
static struct ha_device device = { .topo = &topo };
static struct ha_ctx ctx = { .clock = &ha_clock_live, .devices = &device };
static struct ha_stream stream;
static const uint64_t now = 1000 * HA_NS_PER_S;

static void prepare_bundle(struct ha_bundle *b, bool is_send)
{
	b->ctx = &ctx;
	b->is_send = is_send;
	b->nrails = b->balance.ndata = RAILS;
	b->terms.flags = HA_FLAG_FAILOVER;
	b->schedule->due = UINT64_MAX;
	b->link->stream = &stream;
	atomic_store(&b->attention, HA_ATTN_DRIVE); /* there is no loop to wake */
	atomic_store(&device.failed, 0);
	for (unsigned i = 0; i < RAILS; i++) {
		b->rail[i].index = (uint8_t)i;
		b->rail[i].state = HA_RAIL_UP;
		b->rail[i].dev = &device;
	}
	b->active = 3;
}

static struct ha_send *make_sender(void)
{
	struct ha_send *s = new_send();

	CHECK(s);
	prepare_bundle(&s->b, true);
	return s;
}

static void check_closed(struct ha_bundle *b, int error, uint64_t at)
{
	b->schedule->due = UINT64_MAX;
	ha_peer_closed_step(b, at);
	CHECK_INT(b->abort->error, error);
	CHECK_INT(b->abort->quiet, error != 0);
	CHECK(error || b->schedule->due == at + HA_NS_PER_MS);
}

/* What the receiver had is sent; for the rest the sender waits, as long as its settings say, and
 * while a rail is being fenced. */
static void closed_in_order(void)
{
	struct ha_send *s = make_sender();

	for (unsigned i = 0; i < 3; i++) {
		s->slot[i].idx = i;
		s->slot[i].n = 1;
		s->slot[i].pending = 1;
		s->slot[i].parked = 1;
	}
	s->head = 3;
	s->b.failover->peer_done = 2;
	s->b.failover->peer_closed_until = now + 5;
	check_closed(&s->b, 0, now);
	for (unsigned i = 0; i < 3; i++) {
		CHECK_INT(s->slot[i].req.done, i < 2);
		CHECK_INT(s->slot[i].pending, i < 2 ? 0 : 1);
		CHECK_INT(s->slot[i].parked, i < 2 ? 0 : 1);
	}
	check_closed(&s->b, 0, now + 4);
	s->b.rail[1].state = HA_RAIL_FENCING;
	check_closed(&s->b, 0, now + 5);
	s->b.rail[1].state = HA_RAIL_FENCED;
	check_closed(&s->b, -ECONNRESET, now + 5);
	CHECK(!s->b.abort->due);
	free(s);

	s = make_sender(); /* nothing is missing */
	s->b.failover->peer_closed_until = now + 5;
	check_closed(&s->b, -ECONNRESET, now);
	free(s);
}

/* A receiver waits for what the sender says it has sent, and for its own flushes. */
static void closed_by_the_sender(void)
{
	struct ha_recv *c = new_recv();

	CHECK(c);
	prepare_bundle(&c->b, false);
	c->b.failover->peer_done = 3;
	c->b.failover->peer_closed_until = now + 5;
	c->done = 2;
	check_closed(&c->b, 0, now);
	c->done = 3;
	c->flush_busy = 1;
	check_closed(&c->b, 0, now);
	c->flush_busy = 0;
	check_closed(&c->b, -ECONNRESET, now);
	free(c);
}

/* An error that a close in order would take the place of. */
static void held_error(void)
{
	struct ha_send *s = make_sender();

	ha_held_abort_step(&s->b, now); /* there is none */
	CHECK_INT(s->b.abort->error, 0);
	CHECK(s->b.schedule->due == UINT64_MAX);
	s->b.abort->held = -EIO;
	s->b.abort->held_until = now + 7;
	strcpy(s->b.abort->text, "refused");
	ha_held_abort_step(&s->b, now + 6);
	CHECK_INT(s->b.abort->error, 0);
	CHECK_INT(s->b.schedule->due, now + 7);
	s->b.peer_closed = true;
	ha_held_abort_step(&s->b, now + 7);
	CHECK_INT(s->b.abort->error, 0);
	s->b.peer_closed = false;
	ha_held_abort_step(&s->b, now + 7);
	CHECK_INT(s->b.abort->error, -EIO);
	CHECK_TEXT(s->b.abort->text, "refused");
	free(s);
}

/* The application sees the error when no rail can write any more. */
static void fenced_before_it_is_seen(void)
{
	struct ha_send *s = make_sender();

	s->b.rail[1].state = HA_RAIL_NONE;
	s->b.abort->error = -EIO;
	s->b.abort->cause = HA_CAUSE_NO_RAIL;
	ha_abort_step(&s->b);
	CHECK_INT(s->b.rail[0].state, HA_RAIL_FENCING);
	CHECK_INT(s->b.error, 0);
	ha_abort_step(&s->b);
	CHECK_INT(s->b.error, 0);
	s->b.rail[0].state = HA_RAIL_FENCED;
	ha_abort_step(&s->b);
	CHECK_INT(s->b.rail[0].state, HA_RAIL_DOWN);
	CHECK_INT(s->b.error, -EIO);
	CHECK(atomic_load(&s->b.attention) & HA_ATTN_ERROR);
	free(s);
}

static int without_path(struct ha_send *s, uint64_t at)
{
	s->b.schedule->due = UINT64_MAX;
	ha_no_path_step(&s->b, at);
	return s->b.abort->error ? (int)s->b.abort->cause : -1;
}

static struct ha_send *without_rail(void)
{
	struct ha_send *s = make_sender();

	s->b.active = 0;
	s->b.rail[0].state = s->b.rail[1].state = HA_RAIL_DOWN;
	return s;
}

/* The machine is stopped while there is no path: the connection was given up when it went on. Only
 * time in which the driver looks counts, and a second of the stop. */
static void no_path_and_stopped(void)
{
	uint64_t limit, at, stop;
	struct ha_send *s;

	ctx.config.max_retries = 12;
	limit = ha_retry_limit_ns(&ctx);
	CHECK(limit > 3 * HA_NS_PER_S);
	s = without_rail();
	CHECK_INT(without_path(s, now), -1);
	CHECK(s->b.schedule->due <= now + HA_NS_PER_S / 10);
	stop = 100 * limit;
	CHECK_INT(without_path(s, now + stop), -1);
	for (at = now + stop; at - now - stop < limit - HA_NS_PER_S; at += HA_NS_PER_S / 10)
		CHECK_INT(without_path(s, at), -1);
	CHECK_INT(without_path(s, now + stop + limit - HA_NS_PER_S), HA_CAUSE_RETRIES);
	free(s);
	ctx.config.max_retries = 3;
}

static void no_path(void)
{
	struct ha_send *s;
	uint64_t limit;

	ctx.config.max_retries = 3;
	limit = ha_retry_limit_ns(&ctx);
	CHECK(limit > 1);
	s = without_rail();
	for (unsigned i = 0; i < RAILS; i++)
		s->b.failover->ctl[i].join.retry_at = UINT64_MAX;
	s->b.failover->ctl[1].fence.peer_port = true; /* it will say when it is back */
	CHECK_INT(without_path(s, now), -1);
	CHECK_INT(s->b.failover->ctl[0].join.retry_at, 0);
	CHECK(s->b.failover->ctl[1].join.retry_at == UINT64_MAX);
	CHECK_INT(s->b.failover->no_path_since, now);
	CHECK(s->b.schedule->due <= now + limit);
	CHECK_INT(without_path(s, now + limit - 1), -1);
	CHECK_INT(s->b.failover->no_path_since, now);
	s->b.active = 1; /* it is back: the next time begins anew */
	CHECK_INT(without_path(s, now + limit), -1);
	CHECK_INT(s->b.failover->no_path_since, 0);
	s->b.active = 0;
	CHECK_INT(without_path(s, now + limit), -1);
	CHECK_INT(without_path(s, now + 2 * limit - 1), -1);
	CHECK_INT(without_path(s, now + 2 * limit), HA_CAUSE_RETRIES);
	free(s);
}

/* There is no hope: the peer is gone, there is nothing to agree over, or nothing to agree on. */
static void no_hope(void)
{
	struct ha_send *s = without_rail();

	s->b.link->stream = NULL;
	CHECK_INT(without_path(s, now), HA_CAUSE_NO_RAIL);
	CHECK_INT(s->b.abort->error, -EIO);
	free(s);
	s = without_rail();
	s->b.link->stream = NULL;
	s->b.link->reset = true;
	CHECK_INT(without_path(s, now), HA_CAUSE_PEER_GONE);
	CHECK_INT(s->b.abort->error, -ECONNRESET);
	free(s);
	s = without_rail();
	s->b.link->reset = true; /* of an older socket */
	CHECK_INT(without_path(s, now), -1);
	atomic_store(&device.failed, -EIO);
	CHECK_INT(without_path(s, now), HA_CAUSE_DEVICE_FAILED);
	free(s);
}

int main(void)
{
	closed_in_order();
	closed_by_the_sender();
	held_error();
	fenced_before_it_is_seen();
	no_path();
	no_path_and_stopped();
	no_hope();
	return 0;
}
