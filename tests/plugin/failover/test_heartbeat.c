/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rail on which nothing moves: how long it is given, by what it carries; and what the sender's
 * heartbeat shows it to the receiver.
 */
#include "base/check.h"
#include "base/clock.h"
#include "plugin/bundle.h"
#include "plugin/channel/board.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "plugin/failover/failover.h"
#include "tests/plugin/ends.h"
#include "tests/plugin/idle_cq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MS HA_NS_PER_MS
#define HEARTBEAT_MS 10
#define RTO_MS 100

static int take_write(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	(void)qp;
	(void)wr;
	(void)bad;
	return 0;
}

static const struct ha_verbs_hot hot = { .post_send = take_write, .poll_cq = poll_nothing };
static struct ha_ctx ctx = { .clock = &ha_clock_live,
			     .config = { .heartbeat_ms = HEARTBEAT_MS, .silence_ms = 1 } };
static struct ha_device device[2];
#define NOW (1000000 * MS)
static const uint64_t now = NOW;

static void prepare_bundle(struct ha_bundle *b, bool is_send)
{
	b->ctx = &ctx;
	b->is_send = is_send;
	b->nrails = 2;
	b->active = 3;
	b->balance.ndata = 1;
	b->terms.flags = HA_FLAG_FAILOVER;
	b->poll.most = 16;
	b->failover->rto.rto_ns = RTO_MS * MS;
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

static struct ha_send *make_sender(void)
{
	struct ha_send *s = new_send();

	CHECK(s);
	prepare_bundle(&s->b, true);
	return s;
}

static void free_bundle(struct ha_bundle *b)
{
	free(b->ring);
	free(b);
}

/* Milliseconds until the rail, whose heartbeat never comes back, is given up; 0: it is not. */
static unsigned time_given(struct ha_bundle *b, unsigned rail)
{
	for (unsigned ms = 0; ms < 500; ms++) {
		b->schedule->due = b->schedule->look_due = UINT64_MAX;
		ha_heartbeat_step(b, &b->rail[rail], now + ms * MS);
		if (b->rail[rail].state != HA_RAIL_UP)
			return ms;
		CHECK(b->schedule->due <= now + (ms + HEARTBEAT_MS) * MS); /* it looks again */
	}
	return 0;
}

#define CHECK_ABOUT(expression, ms)                               \
	do {                                                      \
		unsigned is_ = (expression);                      \
		CHECK(is_ >= (ms) && is_ <= (ms) + HEARTBEAT_MS); \
	} while (0)

static void by_what_it_carries(void)
{
	struct ha_send *s = make_sender();

	s->b.balance.weight[0] = 1024;
	CHECK_ABOUT(time_given(&s->b, 0), RTO_MS);
	CHECK_INT(s->b.rail[0].loss.cause, HA_CAUSE_TIMEOUT);
	CHECK_ABOUT(time_given(&s->b, 1), 3 * HEARTBEAT_MS);
	CHECK_INT(s->b.rail[1].loss.cause, HA_CAUSE_HEARTBEAT);
	free_bundle(&s->b);

	s = make_sender(); /* shares change from message to message: it may have had some a moment
			      ago */
	s->b.balance.moves = true;
	CHECK_ABOUT(time_given(&s->b, 0), RTO_MS);
	CHECK_ABOUT(time_given(&s->b, 1), 3 * HEARTBEAT_MS); /* a spare has none */
	free_bundle(&s->b);

	s = make_sender(); /* another connection has proved the path silent */
	s->b.balance.weight[0] = 1024;
	s->b.failover->ctl[0].heartbeat.doubted = true;
	ha_heartbeat_step(&s->b, &s->b.rail[0], now);
	s->b.failover->ctl[0].heartbeat.doubted = true;
	CHECK_ABOUT(time_given(&s->b, 0), RTO_MS / 2);
	CHECK_INT(s->b.rail[0].loss.cause, HA_CAUSE_SIBLING);
	free_bundle(&s->b);

	s = make_sender(); /* without failover the queue pair alone decides */
	s->b.terms.flags = 0;
	CHECK_INT(time_given(&s->b, 1), 0);
	free_bundle(&s->b);
}

/* The sender wants keys where it may send soon. */
static void requests_of_the_sender(void)
{
	struct ha_recv *c = new_recv();

	CHECK(c);
	prepare_bundle(&c->b, false);
	c->b.balance.weight[0] = 1024;
	ha_heartbeat_step(&c->b, &c->b.rail[1], now);
	CHECK_INT(c->b.balance.lag.keys, 0);
	ha_bundle_board(&c->b)->heartbeat[1].still = HA_LAG_WANTS_KEYS | 5;
	ha_heartbeat_step(&c->b, &c->b.rail[1], now + MS);
	CHECK_INT(c->b.balance.lag.keys, 2);
	free_bundle(&c->b);
}

/* One path: the same two ports. */
static void on_the_same_path(void)
{
	struct ha_rail a = { .dev = &device[0] }, b = { .dev = &device[0] };

	CHECK(ha_heartbeat_same_path(&a, &b));
	b.setup.peer.qp.lid = 1;
	CHECK(!ha_heartbeat_same_path(&a, &b));
	b = a;
	b.setup.peer.qp.gid[15] = 1;
	CHECK(!ha_heartbeat_same_path(&a, &b));
	b = a;
	b.dev = &device[1];
	CHECK(!ha_heartbeat_same_path(&a, &b));
}

/* Its time-out has proved a path silent: the other connections on it look at themselves at once,
 * and those on others do not. */
static void who_doubts(void)
{
	struct ha_send *s = make_sender(), *other = make_sender();

	LIST_INSERT_HEAD(&ctx.bundles, &other->b, entry);
	LIST_INSERT_HEAD(&ctx.bundles, &s->b, entry);
	for (unsigned i = 0; i < 2; i++) {
		s->b.failover->ctl[i].heartbeat.watched = true;
		other->b.failover->ctl[i].heartbeat.watched = true;
		other->b.failover->ctl[i].heartbeat.look_at = UINT64_MAX;
	}
	other->b.schedule->due = UINT64_MAX;
	ha_heartbeat_silence(&s->b, &s->b.rail[0]);
	CHECK(!s->b.failover->ctl[0].heartbeat.doubted);
	CHECK(!s->b.failover->ctl[1].heartbeat.doubted);
	CHECK(other->b.failover->ctl[0].heartbeat.doubted);
	CHECK_INT(other->b.failover->ctl[0].heartbeat.look_at, 0);
	CHECK_INT(other->b.schedule->due, 0);
	CHECK(!other->b.failover->ctl[1].heartbeat.doubted);
	other->b.failover->ctl[0].heartbeat.doubted = other->b.failover->ctl[0].heartbeat.watched =
		false;
	ha_heartbeat_silence(&s->b, &s->b.rail[0]); /* it is not up there */
	CHECK(!other->b.failover->ctl[0].heartbeat.doubted);
	LIST_INIT(&ctx.bundles);
	free_bundle(&other->b);
	free_bundle(&s->b);
}

/* A look at a calm connection: while it moves, or nothing is outstanding, no step is needed; when
 * it stands still, a message has come, or somebody doubts its path, one is, at once. */
static void a_look_from_outside(void)
{
	static const struct {
		bool calm, watched, doubted;
		uint32_t retired, seen; /* of three work requests */
		uint64_t look_at;
		bool moves;
		uint64_t next;
	} looks[] = {
		{ true, true, false, 1, 0, NOW, true, NOW + RTO_MS * MS / 100 },
		{ true, true, false, 3, 3, NOW, true, UINT64_MAX },
		{ true, true, false, 0, 0, NOW, false, NOW },
		{ true, true, true, 1, 0, NOW, false, NOW },
		{ true, true, false, 0, 0, NOW + MS, true, NOW + MS },
		{ true, false, false, 0, 0, NOW, true, UINT64_MAX },
		{ false, true, false, 1, 0, NOW, false, 7 },
	};

	for (unsigned i = 0; i < sizeof(looks) / sizeof(looks[0]); i++) {
		struct ha_send *s = make_sender();
		struct ha_heartbeat_watch *k = &s->b.failover->ctl[0].heartbeat;

		s->b.schedule->calm = looks[i].calm;
		s->b.schedule->look_due = 7;
		k->watched = looks[i].watched;
		k->doubted = looks[i].doubted;
		k->look_at = looks[i].look_at;
		k->still_since = k->looked_at = now - MS;
		k->retired_seen = looks[i].seen;
		s->b.rail[0].sq_posted = 3;
		s->b.rail[0].sq_retired = looks[i].retired;
		CHECK_INT(ha_heartbeat_moves(&s->b, now), looks[i].moves);
		CHECK(s->b.schedule->look_due == looks[i].next);
		free_bundle(&s->b);
	}
}

static void a_message_has_come(void)
{
	struct ha_send *s = make_sender();

	s->b.schedule->calm = true;
	ha_bundle_board(&s->b)->message[1][0].number = 1;
	CHECK(!ha_heartbeat_moves(&s->b, now));
	free_bundle(&s->b);
}

/* An acknowledged heartbeat alone is no work: its rail is not watched as closely as a busy one, and
 * the device learns nothing from it. That it works is seen all the same. */
static void what_counts_as_busy(void)
{
	for (unsigned retired = 0; retired <= 2; retired++)
		for (unsigned heartbeat_out = 0; heartbeat_out < 2; heartbeat_out++) {
			struct ha_send *s = make_sender();
			struct ha_heartbeat_watch *k = &s->b.failover->ctl[0].heartbeat;
			bool busy = retired > heartbeat_out;

			device[0].silence.known_at = 0;
			k->looked_at = now - 5 * MS;
			k->at = now + MS;
			k->sent_at = heartbeat_out ? now - 4 * MS : 0;
			s->b.rail[0].sq_posted = 2;
			s->b.rail[0].sq_retired = retired;
			k->mark = 1;
			ha_heartbeat_step(&s->b, &s->b.rail[0], now);
			CHECK_INT(k->busy_at, busy ? now : 0);
			CHECK_INT(device[0].silence.known_at != 0, busy);
			CHECK_INT(k->alive_since, retired ? now - 5 * MS : 0);
			CHECK_INT(k->sent_at != 0, !retired); /* what stands still gets one */
			free_bundle(&s->b);
		}
}

/* Data that came says that the path works, and no more. */
static void what_came(void)
{
	struct ha_recv *c = new_recv();

	CHECK(c);
	prepare_bundle(&c->b, false);
	c->b.failover->ctl[0].heartbeat.looked_at = now - 5 * MS;
	c->b.failover->ctl[0].heartbeat.at = now + MS;
	c->b.rail[0].rq_consumed = 1;
	ha_heartbeat_step(&c->b, &c->b.rail[0], now);
	CHECK_INT(c->b.failover->ctl[0].heartbeat.alive_since, now - 5 * MS);
	CHECK_INT(c->b.failover->ctl[0].heartbeat.busy_at, 0);
	free_bundle(&c->b);
}

/* No room for a heartbeat: what is in the queue shows as much when it is acknowledged. */
static void a_full_queue(void)
{
	struct ha_send *s = make_sender();
	struct ha_heartbeat_watch *k = &s->b.failover->ctl[0].heartbeat;
	struct ha_rail *r = &s->b.rail[0];

	r->sq_posted = 1000 + r->sq_depth;
	r->sq_retired = 1000;
	ha_heartbeat_send(&s->b, r, now);
	CHECK_INT(k->sent_at, now);
	CHECK_INT(k->mark, r->sq_posted - HA_CTS_SIGNAL);
	CHECK_INT(r->state, HA_RAIL_UP);
	r->sq_retired = 1001;
	ha_heartbeat_send(&s->b, r, now);
	CHECK_INT(k->mark, 1001 + r->sq_depth);
	free_bundle(&s->b);
}

/* A rail that carries data has been silent for a good part of its time-out, or the other has
 * answered: what will be needed without it is prepared. */
static void what_is_missing(void)
{
	for (unsigned i = 0; i < 7; i++) {
		struct ha_send *s = make_sender();
		struct ha_control *k = &s->b.failover->ctl[0];

		s->b.balance.weight[0] = i == 1 ? 0 : 1024;
		s->b.rail[0].state = i == 2 ? HA_RAIL_FENCING : HA_RAIL_UP;
		k->heartbeat.sent_at = i == 3 ? 0 : now;
		k->heartbeat.misses = i == 4 ? 1 : 2;
		k->heartbeat.still_since = now;
		k->heartbeat.looked_at = now + RTO_MS * MS / 4 - (i == 5);
		if (i == 6) {
			k->heartbeat.misses = 0;
			k->sign.stage = HA_SIGN_ANSWERED;
		}
		CHECK_INT(ha_heartbeat_missing(&s->b), i == 0 || i == 6);
		k->sign.stage = HA_SIGN_ASKED;
		CHECK_INT(ha_heartbeat_missing(&s->b), i == 0);
		free_bundle(&s->b);
	}
}

/* The peer sees nothing move: every rail that is up has its heartbeat now, and is watched as if it
 * had just been busy. */
static void the_peer_asks(void)
{
	struct ha_send *s = make_sender();
	struct ha_heartbeat_watch *k[2] = { &s->b.failover->ctl[0].heartbeat,
					    &s->b.failover->ctl[1].heartbeat };

	s->b.rail[1].state = HA_RAIL_JOIN;
	k[0]->at = k[1]->at = now + 8 * MS;
	s->b.schedule->due = UINT64_MAX;
	ha_heartbeat_look(&s->b, now);
	CHECK_INT(k[0]->at, now);
	CHECK_INT(k[0]->look_at, now);
	CHECK_INT(k[0]->busy_at, now);
	CHECK_INT(k[1]->at, now + 8 * MS);
	CHECK_INT(s->b.schedule->due, now);
	free_bundle(&s->b);
}

static int refuse_write(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	(void)qp;
	(void)wr;
	(void)bad;
	return EIO;
}

/* The device takes no work any more. */
static void a_heartbeat_is_refused(void)
{
	static const struct ha_verbs_hot refusing = { .post_send = refuse_write,
						      .poll_cq = poll_nothing };
	struct ha_send *s = make_sender();

	s->b.rail[0].hot = &refusing;
	ha_heartbeat_send(&s->b, &s->b.rail[0], now);
	CHECK_INT(s->b.rail[0].state, HA_RAIL_FENCING);
	CHECK_INT(s->b.rail[0].loss.cause, HA_CAUSE_WORK_REFUSED);
	CHECK_INT(s->b.failover->ctl[0].heartbeat.sent_at, 0);
	free_bundle(&s->b);
}

/* Heartbeats come as configured, but four in a time-out at the least; with work outstanding a look
 * comes at the hundredth part of the time-out, and at its end. */
static void how_often_it_looks(void)
{
	const uint64_t at = NOW + MS / 4;
	const struct {
		int heartbeat_ms;
		uint64_t heartbeat_at, sent_at, still_since, next_heartbeat, next_look;
	} looks[] = {
		{ HEARTBEAT_MS, at, 0, NOW, at + HEARTBEAT_MS * MS, NOW + MS },
		{ 60, at, 0, NOW, at + RTO_MS / 4 * MS, NOW + MS },
		{ HEARTBEAT_MS, at + 500000, NOW, NOW, at + 500000, at + 500000 },
		{ HEARTBEAT_MS, at, 0, at + 300000 - RTO_MS * MS, at + HEARTBEAT_MS * MS,
		  at + 300000 },
	};

	for (unsigned i = 0; i < sizeof(looks) / sizeof(looks[0]); i++) {
		struct ha_send *s = make_sender();
		struct ha_heartbeat_watch *k = &s->b.failover->ctl[0].heartbeat;

		ctx.config.heartbeat_ms = looks[i].heartbeat_ms;
		s->b.balance.weight[0] = 1024;
		s->b.rail[0].sq_posted = 1;
		s->b.schedule->due = s->b.schedule->look_due = UINT64_MAX;
		k->at = looks[i].heartbeat_at;
		k->still_since = looks[i].still_since;
		k->sent_at = looks[i].sent_at;
		k->mark = 1;
		ha_heartbeat_step(&s->b, &s->b.rail[0], at);
		CHECK_INT(k->at, looks[i].next_heartbeat);
		CHECK_INT(s->b.schedule->due, k->at);
		CHECK_INT(k->look_at, looks[i].next_look);
		CHECK_INT(s->b.schedule->look_due, k->look_at);
		CHECK(k->watched);
		free_bundle(&s->b);
	}
	ctx.config.heartbeat_ms = HEARTBEAT_MS;
}

/* Of many connections the heartbeats of a sixteenth of the interval come in one round, at its end,
 * and none before the interval is over. */
static void many_have_theirs_in_common(void)
{
	const uint64_t grid = HEARTBEAT_MS * MS / 16, first = NOW / grid * grid;
	const struct {
		unsigned connections;
		uint64_t now, next;
	} steps[] = {
		{ HA_CROWD_FROM, first + 1, first + 1 + HEARTBEAT_MS * MS },
		{ HA_CROWD_FROM + 1, first, first + HEARTBEAT_MS * MS },
		{ HA_CROWD_FROM + 1, first + 1, first + grid + HEARTBEAT_MS * MS },
		{ HA_CROWD_FROM + 1, first + grid, first + grid + HEARTBEAT_MS * MS },
	};

	for (unsigned i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		struct ha_send *s = make_sender();
		struct ha_heartbeat_watch *k = &s->b.failover->ctl[0].heartbeat;

		ctx.round.connections = steps[i].connections;
		k->at = steps[i].now;
		k->still_since = steps[i].now;
		ha_heartbeat_step(&s->b, &s->b.rail[0], steps[i].now);
		CHECK_INT(k->at, steps[i].next);
		free_bundle(&s->b);
	}
	ctx.round.connections = 0;
}

/* Where signs are asked for, looks come at half of HA_NCCL_SILENCE_MS, also while a rail that was
 * busy a moment ago is idle; where nothing answers for long they become rarer again. */
static void watched_closely(void)
{
	static const struct {
		uint32_t posted;
		unsigned still_ms, busy_ms; /* before now */
		uint64_t next;
	} looks[] = {
		{ 1, 0, 5000, NOW + MS / 2 },
		{ 1, 32, 5000, NOW + MS },               /* 64 looks */
		{ 0, 0, 999, NOW + MS / 2 },             /* idle */
		{ 0, 0, 1000, NOW + HEARTBEAT_MS * MS }, /* for long: its heartbeat */
	};

	for (unsigned i = 0; i < sizeof(looks) / sizeof(looks[0]); i++) {
		struct ha_send *s = make_sender();
		struct ha_heartbeat_watch *k = &s->b.failover->ctl[0].heartbeat;

		ha_silence_init(&device[0].silence, MS);
		s->b.rail[0].sq_posted = looks[i].posted;
		k->closely = true;
		k->still_since = k->looked_at = now - looks[i].still_ms * MS;
		k->busy_at = now - looks[i].busy_ms * MS;
		k->at = now + HEARTBEAT_MS * MS;
		k->sent_at = looks[i].posted ? now : 0;
		k->mark = 1;
		ha_heartbeat_step(&s->b, &s->b.rail[0], now);
		CHECK_INT(k->look_at, looks[i].next);
		free_bundle(&s->b);
	}
	memset(&device[0].silence, 0, sizeof(device[0].silence));
}

int main(void)
{
	by_what_it_carries();
	requests_of_the_sender();
	on_the_same_path();
	who_doubts();
	a_look_from_outside();
	a_message_has_come();
	what_counts_as_busy();
	what_came();
	a_full_queue();
	what_is_missing();
	the_peer_asks();
	a_heartbeat_is_refused();
	how_often_it_looks();
	many_have_theirs_in_common();
	watched_closely();
	return 0;
}
