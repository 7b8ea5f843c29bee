/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A round of the driver, in virtual time: which connections make a step, what a step polls, what
 * waits for what is urgent, and when the next round is due.
 */
#include "base/check.h"
#include "base/clock.h"
#include "plugin/bundle.h"
#include "plugin/channel/stream.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "plugin/failover/failover.h"
#include "plugin/failover/protection.h"
#include "plugin/transfer/guard.h"
#include "rdma/topo/device.h"
#include "tests/base/lines.h"
#include "tests/plugin/ends.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BUNDLES 6
#define US UINT64_C(1000)
#define MS HA_NS_PER_MS
#define START (1000000 * MS)

static unsigned polls[2]; /* of each rail's queue */
static unsigned sent;     /* messages on a socket */
static struct ibv_cq cq[2];

static int count_poll(struct ibv_cq *queue, int n, struct ibv_wc *wc)
{
	(void)n;
	(void)wc;
	polls[queue - cq]++;
	return 0;
}

static int take_work(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	(void)qp;
	(void)wr;
	(void)bad;
	return 0;
}

static ssize_t take_bytes(struct ha_oob_conn *conn, const void *data, size_t size)
{
	(void)conn;
	(void)data;
	sent++;
	return (ssize_t)size;
}

static const struct ha_oob_ops oob = { .send = take_bytes };
static const struct ha_verbs_hot hot = { .post_send = take_work, .poll_cq = count_poll };
static struct ha_clock_virtual virtual_time = HA_CLOCK_VIRTUAL_INIT(START);
static struct ha_topo_device topo;
static struct ha_device device[2];
static struct ha_ctx ctx;
static struct ha_stream stream = { .ctx = &ctx };
static struct ha_bundle *bundle[BUNDLES];

static void prepare_bundle(struct ha_bundle *b)
{
	b->ctx = &ctx;
	b->is_send = true;
	b->nrails = b->balance.ndata = 2;
	b->active = 3;
	b->poll.most = b->poll.batch = 16;
	b->terms.flags = HA_FLAG_FAILOVER;
	b->schedule->due = b->schedule->look_due = UINT64_MAX;
	b->failover->rto.rto_ns = 100 * MS;
	b->against = HA_AGAINST_NOTHING;
	b->link->stream = &stream;
	b->ring = calloc(1, HA_SEND_RING_SIZE);
	CHECK(b->ring);
	pthread_mutex_init(&b->registered.lock, NULL);
	pthread_mutex_init(&b->registered.list_lock, NULL);
	for (unsigned i = 0; i < 2; i++) {
		b->balance.weight[i] = b->balance.share[i] = 512;
		b->registered.rails |= (uint8_t)(1u << i);
		b->rail[i] = (struct ha_rail) { .index = (uint8_t)i,
						.hot = &hot,
						.cq = &cq[i],
						.sq_depth = 64,
						.state = HA_RAIL_UP,
						.dev = &device[i] };
		b->failover->ctl[i].heartbeat.at = b->failover->ctl[i].heartbeat.look_at =
			START + 10 * MS;
	}
}

/* Connections of two data rails each, to which nothing is due; with a service thread. */
static void make_bundles(void)
{
	virtual_time.now = START;
	memset(&ctx, 0, sizeof(ctx));
	ha_round_init(&ctx.round);
	ctx.clock = &virtual_time.clock;
	ctx.oob.ops = &oob;
	ctx.devices = device;
	ctx.nports = 2;
	ctx.own_barrier = true;
	ctx.loop.threaded = true;
	ctx.config.heartbeat_ms = 10;
	ctx.config.max_retries = 20;
	ctx.config.mr_mode = HA_MR_LAZY;
	for (unsigned i = 0; i < 2; i++) {
		device[i] = (struct ha_device) { .ctx = &ctx, .topo = &topo, .up = true };
		pthread_mutex_init(&device[i].lock, NULL);
	}
	for (unsigned i = BUNDLES; i-- > 0;) {
		bundle[i] = new_end(true);
		CHECK(bundle[i]);
		prepare_bundle(bundle[i]);
		LIST_INSERT_HEAD(&ctx.bundles, bundle[i], entry);
		ha_schedule_join(bundle[i]);
	}
	polls[0] = polls[1] = 0;
}

static void free_bundles(void)
{
	for (unsigned i = 0; i < BUNDLES; i++) {
		free(bundle[i]->ring);
		free(bundle[i]);
	}
}

/* A round so long after the start; when the next is due, as long after it. */
static uint64_t drive_round(uint64_t ns)
{
	uint64_t next;

	virtual_time.now = START + ns;
	ctx.round.due = 0;
	next = ha_failover_round(&ctx);
	return next == UINT64_MAX ? UINT64_MAX : next - START;
}

/* ---- whose turn it is ---- */

/* No round is made before one is due, unless an owner has called. */
static void when_a_round_is_made(void)
{
	make_bundles();
	ctx.round.due = START + 5;
	ha_due(bundle[0], START);
	CHECK_INT(ha_failover_round(&ctx), START + 5);
	CHECK_INT(bundle[0]->schedule->due, START);
	atomic_store(&ctx.round.called, true);
	CHECK(ha_failover_round(&ctx) != START + 5);
	CHECK(bundle[0]->schedule->due > START);
	CHECK(!atomic_load(&ctx.round.called));
	free_bundles();
}

/* The next round is when the first connection wants it. */
static void when_the_next_is(void)
{
	make_bundles();
	CHECK(drive_round(0) == UINT64_MAX);
	ha_due(bundle[2], START + 7 * MS);
	ha_due(bundle[4], START + 9 * MS);
	CHECK_INT(drive_round(0), 7 * MS);
	bundle[3]->schedule->look_due = START + 6 * MS;
	ha_schedule_called(bundle[3]); /* seen, and waits until then */
	CHECK_INT(drive_round(0), 6 * MS);
	free_bundles();
}

/* The objects of its last incarnation go at that time; there are none left, in fact. */
static struct ha_control *is_over(unsigned i, uint64_t tidy_at)
{
	bundle[i]->rail[i % 2].state = HA_RAIL_DOWN;
	bundle[i]->rail[i % 2].cq = NULL;
	bundle[i]->failover->ctl[i % 2].fence.tidy_at = tidy_at;
	ha_schedule_tidy(bundle[i], tidy_at);
	return &bundle[i]->failover->ctl[i % 2];
}

/* A round comes to those whose time it is, and does not look at the others. */
static void who_waits_is_not_looked_at(void)
{
	make_bundles();
	for (unsigned i = 0; i < BUNDLES; i++)
		ha_due(bundle[i], START + 2 * MS);
	drive_round(0);
	ha_due(bundle[1], START + MS);
	bundle[2]->schedule->due = START; /* behind the order's back */
	CHECK_INT(drive_round(MS), 2 * MS);
	CHECK(bundle[1]->schedule->due > START + 2 * MS);
	CHECK_INT(bundle[2]->schedule->due, START);
	drive_round(2 * MS);
	CHECK(bundle[2]->schedule->due > START + 2 * MS);
	free_bundles();
}

/* What leaves in the middle of everything is in no list any more. */
static void who_has_left_is_not_looked_at(void)
{
	make_bundles();
	is_over(0, START + MS);
	bundle[1]->registered.rails = 1;
	bundle[1]->failover->ctl[1].keys.stage = HA_KEYS_WANTED;
	ha_schedule_called(bundle[1]);
	pthread_mutex_lock(&bundle[1]->registered.lock); /* so that they are wanted for longer */
	ha_schedule_urgent(bundle[2], START + 5 * MS);
	drive_round(0);
	pthread_mutex_unlock(&bundle[1]->registered.lock);
	CHECK(bundle[0]->schedule->tidies && bundle[1]->schedule->slow && ctx.round.urgent);
	for (unsigned i = 0; i < 3; i++) {
		LIST_REMOVE(bundle[i], entry);
		ha_schedule_leave(bundle[i]);
	}
	CHECK_INT(ctx.round.connections, BUNDLES - 3);
	CHECK(TAILQ_EMPTY(&ctx.round.slow) && TAILQ_EMPTY(&ctx.round.tidy));
	drive_round(10 * MS);
	CHECK(!ctx.round.urgent);
	CHECK_INT(bundle[0]->failover->ctl[0].fence.tidy_at, START + MS);
	CHECK_INT(bundle[1]->failover->ctl[1].keys.stage, HA_KEYS_WANTED);
	free_bundles();
}

/* A connection whose owner is inside is tried again at once; the others make their steps. */
static void owner_is_inside(void)
{
	make_bundles();
	ha_due(bundle[1], START);
	ha_due(bundle[2], START);
	ha_guard_in(bundle[1]);
	CHECK_INT(drive_round(0), 0); /* its step is still due */
	CHECK_INT(bundle[1]->schedule->due, START);
	CHECK(bundle[2]->schedule->due > START);
	CHECK(!(atomic_load(&bundle[1]->attention) & HA_ATTN_HELD));
	CHECK(!(atomic_load(&bundle[2]->attention) & HA_ATTN_HELD));
	ha_bundle_leave(bundle[1]);
	drive_round(20 * US);
	CHECK(bundle[1]->schedule->due > START);
	free_bundles();
}

/* What the owner asks for comes at once, once. */
static void owner_asks(void)
{
	make_bundles();
	atomic_fetch_or(&bundle[1]->attention, HA_ATTN_DRIVE);
	atomic_store(&ctx.round.called, true);
	bundle[1]->balance.speed_changed = true;
	drive_round(0);
	CHECK(!(atomic_load(&bundle[1]->attention) & HA_ATTN_DRIVE));
	CHECK(!bundle[1]->balance.speed_changed);
	CHECK(bundle[1]->schedule->due != UINT64_MAX); /* its heartbeat */
	CHECK(bundle[0]->schedule->due == UINT64_MAX);
	free_bundles();
}

/* ---- a step ---- */

/* The owner polls what carries data; the driver does when it must judge, when the queue is half
 * full, when a rail comes up or the connection ends, and where there is nobody else. */
static void what_is_polled(void)
{
	for (unsigned i = 0; i < 8; i++) {
		struct ha_bundle *b;

		make_bundles();
		b = bundle[0];
		ha_due(b, START);
		b->rail[1].sq_posted = i == 1 ? 33 : 32;
		if (i == 2)
			b->failover->ctl[1].heartbeat.look_at = START;
		if (i == 3 || i == 4) {
			b->rail[1].state = i == 3 ? HA_RAIL_JOIN : HA_RAIL_PROBE;
			b->failover->ctl[1].join.deadline = UINT64_MAX;
		}
		if (i == 5)
			b->rail[1].state = HA_RAIL_DOWN;
		b->peer_closed = i == 6;
		ctx.loop.threaded = i != 7;
		drive_round(0);
		CHECK_INT(polls[1] > 0, i != 0 && i != 5);
		free_bundles();
	}
}

/* Where nothing but looks is to be done, a look reads counts from outside, and the owner is not
 * kept out. */
static void what_is_calm(void)
{
	for (unsigned i = 0; i < 7; i++) {
		struct ha_bundle *b;

		make_bundles();
		b = bundle[0];
		ha_due(b, START);
		b->error = i == 1 ? -EIO : 0;
		b->peer_closed = i == 2;
		b->failover->peer_closed_until = UINT64_MAX;
		((struct ha_send *)b)->slot[0].pending = 1;
		if (i == 3)
			b->active = 0;
		b->failover->parked = i == 3;
		if (i == 4)
			b->terms.flags |= HA_FLAG_ACK_MEMORY;
		ctx.loop.threaded = i != 5;
		if (i == 6) { /* what it carried is not on its way again */
			b->rail[0].state = HA_RAIL_FENCED;
			b->active = 2;
			b->failover->ctl[0].fence.stage = HA_FENCE_OVER;
			b->rail[0].loss.suspected_at = START;
			b->failover->ctl[0].working = true;
		}
		drive_round(0);
		CHECK_INT(b->schedule->calm, i == 0);
		free_bundles();
	}
}

/* Once everything that a rail carried is on its way again the operator reads what it cost. */
static void rail_failed_over(unsigned rail)
{
	struct ha_bundle *b;

	make_bundles();
	lines_catch();
	b = bundle[0];
	b->rail[rail].state = HA_RAIL_DOWN;
	b->active = (uint8_t)(3 ^ 1 << rail);
	b->failover->ctl[rail].compare.unreported = true;
	b->failover->ctl[rail].compare.replayed_requests = 12;
	b->failover->ctl[rail].compare.replayed_bytes = 3456;
	b->failover->ctl[rail].compare.registration_ns = 2 * MS;
	b->rail[rail].loss.lost_at = START - 5 * MS;
	b->failover->ctl[rail].join.retry_at = UINT64_MAX;
	b->failover->parked = 1;
	((struct ha_send *)b)->head = 0; /* what is parked waits for room */
	ha_due(b, START);
	drive_round(0);
	CHECK(!lines_contain("failed over"));
	b->failover->parked = 0;
	ha_due(b, START);
	drive_round(0);
	CHECK_INT(lines_count("failed over: 12 requests (3456 bytes) replayed, 5.000 ms without "
			      "progress, 2.000 ms of it registering"),
		  1);
	ha_due(b, START);
	drive_round(0);
	CHECK_INT(lines_count("failed over"), 1);
	free_bundles();
}

static void failed_over(void)
{
	rail_failed_over(0);
	rail_failed_over(1);
}

/* ---- what is slow, and what can wait ---- */

/* Objects of incarnations that are over go a tenth of a second later, four in a round. */
static void tidied_a_few_at_a_time(void)
{
	unsigned left = 0;

	make_bundles();
	for (unsigned i = 0; i < BUNDLES; i++)
		is_over(i, START + 100 * MS);
	CHECK_INT(drive_round(0), 100 * MS);
	CHECK_INT(drive_round(100 * MS - 1), 100 * MS);
	CHECK_INT(bundle[0]->failover->ctl[0].fence.tidy_at, START + 100 * MS);
	CHECK_INT(drive_round(100 * MS), 100 * MS); /* the rest at once */
	for (unsigned i = 0; i < BUNDLES; i++)
		left += bundle[i]->failover->ctl[i % 2].fence.tidy_at != 0;
	CHECK_INT(left, BUNDLES - 4);
	CHECK(drive_round(100 * MS) == UINT64_MAX);
	for (unsigned i = 0; i < BUNDLES; i++)
		CHECK_INT(bundle[i]->failover->ctl[i % 2].fence.tidy_at, 0);
	free_bundles();
}

/* A registration is under way: in a millisecond. A rail that is being opened tidies by itself. */
static void tidied_later(void)
{
	struct ha_control *first, *second;

	make_bundles();
	first = is_over(0, START);
	pthread_mutex_lock(&bundle[0]->registered.lock);
	CHECK_INT(drive_round(0), 1 * MS);
	second = is_over(1, START + MS / 2);
	CHECK_INT(drive_round(0), MS / 2);
	pthread_mutex_unlock(&bundle[0]->registered.lock);
	drive_round(MS);
	CHECK_INT(first->fence.tidy_at, 0);
	CHECK_INT(second->fence.tidy_at, 0);
	second->fence.tidy_at = START;
	second->slow = HA_SLOW_DONE;
	drive_round(MS);
	CHECK_INT(second->fence.tidy_at, START);
	free_bundles();
}

/* While a rail of any connection is being fenced nothing of that happens, nor for four milliseconds
 * behind it. */
static void urgent_first(void)
{
	struct ha_control *k;

	make_bundles();
	k = is_over(0, START);
	ha_schedule_urgent(bundle[3], START + 20 * MS);
	CHECK_INT(drive_round(0), 20 * MS);
	CHECK(ctx.round.urgent);
	CHECK_INT(drive_round(20 * MS - 1), 20 * MS);
	CHECK_INT(k->fence.tidy_at, START);
	CHECK_INT(drive_round(20 * MS), 24 * MS - 1);
	CHECK(!ctx.round.urgent);
	CHECK_INT(k->fence.tidy_at, START);
	drive_round(24 * MS - 1);
	CHECK_INT(k->fence.tidy_at, 0);
	free_bundles();
}

#define MORE (HA_CROWD_FROM + 4)

/* Many connections may all have lost the same NIC: what is not urgent waits for longer. */
static void urgent_for_longer_with_many(void)
{
	struct ha_bundle *more[MORE];

	make_bundles();
	for (unsigned i = 0; i < MORE; i++) {
		more[i] = new_end(true);
		more[i]->ctx = &ctx;
		more[i]->schedule->due = more[i]->schedule->look_due = UINT64_MAX;
		LIST_INSERT_HEAD(&ctx.bundles, more[i], entry);
		ha_schedule_join(more[i]);
	}
	ha_schedule_urgent(bundle[3], START + 20 * MS);
	CHECK_INT(drive_round(0), 21 * MS); /* ten above HA_CROWD_FROM, 0.1 ms each */
	CHECK_INT(drive_round(21 * MS - 1), 21 * MS);
	CHECK(ctx.round.urgent);
	drive_round(21 * MS);
	CHECK(!ctx.round.urgent);
	free_bundles();
	for (unsigned i = 0; i < MORE; i++)
		free(more[i]);
}

/* What counts as urgent: a rail that carried data, for twenty milliseconds from its suspicion, or
 * until what it carried is on its way. What is superfluous, or never came up, can wait. */
static void what_is_urgent(void)
{
	static const struct {
		enum ha_rail_state state;
		bool unreported, working;
		enum ha_event_cause cause;
		bool urgent;
	} rails[] = {
		{ HA_RAIL_FENCED, false, true, HA_CAUSE_PORT_DOWN, true },
		{ HA_RAIL_FENCED, false, false, HA_CAUSE_PORT_DOWN, false },
		{ HA_RAIL_FENCED, false, true, HA_CAUSE_SURPLUS, false },
		{ HA_RAIL_DOWN, false, true, HA_CAUSE_PORT_DOWN, false },
		{ HA_RAIL_DOWN, true, true, HA_CAUSE_PORT_DOWN, true },
	};

	for (unsigned i = 0; i < sizeof(rails) / sizeof(rails[0]); i++) {
		struct ha_control *k;

		make_bundles();
		k = &bundle[0]->failover->ctl[1];
		bundle[0]->rail[1].state = (uint8_t)rails[i].state;
		bundle[0]->active = rails[i].unreported ? 0 : 1; /* nothing carries it yet */
		if (rails[i].unreported) {
			bundle[0]->rail[0].state = HA_RAIL_FENCED;
			bundle[0]->failover->ctl[0].fence.stage = HA_FENCE_OVER;
		}
		k->fence.stage = HA_FENCE_OVER;
		k->compare.unreported = rails[i].unreported;
		k->working = rails[i].working;
		bundle[0]->rail[1].loss.cause = (uint8_t)rails[i].cause;
		bundle[0]->rail[1].loss.suspected_at = START - 5 * MS;
		k->join.retry_at = UINT64_MAX;
		ha_due(bundle[0], START);
		drive_round(0);
		CHECK_INT(bundle[0]->schedule->urgent_until, rails[i].urgent ? START + 15 * MS : 0);
		free_bundles();
	}
}

/* What lag.c has decided goes to the other end with the next heartbeat on that rail, which is not
 * waited for; one that is late already keeps its time. */
static void news_of_a_slow_path(void)
{
	struct ha_bundle *b;

	make_bundles();
	b = bundle[0];
	b->rail[0].state = b->rail[1].state = HA_RAIL_NONE; /* nothing but the news */
	b->failover->ctl[1].heartbeat.at = START - 1;
	b->balance.lag.news = 3;
	ha_due(b, START);
	drive_round(0);
	CHECK_INT(b->failover->ctl[0].heartbeat.at, START);
	CHECK_INT(b->failover->ctl[1].heartbeat.at, START - 1);
	CHECK_INT(b->balance.lag.news, 0);
	b->failover->ctl[0].heartbeat.at = START + MS; /* none are left */
	ha_due(b, START);
	drive_round(0);
	CHECK_INT(b->failover->ctl[0].heartbeat.at, START + MS);
	free_bundles();
}

/* Buffers are registered beside the data path; while the program registers, in a moment. */
static void keys_are_registered(void)
{
	make_bundles();
	bundle[0]->registered.rails = 1;
	bundle[0]->failover->ctl[1].keys.stage = HA_KEYS_WANTED;
	ha_schedule_called(bundle[0]); /* a step wants them */
	pthread_mutex_lock(&bundle[0]->registered.lock);
	CHECK_INT(drive_round(0), 20 * US);
	CHECK_INT(bundle[0]->failover->ctl[1].keys.stage, HA_KEYS_WANTED);
	pthread_mutex_unlock(&bundle[0]->registered.lock);
	drive_round(20 * US);
	CHECK_INT(bundle[0]->failover->ctl[1].keys.stage, HA_KEYS_REGISTERED);
	CHECK_INT(bundle[0]->registered.rails, 3);
	CHECK_INT(bundle[0]->schedule->due, 0); /* what follows from it */
	free_bundles();
}

/* An error fences every rail before the application sees it, and the peer is notified first. */
static void a_connection_that_ends(void)
{
	struct ha_bundle *b;

	make_bundles();
	b = bundle[0];
	b->rail[0].cq = b->rail[1].cq = NULL;
	ha_bundle_abort(b, -EIO, HA_CAUSE_WORK_FAILED, "test");
	sent = 0;
	drive_round(0);
	CHECK_INT(sent, 1);
	CHECK_INT(b->error, 0);
	CHECK_INT(b->active, 0);
	drive_round(1);
	drive_round(2);
	CHECK_INT(b->rail[0].state, HA_RAIL_DOWN);
	CHECK_INT(b->rail[1].state, HA_RAIL_DOWN);
	CHECK_INT(b->error, -EIO);
	CHECK_INT(sent, 1);
	free_bundles();
}

int main(void)
{
	when_a_round_is_made();
	when_the_next_is();
	who_waits_is_not_looked_at();
	who_has_left_is_not_looked_at();
	owner_is_inside();
	owner_asks();
	what_is_polled();
	what_is_calm();
	failed_over();
	tidied_a_few_at_a_time();
	tidied_later();
	urgent_first();
	urgent_for_longer_with_many();
	what_is_urgent();
	news_of_a_slow_path();
	keys_are_registered();
	a_connection_that_ends();
	return 0;
}
