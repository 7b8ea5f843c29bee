/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * While messages move, the driver's looks at a connection take nothing from its owner: they read
 * counts from outside. Each look used to be a step, with a memory barrier on every processor and
 * the owner kept out, 100 times per time-out and connection; an all-reduce of 8 bytes took 2 %
 * longer for it. The driver is kept out here, and its looks are made by hand.
 */
#include "base/check.h"
#include "include/hawser/status.h"
#include "tests/plugin/pair.h"

#include "plugin/bundle.h"
#include "plugin/channel/board.h"
#include "plugin/ctx.h"
#include "plugin/failover/failover.h"

#include <stdlib.h>
#include <unistd.h>

#define SIZE 64
/* messages between two looks: more than a receiver posts before it learns of one */
#define BATCH 64
#define LOOKS 20

struct ends {
	struct pair pair;
	struct pair_side send, recv;
};

static struct ha_bundle *bundle_of(struct ends *e, bool is_send)
{
	return is_send ? (struct ha_bundle *)e->pair.send : (struct ha_bundle *)e->pair.recv;
}

static void ends_open(struct ends *e)
{
	pair_open(&e->pair, 0);
	e->send.data = pair_alloc(SIZE);
	e->recv.data = pair_alloc(SIZE);
	CHECK_INT(ha_reg_mr(bundle_of(e, true), e->send.data, SIZE, HA_MEM_HOST, 0, -1, 0,
			    &e->send.mr),
		  0);
	CHECK_INT(ha_reg_mr(bundle_of(e, false), e->recv.data, SIZE, HA_MEM_HOST, 0, -1, 0,
			    &e->recv.mr),
		  0);
}

static void ends_close(struct ends *e)
{
	CHECK_INT(ha_dereg_mr(bundle_of(e, true), e->send.mr), 0);
	CHECK_INT(ha_dereg_mr(bundle_of(e, false), e->recv.mr), 0);
	pair_close(&e->pair);
}

static void move_messages(struct ends *e)
{
	pair_messages(&e->pair, &e->send, &e->recv, BATCH, SIZE);
}

/* Nothing to do for the driver, and nothing outstanding on rails that carry no data. */
static bool is_settled(const struct ha_bundle *b)
{
	for (unsigned i = 0; i < b->nrails; i++)
		if (i != b->balance.first && b->rail[i].sq_posted != b->rail[i].sq_retired)
			return false;
	return b->schedule->calm && b->against == HA_AGAINST_NIC;
}

/* Word of the peer's driver that was on its way on the data's rail: what was written behind it has
 * arrived, so it has, too. */
static bool has_message(struct ends *e)
{
	move_messages(e);
	return ha_board_has_message(bundle_of(e, true)) ||
	       ha_board_has_message(bundle_of(e, false));
}

/* With ctx->drive held at the end. */
static void await_settled(struct ends *e)
{
	struct ha_ctx *ctx = e->pair.ctx;

	for (int k = 0; k < PAIR_TRIES_MAX; k++) {
		pthread_mutex_lock(&ctx->drive);
		if (is_settled(bundle_of(e, true)) && is_settled(bundle_of(e, false)) &&
		    !has_message(e))
			return;
		pthread_mutex_unlock(&ctx->drive);
		usleep(1000);
		move_messages(e);
	}
	CHECK(!"settled");
}

/* When both have a look due; no clock waits for that here. */
static uint64_t both_due(struct ends *e)
{
	uint64_t send = bundle_of(e, true)->schedule->look_due,
		 recv = bundle_of(e, false)->schedule->look_due;

	CHECK(send != UINT64_MAX && recv != UINT64_MAX);
	return send > recv ? send : recv;
}

/* At every look messages have moved since the last one. */
static void check_moving(struct ends *e)
{
	for (int i = 0; i < LOOKS; i++) {
		uint64_t now = both_due(e);

		move_messages(e);
		CHECK(ha_heartbeat_moves(bundle_of(e, true), now));
		CHECK(ha_heartbeat_moves(bundle_of(e, false), now));
		CHECK(bundle_of(e, true)->schedule->look_due > now &&
		      bundle_of(e, false)->schedule->look_due > now);
	}
}

/* A clear-to-send is out, and nothing moves: that needs a step, whose time has come. */
static void check_still(struct ends *e)
{
	struct ha_bundle *b = bundle_of(e, false);
	void *data = e->recv.data;
	size_t size = SIZE;
	int tag = 0;
	uint64_t now;

	CHECK_INT(ha_irecv(e->pair.recv, 1, &data, &size, &tag, &e->recv.mr, false, &e->recv.req),
		  0);
	CHECK(e->recv.req);
	now = both_due(e);
	CHECK(!ha_heartbeat_moves(b, now));
	CHECK(b->failover->ctl[b->balance.first].heartbeat.look_at <= now);
	/* Its owner may be inside now: the step is still due then, not only with the next
	 * heartbeat. */
	CHECK(b->schedule->look_due <= now);
}

int main(void)
{
	struct ends e;

	setenv("HA_NCCL_HEARTBEAT_MS", "60000", 1); /* no heartbeat in the middle */
	setenv("HA_NCCL_RTO_MS", "60000", 1);
	setenv("HA_NCCL_SILENCE_MS", "0", 1);
	ends_open(&e);
	await_settled(&e);
	check_moving(&e);
	check_still(&e);
	pthread_mutex_unlock(&e.pair.ctx->drive);
	ends_close(&e);
	return 0;
}
