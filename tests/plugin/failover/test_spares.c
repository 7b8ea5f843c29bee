/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How often a device was tried in vain says nothing any more when a port has come back: it was
 * counted while that port was down. ha sim, seed 24030, tried for half a minute a device that could
 * not have a pair, because the one that could had failed more often, until its port was back.
 */
#include "base/check.h"
#include "base/clock.h"
#include "plugin/connect/ctx.h"
#include "plugin/device/device.h"
#include "plugin/failover/spares.h"
#include "plugin/transfer/bundle.h"
#include "rdma/topo/device.h"

#include <stdlib.h>

static void tries_are_forgotten(void)
{
	static struct ha_ctx ctx = { .clock = &ha_clock_live };
	static struct ha_device device[2];
	struct ha_send *s = calloc(1, sizeof(*s));
	uint64_t now = ha_clock_now(ctx.clock);

	CHECK(s);
	s->b.ctx = &ctx;
	s->b.is_send = true;
	for (int i = 0; i < 4; i++)
		ha_spares_tried(&s->b, 0, &device[0]);
	ha_spares_tried(&s->b, 0, &device[1]);
	CHECK_INT(ha_spares_pair(&s->b, 0, &device[0])->tries, 4);

	ha_spares_port_back(&s->b);
	for (int i = 0; i < 2; i++)
		CHECK_INT(ha_spares_pair(&s->b, 0, &device[i])->tries, 0);
	CHECK(s->b.failover.spares.improve);
	CHECK(s->b.failover.spares.improve_at > now);

	/* A path was given up for the spares that were added: the next wait is the first again. */
	s->b.failover.spares.added = 3;
	s->b.failover.spares.add_from = s->b.failover.spares.add_until = now + 1;
	ha_spares_added(&s->b);
	CHECK_INT(s->b.failover.spares.added, 0);
	CHECK_INT(s->b.failover.spares.add_from, 0);
	CHECK_INT(s->b.failover.spares.add_until, 0);
	free(s);
}

#define DATA 1
#define SPARES 3
#define MS HA_NS_PER_MS

/* A sender with one data rail; two ports at either end, so four pairs of which that rail has one.
 * No rail is up. */
static struct ha_send *without_rail(struct ha_ctx *ctx, struct ha_device *device)
{
	static struct ha_topo_device topo;
	struct ha_send *s = calloc(1, sizeof(*s));

	CHECK(s);
	for (int i = 0; i < 2; i++) {
		device[i].topo = &topo;
		device[i].up = true;
		pthread_mutex_init(&device[i].lock, NULL);
	}
	ctx->devices = device;
	ctx->nports = 2;
	s->b.ctx = ctx;
	s->b.is_send = true;
	s->b.terms.flags = HA_FLAG_FAILOVER | HA_FLAG_PAIRS;
	s->b.nrails = DATA + SPARES;
	s->b.balance.ndata = DATA;
	s->b.failover.spares.peer_ports = 2;
	s->b.schedule.due = UINT64_MAX;
	for (unsigned i = 0; i < s->b.nrails; i++) {
		s->b.rail[i].index = (uint8_t)i;
		s->b.rail[i].state = HA_RAIL_DOWN;
		s->b.rail[i].dev = &device[0];
	}
	return s;
}

/* At the first moment without a rail all spares are wanted; what they failed at before delays none
 * of them. */
static void all_at_once(void)
{
	static struct ha_ctx ctx = { .clock = &ha_clock_live };
	static struct ha_device device[2];
	struct ha_send *s = without_rail(&ctx, device);
	struct ha_join *join[1 + SPARES];
	uint64_t now = 1000 * MS;

	for (unsigned i = 0; i <= SPARES; i++) {
		join[i] = &s->b.failover.ctl[i].join;
		join[i]->attempts = 3;
		join[i]->retry_at = join[i]->deadline = now + 5000 * MS;
	}
	s->b.rail[3].state = HA_RAIL_JOIN;
	s->b.failover.spares.failed = 9;
	ha_spares_step(&s->b, now);
	CHECK_INT(s->b.failover.spares.wanted, 0xe);
	CHECK_INT(s->b.failover.spares.no_rail_since, now);
	CHECK_INT(s->b.failover.spares.failed, 0);
	for (unsigned i = 1; i < SPARES; i++) {
		CHECK_INT(join[i]->attempts, 0);
		CHECK_INT(join[i]->retry_at, now + 10 * MS * (i - 1));
		CHECK_INT(join[i]->deadline, now + 5000 * MS); /* it has not begun */
	}
	/* what was under way has no more time than the others */
	CHECK_INT(join[3]->deadline, now + ha_spares_answer_ns(&s->b));
	CHECK_INT(join[3]->retry_at, now + 5000 * MS);
	CHECK_INT(s->b.schedule.due, now);

	/* Later steps change nothing of that. */
	join[1]->attempts = 2;
	s->b.failover.spares.failed = 2;
	ha_spares_step(&s->b, now + MS);
	CHECK_INT(join[1]->attempts, 2);
	CHECK_INT(s->b.failover.spares.failed, 2);
	CHECK_INT(s->b.failover.spares.no_rail_since, now);

	/* The peer can be talked to: the others follow each other more closely. */
	join[1]->retry_at = now + 50 * MS;
	join[2]->retry_at = now + 2 * MS;
	ha_spares_answered(&s->b, now + 10 * MS);
	CHECK_INT(join[1]->retry_at, now + 10 * MS);
	CHECK_INT(join[2]->retry_at, now + 2 * MS);
	CHECK_INT(join[3]->retry_at, now + 5000 * MS);
	free(s);
}

/* There are fewer pairs than spares: a device is gone. */
static void no_more_than_pairs(void)
{
	static struct ha_ctx ctx = { .clock = &ha_clock_live };
	static struct ha_device device[2];
	struct ha_send *s = without_rail(&ctx, device);

	device[0].up = false;
	ha_spares_step(&s->b, 1000 * MS);
	CHECK_INT(s->b.failover.spares.wanted, 0x6); /* the other one, with either of the peer's */
	device[1].up = false;
	ha_spares_step(&s->b, 1000 * MS);
	CHECK_INT(s->b.failover.spares.wanted, 0x2); /* a port may come up any time */
	free(s);
}

/* Each pass over all pairs without success makes the next pause, and what an answer is given,
 * longer, up to a limit. */
static void passes_in_vain(void)
{
	static struct ha_ctx ctx = { .clock = &ha_clock_live };
	static struct ha_device device[2];
	struct ha_send *s = without_rail(&ctx, device);
	static const unsigned pause[] = { 0, 100, 200, 400, 800, 800 };
	struct ha_spares *spares = &s->b.failover.spares;

	for (unsigned i = 0; i < 6; i++) {
		unsigned passes = i < 4 ? i : 4;

		spares->failed = 3 * i;
		CHECK_INT(ha_spares_pause_ns(&s->b), pause[i] * MS);
		CHECK_INT(ha_spares_answer_ns(&s->b), (200 * MS) << passes);
		CHECK_INT(ha_spares_probe_ns(&s->b), (40 * MS) << passes);
	}
	spares->failed = 2; /* not all of the three pairs yet */
	spares->talk_ns = 100 * MS;
	CHECK_INT(ha_spares_answer_ns(&s->b), 800 * MS);
	CHECK_INT(ha_spares_probe_ns(&s->b), 200 * MS);
	spares->talk_ns = 10000 * MS;
	CHECK_INT(ha_spares_answer_ns(&s->b), 1000 * MS);
	CHECK_INT(ha_spares_probe_ns(&s->b), 1000 * MS);
	free(s);
}

/* An old peer has one standby, if both ends want any. */
static void how_many(void)
{
	static struct ha_ctx ctx = { .clock = &ha_clock_live };
	static struct ha_device device[2];
	struct ha_send *s = without_rail(&ctx, device);

	device[0].ports = 2;
	CHECK_INT(ha_spares_count(&s->b), HA_MAX_RAILS - DATA);
	device[0].ports = s->b.failover.spares.peer_ports = 1; /* the only pair is taken */
	CHECK_INT(ha_spares_count(&s->b), 0);
	s->b.terms.flags = HA_FLAG_FAILOVER | HA_FLAG_DUAL_PATH;
	CHECK_INT(ha_spares_count(&s->b), 1);
	s->b.terms.flags = HA_FLAG_FAILOVER;
	CHECK_INT(ha_spares_count(&s->b), 0);
	free(s);
}

/* Two rails that share a NIC are up: a better standby is looked for after a while, each time later,
 * a few times. */
static void a_better_standby(void)
{
	static struct ha_ctx ctx = { .clock = &ha_clock_live };
	static struct ha_device device[2];
	struct ha_send *s = without_rail(&ctx, device);
	struct ha_spares *spares = &s->b.failover.spares;
	uint64_t now = 1000 * MS;

	s->b.active = 1;
	ha_spares_beside(&s->b, now); /* one alone shares with nobody */
	CHECK(!spares->improve);
	s->b.active = 3;
	for (unsigned i = 1; i <= 5; i++) {
		ha_spares_beside(&s->b, now);
		CHECK(spares->improve);
		CHECK_INT(spares->improve_at, now + (1000 * MS << i));
		CHECK(!ha_spares_improve_due(&s->b, spares->improve_at - 1));
		CHECK(ha_spares_improve_due(&s->b, spares->improve_at));
		spares->improve = false;
	}
	ha_spares_beside(&s->b, now);
	CHECK(!spares->improve);
	free(s);
}

int main(void)
{
	tries_are_forgotten();
	all_at_once();
	no_more_than_pairs();
	passes_in_vain();
	how_many();
	a_better_standby();
	return 0;
}
