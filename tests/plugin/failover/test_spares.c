/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How often a device was tried in vain says nothing any more when a port has come back: it was
 * counted while that port was down. ha sim, seed 24030, tried for half a minute a device that could
 * not have a pair, because the one that could had failed more often, until its port was back.
 */
#include "base/check.h"
#include "base/clock.h"
#include "include/hawser/event.h"
#include "plugin/bundle.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "plugin/failover/spares.h"
#include "rdma/topo/device.h"
#include "tests/plugin/ends.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void tries_are_forgotten(void)
{
	static struct ha_ctx ctx = { .clock = &ha_clock_live };
	static struct ha_device device[2];
	struct ha_send *s = new_send();
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
	CHECK(s->b.failover->spares.improve);
	CHECK(s->b.failover->spares.improve_at > now);

	/* A path was given up for the spares that were added: the next wait is the first again. */
	s->b.failover->spares.added = 3;
	s->b.failover->spares.add_from = s->b.failover->spares.add_until = now + 1;
	ha_spares_added(&s->b);
	CHECK_INT(s->b.failover->spares.added, 0);
	CHECK_INT(s->b.failover->spares.add_from, 0);
	CHECK_INT(s->b.failover->spares.add_until, 0);
	free(s);
}

#define DATA 1
#define SPARES 3
#define MS HA_NS_PER_MS

/* A sender with one data rail; two ports at either end, so four pairs of which that rail has one.
 * No rail is up. */
static struct ha_send *without_rail(struct ha_ctx *ctx, struct ha_device *device)
{
	static struct ha_topo_device topo = { .place.rail_id = -1 };
	struct ha_send *s = new_send();

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
	s->b.failover->spares.peer_ports = 2;
	s->b.schedule->due = UINT64_MAX;
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
		join[i] = &s->b.failover->ctl[i].join;
		join[i]->attempts = 3;
		join[i]->retry_at = join[i]->deadline = now + 5000 * MS;
	}
	s->b.rail[3].state = HA_RAIL_JOIN;
	s->b.failover->spares.failed = 9;
	ha_spares_step(&s->b, now);
	CHECK_INT(s->b.failover->spares.wanted, 0xe);
	CHECK_INT(s->b.failover->spares.no_rail_since, now);
	CHECK_INT(s->b.failover->spares.failed, 0);
	for (unsigned i = 1; i < SPARES; i++) {
		CHECK_INT(join[i]->attempts, 0);
		CHECK_INT(join[i]->retry_at, now + 10 * MS * (i - 1));
		CHECK_INT(join[i]->deadline, now + 5000 * MS); /* it has not begun */
	}
	/* what was under way has no more time than the others */
	CHECK_INT(join[3]->deadline, now + ha_spares_answer_ns(&s->b));
	CHECK_INT(join[3]->retry_at, now + 5000 * MS);
	CHECK_INT(s->b.schedule->due, now);

	/* Later steps change nothing of that. */
	join[1]->attempts = 2;
	s->b.failover->spares.failed = 2;
	ha_spares_step(&s->b, now + MS);
	CHECK_INT(join[1]->attempts, 2);
	CHECK_INT(s->b.failover->spares.failed, 2);
	CHECK_INT(s->b.failover->spares.no_rail_since, now);

	/* The peer is reached: the others follow each other more closely. */
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
	CHECK_INT(s->b.failover->spares.wanted, 0x6); /* the other one, with either of the peer's */
	device[1].up = false;
	ha_spares_step(&s->b, 1000 * MS);
	CHECK_INT(s->b.failover->spares.wanted, 0x2); /* a port may come up any time */
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
	struct ha_spares *spares = &s->b.failover->spares;

	for (unsigned i = 0; i < 6; i++) {
		unsigned passes = i < 4 ? i : 4;

		spares->failed = 3 * i;
		CHECK_INT(ha_spares_pause_ns(&s->b), pause[i] * MS);
		CHECK_INT(ha_spares_answer_ns(&s->b), (200 * MS) << passes);
		CHECK_INT(ha_spares_probe_ns(&s->b), (40 * MS) << passes);
	}
	spares->failed = 2; /* not all of the three pairs yet */
	spares->exchange_ns = 100 * MS;
	CHECK_INT(ha_spares_answer_ns(&s->b), 800 * MS);
	CHECK_INT(ha_spares_probe_ns(&s->b), 200 * MS);
	spares->exchange_ns = 10000 * MS;
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
	device[0].ports = s->b.failover->spares.peer_ports = 1; /* the only pair is taken */
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
	struct ha_spares *spares = &s->b.failover->spares;
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

/* The data rail is up, between the first devices. */
static struct ha_send *with_rail(struct ha_ctx *ctx, struct ha_device *device)
{
	struct ha_send *s = without_rail(ctx, device);

	s->b.active = 1;
	s->b.rail[0].state = HA_RAIL_UP;
	s->b.balance.weight[0] = 1024;
	atomic_store(&s->b.attention, HA_ATTN_DRIVE); /* there is no loop to wake */
	return s;
}

/* A spare is up: on our device `here`, and the peer's `there`. */
static void spare_up(struct ha_send *s, unsigned rail, struct ha_device *here, uint64_t there)
{
	s->b.rail[rail].state = HA_RAIL_UP;
	s->b.rail[rail].dev = here;
	s->b.rail[rail].setup.peer.guid = there;
	s->b.active |= (uint8_t)(1u << rail);
}

static unsigned wanted_at(struct ha_send *s, uint64_t now)
{
	s->b.schedule->due = UINT64_MAX;
	ha_spares_step(&s->b, now);
	return s->b.failover->spares.wanted;
}

/* One comes up at a time, the first that does nothing; none where what is up protects against the
 * loss of a NIC. */
static void one_stands_by(void)
{
	static struct ha_ctx ctx = { .clock = &ha_clock_live };
	static struct ha_device device[2];
	struct ha_send *s = with_rail(&ctx, device);

	s->b.failover->ctl[1].join.retry_at = 7;
	CHECK_INT(wanted_at(s, 1000 * MS), 2);
	CHECK_INT(s->b.schedule->due, 7);
	CHECK(ha_spares_wanted(&s->b, &s->b.rail[1]));
	CHECK(!ha_spares_wanted(&s->b, &s->b.rail[2]));
	CHECK(ha_spares_wanted(&s->b, &s->b.rail[0])); /* a data rail always is */
	s->b.rail[1].state = HA_RAIL_JOIN;
	CHECK_INT(wanted_at(s, 1000 * MS), 0);
	s->b.rail[1].state = HA_RAIL_DOWN;
	s->b.failover->ctl[1].slow = HA_SLOW_OPEN;
	CHECK_INT(wanted_at(s, 1000 * MS), 0);
	s->b.failover->ctl[1].slow = HA_SLOW_TIDY; /* which delays nobody */
	CHECK_INT(wanted_at(s, 1000 * MS), 2);
	s->b.failover->ctl[1].slow = HA_SLOW_NONE;
	spare_up(s, 1, &device[1], 9);
	CHECK_INT(wanted_at(s, 1000 * MS), 0);
	s->b.terms.flags = HA_FLAG_FAILOVER; /* an old peer's only one */
	CHECK(ha_spares_wanted(&s->b, &s->b.rail[2]));
	free(s);

	s = with_rail(&ctx, device); /* two data rails protect by themselves */
	s->b.balance.ndata = 2;
	spare_up(s, 1, &device[1], 9);
	CHECK_INT(wanted_at(s, 1000 * MS), 0);
	spare_up(s, 1, &device[0], 9); /* not on one device */
	CHECK_INT(wanted_at(s, 1000 * MS), 4);
	free(s);
}

static void two_when_a_spare_carries(void)
{
	static struct ha_ctx ctx = { .clock = &ha_clock_live };
	static struct ha_device device[2];
	struct ha_send *s = with_rail(&ctx, device);

	s->b.rail[0].state = HA_RAIL_DOWN;
	s->b.active = 0;
	s->b.failover->spares.no_rail_since = 5;
	spare_up(s, 1, &device[1], 9);
	s->b.balance.weight[1] = 1024;
	CHECK_INT(wanted_at(s, 1000 * MS), 4);
	CHECK_INT(s->b.failover->spares.no_rail_since, 0);
	spare_up(s, 2, &device[0], 8);
	CHECK_INT(wanted_at(s, 1000 * MS), 0);
	free(s);
}

/* What a lost rail carried goes on before the next standby is made, a quarter of a second. */
static void behind_what_was_lost(void)
{
	static struct ha_ctx ctx = { .clock = &ha_clock_live };
	static struct ha_device device[2];
	struct ha_send *s = with_rail(&ctx, device);
	uint64_t now = 1000 * MS;

	s->b.rail[2].loss.lost_at = now;
	s->b.rail[3].loss.lost_at = now - 9 * MS; /* the last one counts */
	CHECK_INT(wanted_at(s, now), 2);
	CHECK_INT(s->b.failover->ctl[1].join.retry_at, now + 250 * MS);
	CHECK_INT(s->b.schedule->due, now + 250 * MS);
	s->b.failover->ctl[1].join.retry_at = now + 900 * MS; /* its own back-off is longer */
	wanted_at(s, now);
	CHECK_INT(s->b.failover->ctl[1].join.retry_at, now + 900 * MS);
	s->b.failover->spares.improve = true; /* a port is back: now */
	s->b.failover->spares.improve_at = now + MS;
	wanted_at(s, now);
	CHECK_INT(s->b.failover->ctl[1].join.retry_at, now + 900 * MS);
	CHECK_INT(s->b.schedule->due, now + MS);
	wanted_at(s, now + MS);
	CHECK_INT(s->b.failover->ctl[1].join.retry_at, 0);
	free(s);

	s = with_rail(&ctx, device); /* a standby that shares a NIC there: a better one is tried */
	spare_up(s, 1, &device[1], 0);
	s->b.failover->spares.improve = true;
	s->b.failover->spares.improve_at = now;
	CHECK_INT(wanted_at(s, now - 1), 0);
	CHECK_INT(wanted_at(s, now), 4);
	spare_up(s, 2, &device[1], 9); /* it is up: nothing is left to improve */
	CHECK_INT(wanted_at(s, now), 0);
	CHECK(!s->b.failover->spares.improve);
	free(s);
}

/* Spares that came up together, all on one NIC here, and a port is back: those that add nothing are
 * still up when a better one is due. It is tried when they are closed, since no event will ask for
 * it again. */
static void better_than_superfluous(void)
{
	static struct ha_ctx ctx = { .clock = &ha_clock_live };
	static struct ha_device device[2];
	struct ha_send *s = with_rail(&ctx, device);
	uint64_t now = 10000 * MS;

	spare_up(s, 1, &device[0], 8);
	spare_up(s, 2, &device[0], 9);
	for (unsigned i = 1; i <= 2; i++)
		s->b.failover->ctl[i].join.up_since = now;
	s->b.failover->spares.improve = true;
	s->b.failover->spares.improve_at = now;
	wanted_at(s, now);
	CHECK(s->b.failover->spares.improve);
	CHECK_INT(s->b.active, 7);
	wanted_at(s, now + 500 * MS); /* one of them is enough against a NIC there */
	CHECK(s->b.active == 3 || s->b.active == 5);
	for (unsigned i = 1; i <= 2; i++)
		if (s->b.rail[i].state != HA_RAIL_UP)
			s->b.rail[i].state = HA_RAIL_DOWN;
	CHECK(wanted_at(s, now + 501 * MS));
	free(s);
}

/* Spares without weight that add no protection are closed, half a second after they came up. */
static void superfluous_are_closed(void)
{
	static struct ha_ctx ctx = { .clock = &ha_clock_live };
	static struct ha_device device[2];
	struct ha_send *s = with_rail(&ctx, device);
	uint64_t now = 10000 * MS;

	spare_up(s, 1, &device[1], 9);
	spare_up(s, 2, &device[0], 9);
	s->b.failover->ctl[2].join.up_since = now;
	wanted_at(s, now + 500 * MS - 1);
	CHECK_INT(s->b.schedule->due, now + 500 * MS);
	CHECK_INT(s->b.rail[2].state, HA_RAIL_UP);
	wanted_at(s, now + 500 * MS);
	CHECK_INT(s->b.rail[2].state, HA_RAIL_FENCING);
	CHECK_INT(s->b.rail[2].loss.cause, HA_CAUSE_SURPLUS);
	CHECK_INT(s->b.rail[1].state, HA_RAIL_UP); /* this one alone protects as well as both */
	wanted_at(s, now + 900 * MS);
	CHECK_INT(s->b.active, 3);
	free(s);

	s = with_rail(&ctx, device); /* it carries */
	spare_up(s, 1, &device[1], 9);
	spare_up(s, 2, &device[0], 9);
	s->b.balance.weight[2] = 1;
	wanted_at(s, now);
	CHECK_INT(s->b.rail[2].state, HA_RAIL_UP);
	CHECK_INT(s->b.rail[1].state, HA_RAIL_UP); /* and needs this one */
	free(s);

	s = with_rail(&ctx, device); /* each adds something: one a NIC here, one there */
	spare_up(s, 1, &device[1], 0);
	spare_up(s, 2, &device[0], 9);
	wanted_at(s, now);
	CHECK_INT(s->b.active, 7);
	spare_up(s, 3, &device[1], 0); /* this one nothing */
	wanted_at(s, now);
	CHECK(s->b.active == 7 || s->b.active == 0xd);
	free(s);
}

/* Rail `rail` is up, on our NIC `here` and the peer's of the other name. */
static void cross_up(struct ha_send *s, unsigned rail, struct ha_device *here, const char *there)
{
	spare_up(s, rail, here, 1);
	strcpy(s->b.rail[rail].setup.peer.name, there);
}

static struct ha_send *with_crossed_rail(struct ha_ctx *ctx, struct ha_device *device)
{
	struct ha_send *s = with_rail(ctx, device);

	for (int i = 0; i < 2; i++) {
		device[i].ports = 2;
		snprintf(device[i].name, sizeof(device[i].name), "nic%d:1", i);
	}
	cross_up(s, 0, &device[0], "nic1:1");
	return s;
}

/* The data path leads from one leaf switch to another, as the NICs' names have it: one standby more
 * on each, one at a time, and all stay. Not where a number is given, nor where there is one port.
 */
static void one_on_each_switch(void)
{
	static struct ha_ctx ctx = { .clock = &ha_clock_live };
	static struct ha_device device[2];
	struct ha_send *s = with_crossed_rail(&ctx, device);
	uint64_t now = 10000 * MS;

	CHECK_INT(wanted_at(s, now), 2);
	cross_up(s, 1, &device[1], "nic0:1");
	CHECK_INT(wanted_at(s, now), 4);
	ctx.config.standbys = 1;
	CHECK_INT(wanted_at(s, now), 0);
	ctx.config.standbys = 0;
	s->b.failover->spares.peer_ports = 1;
	CHECK_INT(wanted_at(s, now), 0);
	s->b.failover->spares.peer_ports = 2;
	device[0].ports = 1;
	CHECK_INT(wanted_at(s, now), 0);
	device[0].ports = 2;
	cross_up(s, 2, &device[1], "nic1:1");
	CHECK_INT(wanted_at(s, now), 8);
	cross_up(s, 3, &device[0], "nic0:1");
	CHECK_INT(wanted_at(s, now), 0);
	CHECK_INT(s->b.active, 0xf);
	for (unsigned i = 0; i <= SPARES; i++)
		CHECK_INT(s->b.rail[i].state, HA_RAIL_UP);
	free(s);
}

/* All spares are up, on the data path's own NIC here: further standbys take the place that a better
 * one needs. One of them is closed when it is due, and comes up on another NIC. */
static void further_make_room(void)
{
	static struct ha_ctx ctx = { .clock = &ha_clock_live };
	static struct ha_device device[2];
	struct ha_send *s = with_crossed_rail(&ctx, device);
	uint64_t now = 10000 * MS;
	unsigned closed = 0;

	s->b.failover->spares.peer_ports = 4;
	cross_up(s, 1, &device[0], "nic0:1");
	cross_up(s, 2, &device[0], "nic2:1");
	cross_up(s, 3, &device[0], "nic3:1");
	wanted_at(s, now);
	CHECK_INT(s->b.active, 0xf);
	s->b.failover->spares.improve = true;
	s->b.failover->spares.improve_at = now;
	wanted_at(s, now - 1);
	CHECK_INT(s->b.active, 0xf);
	wanted_at(s, now);
	for (unsigned i = 1; i <= SPARES; i++)
		if (s->b.rail[i].state == HA_RAIL_FENCING) {
			CHECK_INT(s->b.rail[i].loss.cause, HA_CAUSE_SURPLUS);
			closed |= 1u << i;
			s->b.rail[i].state = HA_RAIL_DOWN;
		}
	CHECK(closed && !(closed & (closed - 1)));
	CHECK_INT(wanted_at(s, now + 1), closed);
	cross_up(s, (unsigned)__builtin_ctz(closed), &device[1], "nic1:1");
	CHECK_INT(wanted_at(s, now + 2), 0);
	CHECK_INT(s->b.active, 0xf);
	CHECK(!s->b.failover->spares.improve);
	free(s);
}

/* Hosts whose NICs all hang on one switch each: the data path crosses two, and no pair avoids that
 * of this end. Further standbys would be of no use. */
static void no_other_switch(void)
{
	static struct ha_topo_device port[2];
	static struct ha_ctx ctx = { .clock = &ha_clock_live };
	static struct ha_device device[2];
	struct ha_send *s = with_crossed_rail(&ctx, device);
	uint64_t now = 10000 * MS;

	s->b.terms.flags |= HA_FLAG_SWITCHES;
	for (int i = 0; i < 2; i++) {
		port[i] = (struct ha_topo_device) { .place.rail_id = -1, .place.at.id = "mac:1" };
		device[i].topo = &port[i];
	}
	cross_up(s, 1, &device[1], "nic0:1");
	for (unsigned i = 0; i < 2; i++)
		s->b.rail[i].setup.peer.keys = ha_leaf_of_switch("mac:2") << 8;
	CHECK_INT(wanted_at(s, now), 0);
	strcpy(port[1].place.at.id, "mac:2");
	s->b.rail[1].setup.peer.keys = ha_leaf_of_switch("mac:1") << 8;
	CHECK_INT(wanted_at(s, now), 4);
	device[1].up = false; /* for the moment there is none either */
	CHECK_INT(wanted_at(s, now), 0);
	free(s);
}

/* A receiver, an old peer, a connection that ends: nothing is wanted. */
static void when_it_has_none(void)
{
	static struct ha_ctx ctx = { .clock = &ha_clock_live };
	static struct ha_device device[2];

	for (unsigned i = 0; i < 7; i++) {
		struct ha_send *s = with_rail(&ctx, device);

		s->b.is_send = i != 1;
		s->b.terms.flags = i == 2 ? HA_FLAG_FAILOVER : HA_FLAG_FAILOVER | HA_FLAG_PAIRS;
		s->b.error = -(i == 3);
		s->b.abort->error = -(i == 4);
		s->b.peer_closed = i == 5;
		s->b.nrails = i == 6 ? 1 : s->b.nrails;
		CHECK_INT(wanted_at(s, 1000 * MS), i ? 0 : 2);
		free(s);
	}
}

/* No path gives a sign: all that are down are offered for a second, as far as there are pairs;
 * again after a second, then two, four, until a path was given up for it. */
static void more_when_all_are_silent(void)
{
	static struct ha_ctx ctx = { .clock = &ha_clock_live };
	static struct ha_device device[2];
	struct ha_send *s = with_rail(&ctx, device);
	uint64_t now = 100000 * MS, from = now;

	spare_up(s, 1, &device[1], 9);
	s->b.failover->ctl[1].join.up_since = s->b.failover->ctl[1].join.retry_at = UINT64_MAX - MS;
	s->b.failover->ctl[2].join.retry_at = UINT64_MAX;
	CHECK(ha_spares_may_add(&s->b));
	ha_spares_add(&s->b, now);
	CHECK(ha_spares_adding(&s->b, now + 1000 * MS - 1));
	CHECK(!ha_spares_adding(&s->b, now + 1000 * MS));
	CHECK_INT(s->b.schedule->due, now);
	CHECK_INT(s->b.failover->ctl[2].join.retry_at, 0);
	CHECK_INT(wanted_at(s, now), 0xc);
	device[1].up = false; /* two pairs are left, of which the data rail has one */
	CHECK_INT(wanted_at(s, now), 0);
	device[1].up = true;
	CHECK_INT(wanted_at(s, now + 1000 * MS), 0);
	for (unsigned i = 0; i < 9; i++) {
		from += 1000 * MS + (1000 * MS << (i < 6 ? i : 6));
		ha_spares_add(&s->b, from - 1);
		CHECK(!ha_spares_adding(&s->b, from - 1));
		ha_spares_add(&s->b, from);
		CHECK(ha_spares_adding(&s->b, from));
	}
	ha_spares_added(&s->b);
	CHECK(!ha_spares_adding(&s->b, from));
	ha_spares_add(&s->b, from);
	CHECK_INT(s->b.failover->spares.add_from, from + 2000 * MS);
	free(s);

	for (unsigned i = 0; i < 5; i++) { /* who may */
		s = with_rail(&ctx, device);
		s->b.is_send = i != 1;
		s->b.terms.flags = i == 2 ? HA_FLAG_FAILOVER : HA_FLAG_FAILOVER | HA_FLAG_PAIRS;
		for (unsigned k = 1; i == 3 && k <= SPARES; k++)
			s->b.rail[k].state = HA_RAIL_UP;
		s->b.nrails = i == 4 ? 1 : s->b.nrails;
		CHECK_INT(ha_spares_may_add(&s->b), i == 0);
		ha_spares_add(&s->b, now);
		CHECK_INT(ha_spares_adding(&s->b, now), i == 0);
		free(s);
	}
}

/* Without any rail: the thread that makes a queue pair makes one at a time, behind the ends that
 * the peer waits for. */
static void one_after_the_other(void)
{
	static struct ha_ctx ctx = { .clock = &ha_clock_live };
	static struct ha_device device[2];
	struct ha_send *s = without_rail(&ctx, device);
	const struct ha_rail *r = &s->b.rail[2];
	uint64_t now = 1000 * MS;

	CHECK_INT(ha_spares_turn_at(&s->b, r), 0);
	s->b.failover->spares.open_ns = 20 * MS;
	s->b.rail[0].loss.lost_at = now;
	CHECK_INT(ha_spares_turn_at(&s->b, r), now + 5 * MS);
	s->b.rail[1].state = HA_RAIL_JOIN;
	s->b.failover->ctl[1].join.since = now + 3 * MS;
	CHECK_INT(ha_spares_turn_at(&s->b, r), now + 83 * MS);
	s->b.rail[1].state = HA_RAIL_PROBE;
	CHECK_INT(ha_spares_turn_at(&s->b, r), now + 83 * MS);
	s->b.failover->spares.open_ns = 1000 * MS; /* a driver that is slow, up to a limit */
	CHECK_INT(ha_spares_turn_at(&s->b, r), now + 250 * MS);
	CHECK_INT(ha_spares_answer_ns(&s->b), 400 * MS);
	CHECK_INT(ha_spares_probe_ns(&s->b), 240 * MS);
	s->b.rail[1].state = HA_RAIL_DOWN;
	s->b.failover->ctl[1].slow = HA_SLOW_OPEN;
	CHECK(ha_spares_turn_at(&s->b, r) == UINT64_MAX);
	CHECK(ha_spares_turn_at(&s->b, &s->b.rail[1]) != UINT64_MAX); /* that is itself */
	free(s);
}

/* A pair that comes up was no bad one. Alone: whatever failed while nothing worked says nothing.
 * One that is lost counts as tried. */
static void what_was_tried(void)
{
	static struct ha_ctx ctx = { .clock = &ha_clock_live };
	static struct ha_device device[2];
	struct ha_send *s = with_rail(&ctx, device);
	struct ha_pair *pair[2];

	for (unsigned i = 0; i < 2; i++) {
		pair[i] = ha_spares_pair(&s->b, 0, &device[i]);
		pair[i]->tries = 3;
	}
	spare_up(s, 1, &device[1], 9);
	ha_spares_up(&s->b, &s->b.rail[1]);
	CHECK_INT(pair[1]->tries, 0);
	CHECK_INT(pair[0]->tries, 3);
	ha_spares_up(&s->b, &s->b.rail[0]); /* a data rail's is not chosen */
	CHECK_INT(pair[0]->tries, 3);
	s->b.active = 1;
	ha_spares_up(&s->b, &s->b.rail[0]);
	CHECK_INT(pair[0]->tries, 0);
	ha_spares_lost(&s->b, &s->b.rail[0]);
	CHECK_INT(pair[0]->tries, 0);
	ha_spares_lost(&s->b, &s->b.rail[1]);
	CHECK_INT(pair[1]->tries, 1);

	CHECK_INT(ha_spares_recent(&s->b, pair[0]), 0); /* never */
	CHECK_INT(ha_spares_recent(&s->b, pair[1]), HA_TURNS_MAX);
	ha_spares_tried(&s->b, 0, &device[0]);
	CHECK_INT(ha_spares_recent(&s->b, pair[1]), HA_TURNS_MAX - 1);
	s->b.failover->spares.turns += HA_TURNS_MAX;
	CHECK_INT(ha_spares_recent(&s->b, pair[1]), 0); /* long ago */

	pair[0]->tries = 7; /* what failed long ago says less */
	pair[1]->tries = 254;
	ha_spares_tried(&s->b, 0, &device[1]);
	CHECK_INT(pair[1]->tries, 127);
	CHECK_INT(pair[0]->tries, 3);

	for (uint64_t peer = 1; peer <= HA_PAIRS_MAX - 2; peer++)
		ha_spares_pair(&s->b, peer, &device[0])->tries = 1;
	CHECK_INT(ha_spares_pair(&s->b, 0, &device[1])->tries, 127); /* still known */
	ha_spares_pair(&s->b, 1000, &device[0]); /* the oldest is forgotten for it */
	CHECK_INT(ha_spares_pair(&s->b, 5, &device[0])->tries, 1);
	CHECK_INT(ha_spares_pair(&s->b, 0, &device[1])->tries, 127);
	CHECK_INT(ha_spares_pair(&s->b, 0, &device[0])->tries, 0);
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
	one_stands_by();
	two_when_a_spare_carries();
	behind_what_was_lost();
	better_than_superfluous();
	superfluous_are_closed();
	one_on_each_switch();
	further_make_room();
	no_other_switch();
	when_it_has_none();
	more_when_all_are_silent();
	one_after_the_other();
	what_was_tried();
	return 0;
}
