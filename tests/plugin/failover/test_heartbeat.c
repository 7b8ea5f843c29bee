/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rail on which nothing moves: how long it is given, by what it carries; and what the sender's
 * heartbeat tells the receiver.
 */
#include "base/check.h"
#include "base/clock.h"
#include "plugin/connect/ctx.h"
#include "plugin/device/device.h"
#include "plugin/failover/failover.h"
#include "plugin/transfer/bundle.h"
#include "tests/plugin/idle_cq.h"

#include <stdlib.h>

#define MS HA_NS_PER_MS
#define BEAT_MS 10
#define RTO_MS 100

static int take_word(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	(void)qp;
	(void)wr;
	(void)bad;
	return 0;
}

static const struct ha_verbs_hot hot = { .post_send = take_word, .poll_cq = poll_nothing };
static struct ha_ctx ctx = { .clock = &ha_clock_live,
			     .config = { .heartbeat_ms = BEAT_MS, .silence_ms = 1 } };
static struct ha_device device[2];
static const uint64_t now = 1000000 * MS;

static void prepare(struct ha_bundle *b, bool is_send)
{
	b->ctx = &ctx;
	b->is_send = is_send;
	b->nrails = 2;
	b->active = 3;
	b->balance.ndata = 1;
	b->terms.flags = HA_FLAG_FAILOVER;
	b->poll.most = 16;
	b->failover.rto.rto_ns = RTO_MS * MS;
	b->ring = calloc(1, is_send ? HA_SEND_RING_SIZE : HA_RECV_RING_SIZE);
	CHECK(b->ring);
	atomic_store(&b->attention, HA_ATTN_DRIVE); /* there is no loop to wake */
	for (unsigned i = 0; i < 2; i++)
		b->rail[i] = (struct ha_rail) { .index = (uint8_t)i,
						.hot = &hot,
						.sq_depth = 512,
						.state = HA_RAIL_UP,
						.dev = &device[i] };
}

static struct ha_send *sender(void)
{
	struct ha_send *s = calloc(1, sizeof(*s));

	CHECK(s);
	prepare(&s->b, true);
	return s;
}

static void release(struct ha_bundle *b)
{
	free(b->ring);
	free(b);
}

/* Milliseconds until the rail, whose heartbeat never comes back, is given up; 0: it is not. */
static unsigned time_given(struct ha_bundle *b, unsigned rail)
{
	for (unsigned ms = 0; ms < 500; ms++) {
		b->schedule.due = b->schedule.look_due = UINT64_MAX;
		ha_heartbeat_step(b, &b->rail[rail], now + ms * MS);
		if (b->rail[rail].state != HA_RAIL_UP)
			return ms;
		CHECK(b->schedule.due <= now + (ms + BEAT_MS) * MS); /* it looks again */
	}
	return 0;
}

#define CHECK_ABOUT(expression, ms)                          \
	do {                                                 \
		unsigned is_ = (expression);                 \
		CHECK(is_ >= (ms) && is_ <= (ms) + BEAT_MS); \
	} while (0)

static void by_what_it_carries(void)
{
	struct ha_send *s = sender();

	s->b.balance.weight[0] = 1024;
	CHECK_ABOUT(time_given(&s->b, 0), RTO_MS);
	CHECK_INT(s->b.failover.ctl[0].cause, HA_CAUSE_TIMEOUT);
	CHECK_ABOUT(time_given(&s->b, 1), 3 * BEAT_MS);
	CHECK_INT(s->b.failover.ctl[1].cause, HA_CAUSE_HEARTBEAT);
	release(&s->b);

	s = sender(); /* shares change from message to message: it may have had some a moment ago */
	s->b.balance.moves = true;
	CHECK_ABOUT(time_given(&s->b, 0), RTO_MS);
	CHECK_ABOUT(time_given(&s->b, 1), 3 * BEAT_MS); /* a spare has none */
	release(&s->b);

	s = sender(); /* another connection has proved the path silent */
	s->b.balance.weight[0] = 1024;
	s->b.failover.ctl[0].beat.doubted = true;
	ha_heartbeat_step(&s->b, &s->b.rail[0], now);
	s->b.failover.ctl[0].beat.doubted = true;
	CHECK_ABOUT(time_given(&s->b, 0), RTO_MS / 2);
	CHECK_INT(s->b.failover.ctl[0].cause, HA_CAUSE_SIBLING);
	release(&s->b);

	s = sender(); /* without failover the queue pair alone decides */
	s->b.terms.flags = 0;
	CHECK_INT(time_given(&s->b, 1), 0);
	release(&s->b);
}

/* The sender wants keys where it may send soon. */
static void word_of_the_sender(void)
{
	struct ha_recv *c = calloc(1, sizeof(*c));

	CHECK(c);
	prepare(&c->b, false);
	c->b.balance.weight[0] = 1024;
	ha_heartbeat_step(&c->b, &c->b.rail[1], now);
	CHECK_INT(c->b.balance.lag.keys, 0);
	ha_bundle_board(&c->b)->beat[1].still = HA_LAG_WORD_KEYS | 5;
	ha_heartbeat_step(&c->b, &c->b.rail[1], now + MS);
	CHECK_INT(c->b.balance.lag.keys, 2);
	release(&c->b);
}

int main(void)
{
	by_what_it_carries();
	word_of_the_sender();
	return 0;
}
