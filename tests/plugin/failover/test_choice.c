/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device for a spare's next incarnation: when the old one is waited for, and which other takes
 * its place; at the receiver, which knows the peer's, also which one reaches that.
 */
#include "base/check.h"
#include "base/clock.h"
#include "plugin/bundle.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "plugin/failover/choice.h"
#include "plugin/failover/protection.h"
#include "rdma/topo/device.h"
#include "tests/plugin/ends.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PORTS 4
#define SPARE 1
#define MS HA_NS_PER_MS

static struct ha_topo topo;
static struct ha_device device[PORTS];
static struct ha_ctx ctx = { .clock = &ha_clock_live, .topo = &topo, .devices = device };
static const uint64_t now = 100000 * MS;

/* By hand: ha_topo_refresh would say so. */
static void change_list(void)
{
	free(topo.standby);
	topo.standby = NULL;
}

/* Rail 0 carries on device 0; the spare was on device 1, which was tried without success more often
 * than 2 and 3: another choice is not that one. */
static struct ha_send *make_sender(void)
{
	struct ha_send *s = new_send();
	struct ha_pair *pair;

	CHECK(s);
	ctx.nports = topo.ndevices = topo.nports = PORTS;
	for (int i = 0; i < PORTS; i++) {
		struct ha_topo_device *t = &topo.devices[i];

		*t = (struct ha_topo_device) { .up = true,
					       .place.is_soft = true,
					       .place.rail_id = -1,
					       .place.plane_id = -1,
					       .place.numa_node = -1 };
		snprintf(t->name, sizeof(t->name), "nic%d", i);
		device[i] = (struct ha_device) { .topo = t, .index = i, .up = true };
		snprintf(device[i].name, sizeof(device[i].name), "nic%d:1", i);
		pthread_mutex_init(&device[i].lock, NULL);
	}
	s->b.ctx = &ctx;
	s->b.is_send = true;
	s->b.terms.flags = HA_FLAG_FAILOVER | HA_FLAG_PAIRS | HA_FLAG_MOVES;
	s->b.nrails = 3;
	s->b.balance.ndata = 1;
	s->b.balance.weight[0] = 1024;
	s->b.failover->spares.peer_ports = 2;
	s->b.active = 1;
	for (unsigned i = 0; i < s->b.nrails; i++) {
		s->b.rail[i].index = (uint8_t)i;
		s->b.rail[i].state = i ? HA_RAIL_DOWN : HA_RAIL_UP;
	}
	s->b.rail[0].dev = &device[0];
	s->b.rail[SPARE].dev = &device[1];
	s->b.rail[SPARE].proven = true;
	s->b.rail[SPARE].loss.lost_at = now;
	pair = ha_spares_pair(&s->b, 0, &device[1]);
	pair->tries = 8;
	pair->turn = s->b.failover->spares.turns = 1;
	change_list();
	return s;
}

static int choose_device(struct ha_send *s, uint64_t at)
{
	uint32_t turns = s->b.failover->spares.turns;
	struct ha_device *dev = ha_choose_device(&s->b, &s->b.rail[SPARE], at);

	CHECK_INT(s->b.failover->spares.turns, turns + (dev != NULL)); /* the try counts */
	return dev ? dev->index : -1;
}

static void waits_for_one_that_was_well(void)
{
	struct ha_send *s = make_sender();

	CHECK_INT(choose_device(s, now), 1);
	s->b.failover->ctl[SPARE].join.attempts = 1;
	CHECK_INT(choose_device(s, now), 1);
	s->b.failover->ctl[SPARE].join.attempts = 2; /* it only seems to be well */
	CHECK_INT(choose_device(s, now), 2);
	free(s);

	s = make_sender();
	device[1].up = false; /* it may be back in a moment */
	s->b.failover->ctl[SPARE].join.attempts = 9;
	CHECK_INT(choose_device(s, now + 2000 * MS - 1), 1);
	CHECK_INT(choose_device(s, now + 2000 * MS), 2);
	free(s);
}

static void does_not_wait(void)
{
	struct ha_send *s = make_sender();

	s->b.rail[SPARE].proven = false; /* it never worked */
	CHECK_INT(choose_device(s, now), 2);
	free(s);

	s = make_sender();
	atomic_store(&device[1].failed, -EIO);
	CHECK_INT(choose_device(s, now), 2);
	free(s);

	s = make_sender(); /* another spare is up there: elsewhere this one protects better */
	s->b.rail[2].dev = &device[1];
	s->b.rail[2].state = HA_RAIL_UP;
	s->b.active |= 4;
	CHECK_INT(choose_device(s, now), 2);
	free(s);

	s = make_sender(); /* a better standby is wanted now: one that is away is none */
	s->b.failover->spares.improve = true;
	s->b.failover->spares.improve_at = now;
	CHECK_INT(choose_device(s, now), 1);
	CHECK(!s->b.failover->spares.improve);
	s->b.failover->spares.improve = true;
	device[1].up = false;
	CHECK_INT(choose_device(s, now), 2);
	free(s);

	s = make_sender(); /* no rail is up: each pair has its turn */
	s->b.active = 0;
	CHECK_INT(choose_device(s, now), 2);
	free(s);
}

/* In this order of weight: tries without success, rails that are up on it, the leaf switch of the
 * data. */
static void the_best_of_the_others(void)
{
	struct ha_send *s = make_sender();

	s->b.rail[SPARE].proven = false;
	strcpy(s->b.rail[0].setup.peer.name,
	       "nic2:1"); /* on hosts that are alike: the same switch */
	CHECK_INT(choose_device(s, now), 3);
	s->b.rail[2].dev = &device[3];
	s->b.rail[2].state = HA_RAIL_UP;
	s->b.active |= 4;
	CHECK_INT(choose_device(s, now), 2);
	ha_spares_pair(&s->b, 0, &device[2])->tries = 8;
	ha_spares_pair(&s->b, 0, &device[3])->tries = 0;
	CHECK_INT(choose_device(s, now), 3);
	free(s);

	s = make_sender(); /* those that are up; the data rail's own is the last resort */
	s->b.rail[SPARE].proven = false;
	device[2].up = false;
	CHECK_INT(choose_device(s, now), 3);
	device[1].up = device[3].up = false;
	CHECK_INT(choose_device(s, now), 0);
	s->b.failover->spares.peer_ports = 1; /* its only pair is the data rail's */
	CHECK_INT(choose_device(s, now), -1);
	s->b.failover->spares.peer_ports = 2;
	s->b.terms.flags &= ~(uint32_t)HA_FLAG_PAIRS; /* an old peer never expects it there */
	CHECK_INT(choose_device(s, now), -1);
	free(s);
}

/* Without any rail the pair that was tried last comes last. */
static void turns_without_a_rail(void)
{
	struct ha_send *s = make_sender();
	unsigned seen = 0;

	s->b.active = 0;
	s->b.rail[0].state = HA_RAIL_DOWN;
	for (unsigned i = 0; i < PORTS; i++)
		seen |= 1U << choose_device(s, now);
	CHECK_INT(seen, (1 << PORTS) - 1);
	free(s);
}

/* The receiver chooses for the peer's device that is offered: another rail between the same two,
 * which is up or coming, has taken the pair; one that is down has not. */
static void a_pair_that_is_taken(void)
{
	struct ha_recv *c = new_recv();
	struct ha_send *like = make_sender();
	struct ha_wire_rail peer = { .guid = 9, .name = "peer:1" };
	static const struct {
		enum ha_rail_state state;
		enum ha_slow slow;
		bool taken;
	} other[] = {
		{ HA_RAIL_DOWN, HA_SLOW_NONE, false },   { HA_RAIL_FENCING, HA_SLOW_NONE, false },
		{ HA_RAIL_UP, HA_SLOW_NONE, true },      { HA_RAIL_JOIN, HA_SLOW_NONE, true },
		{ HA_RAIL_DOWN, HA_SLOW_CONNECT, true }, { HA_RAIL_DOWN, HA_SLOW_TIDY, false }
	};

	CHECK(c);
	c->b = like->b;
	c->b.is_send = false;
	c->b.rail[SPARE].setup.peer = c->b.rail[2].setup.peer = peer;
	c->b.failover->ctl[SPARE].join.offer = c->b.failover->ctl[2].join.offer = peer;
	c->b.rail[2].dev = &device[1];
	for (unsigned i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
		c->b.rail[2].state = (uint8_t)other[i].state;
		c->b.failover->ctl[2].slow = (uint8_t)other[i].slow;
		CHECK_INT(ha_choose_device(&c->b, &c->b.rail[SPARE], now) == &device[1],
			  !other[i].taken);
	}
	free(like);
	free(c);
}

/* A receiver whose spare is offered a connection from the peer's device `peer`; it was on none
 * yet. */
static struct ha_recv *make_receiver(const struct ha_wire_rail *peer)
{
	struct ha_recv *c = new_recv();
	struct ha_send *like = make_sender();
	struct ha_bundle own = c->b;

	c->b = like->b;
	c->b.failover = own.failover;
	c->b.schedule = own.schedule;
	c->b.link = own.link;
	c->b.abort = own.abort;
	c->b.refused = own.refused;
	*c->b.failover = *like->b.failover;
	free(like);
	c->b.is_send = false;
	c->b.nrails = 2;
	memset(&c->b.failover->spares, 0, sizeof(c->b.failover->spares));
	c->b.rail[SPARE].proven = false;
	c->b.failover->ctl[SPARE].join.offer = *peer;
	for (int i = 0; i < PORTS; i++)
		memcpy(topo.devices[i].address.gid.raw, (uint8_t[]) { 0xfe, 0x80, 0, (uint8_t)i },
		       4);
	change_list();
	return c;
}

static int chosen_there(struct ha_recv *c)
{
	const struct ha_device *dev = ha_choose_device(&c->b, &c->b.rail[SPARE], now);

	return dev ? dev->index : -1;
}

/* Of its devices the one that most likely reaches the peer's: of the same place, in the same
 * network, of the same name; but before all that, one that shares nothing with what is up. */
static void the_receivers_choice(void)
{
	struct ha_wire_rail peer = { .guid = 9, .name = "other:1" };
	struct ha_recv *c = make_receiver(&peer);

	memcpy(peer.qp.gid, topo.devices[3].address.gid.raw, sizeof(peer.qp.gid));
	free(c);
	c = make_receiver(&peer);
	CHECK_INT(chosen_there(c), 3); /* its network */
	free(c);

	memset(peer.qp.gid, 0xff, sizeof(peer.qp.gid));
	strcpy(peer.name, "nic2:1");
	c = make_receiver(&peer);
	CHECK_INT(chosen_there(c), 2);                  /* its name */
	strcpy(c->b.rail[0].setup.peer.name, "nic2:1"); /* on the switch of the data, it seems */
	CHECK_INT(chosen_there(c), 1);
	free(c);

	c = make_receiver(&peer);
	for (int i = 0; i < PORTS; i++)
		topo.devices[i].place.rail_id = i / 2;
	c->b.rail[0].setup.peer.keys = c->b.failover->ctl[SPARE].join.offer.keys =
		ha_device_place(&device[0]) << 8;
	CHECK_INT(chosen_there(c),
		  2); /* not on the leaf switch of the data, wherever the peer is */
	c->b.active = 0;
	CHECK_INT(chosen_there(c), 1); /* now its own place counts, and it is not tried yet */
	CHECK_INT(chosen_there(c), 0); /* the last of this place */
	CHECK_INT(chosen_there(c), 3);
	CHECK_INT(chosen_there(c), 2); /* it was tried before */
	free(c);

	c = make_receiver(&peer); /* what failed again and again comes last */
	ha_spares_pair(&c->b, ha_peer_device(&peer), &device[2])->tries = 2;
	CHECK_INT(chosen_there(c), 1);
	CHECK_INT(ha_spares_pair(&c->b, ha_peer_device(&peer), &device[1])->tries, 1);
	free(c);

	c = make_receiver(&peer); /* the same pair as before is waited for, if it was well */
	c->b.rail[SPARE].proven = true;
	c->b.rail[SPARE].setup.peer = peer;
	c->b.failover->ctl[SPARE].join.attempts = 0;
	c->b.rail[SPARE].loss.lost_at = now;
	CHECK_INT(chosen_there(c), 1);
	c->b.rail[SPARE].setup.peer.guid++; /* it was another of the peer's */
	CHECK_INT(chosen_there(c), 2);
	free(c);
}

/* The file of `ha switches` in the place of rails. */
static void the_receivers_choice_by_switches(void)
{
	struct ha_wire_rail peer = { .guid = 9, .name = "nic2:1" };
	struct ha_recv *c = make_receiver(&peer);

	c->b.terms.flags |= HA_FLAG_SWITCHES;
	for (int i = 0; i < PORTS; i++)
		snprintf(topo.devices[i].place.at.id, sizeof(topo.devices[i].place.at.id), "mac:%d",
			 i / 2);
	c->b.rail[0].setup.peer.keys = c->b.failover->ctl[SPARE].join.offer.keys =
		ha_leaf_of_switch("mac:0") << 8;
	CHECK_INT(chosen_there(c), 2); /* of the others' name, too, and not on the data's switch */
	strcpy(c->b.rail[0].setup.peer.name,
	       "nic2:1"); /* a name counts only where no switch does */
	CHECK_INT(chosen_there(c), 2);
	c->b.rail[0].setup.peer.keys = 1 << 20; /* rails there and switches here: names again */
	CHECK_INT(chosen_there(c), 3);
	free(c);
}

/* Is there a device on which any rail could come up again? */
static void where_one_could_ever_be(void)
{
	struct ha_send *s = make_sender();

	CHECK(ha_incarnation_possible(&s->b));
	atomic_store(&device[0].failed, -EIO); /* a spare may be on another */
	CHECK(ha_incarnation_possible(&s->b));
	device[1].up = device[2].up = device[3].up = false; /* they may come back */
	CHECK(ha_incarnation_possible(&s->b));
	for (int i = 1; i < PORTS; i++)
		atomic_store(&device[i].failed, -EIO);
	CHECK(!ha_incarnation_possible(&s->b));
	atomic_store(&device[0].failed, 0);
	s->b.nrails = 1;
	CHECK(ha_incarnation_possible(&s->b));
	atomic_store(&device[0].failed, -EIO);
	atomic_store(&device[1].failed, 0);
	CHECK(!ha_incarnation_possible(&s->b)); /* it has no spare */
	free(s);
}

/* A device of ours has a pair with each of the peer's, and not more: those that are up or coming
 * count. */
static void how_many_on_one_device(void)
{
	static const struct {
		enum ha_rail_state state;
		enum ha_slow slow;
		bool there;
	} other[] = {
		{ HA_RAIL_UP, HA_SLOW_NONE, true },    { HA_RAIL_JOIN, HA_SLOW_NONE, true },
		{ HA_RAIL_PROBE, HA_SLOW_NONE, true }, { HA_RAIL_DOWN, HA_SLOW_OPEN, true },
		{ HA_RAIL_DOWN, HA_SLOW_NONE, false }, { HA_RAIL_FENCING, HA_SLOW_NONE, false },
	};

	for (unsigned i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
		struct ha_send *s = make_sender();

		s->b.rail[SPARE].proven = false;
		s->b.failover->spares.peer_ports = 1;
		s->b.rail[2].dev = &device[2];
		s->b.rail[2].state = (uint8_t)other[i].state;
		s->b.failover->ctl[2].slow = (uint8_t)other[i].slow;
		CHECK_INT(choose_device(s, now), other[i].there ? 3 : 2);
		free(s);
	}
}

/* Two paths are up, crosswise, so that either of two leaf switches takes both along: the next pair
 * avoids one of them, at both ends the same. */
static void avoids_the_shared_switch(unsigned swapped)
{
	struct ha_send *s = make_sender();
	struct ha_presumed_switch shared;
	int avoids;

	ctx.nports = topo.ndevices = topo.nports = 2;
	change_list();
	for (unsigned i = 0; i < 2; i++)
		snprintf(device[i].name, sizeof(device[i].name), "nic%u:1", i ^ swapped);
	s->b.rail[SPARE].proven = false;
	s->b.rail[2].dev = &device[1];
	s->b.rail[2].state = HA_RAIL_UP;
	s->b.active = 5;
	strcpy(s->b.rail[0].setup.peer.name, device[1].name);
	strcpy(s->b.rail[2].setup.peer.name, device[0].name);
	shared = ha_protection_presumed_switch(&s->b, 5);
	avoids = ha_protection_is_on(&shared, &device[0]) ? 1 : 0;
	CHECK(ha_protection_is_on(&shared, &device[!avoids]));
	CHECK(!ha_protection_is_on(&shared, &device[avoids]));
	ha_spares_pair(&s->b, 0, &device[1])->tries = 0;
	CHECK_INT(choose_device(s, now), avoids);
	free(s);
}

/* All paths that are up lead from one device here to another switch, so that either of two switches
 * takes all along: a device of its own comes first, whichever switch it is on. */
static void another_device_comes_first(unsigned swapped)
{
	struct ha_send *s = make_sender();

	ctx.nports = topo.ndevices = topo.nports = 2;
	change_list();
	for (unsigned i = 0; i < 2; i++)
		snprintf(device[i].name, sizeof(device[i].name), "nic%u:1", i ^ swapped);
	s->b.rail[SPARE].proven = false;
	s->b.rail[2].dev = s->b.rail[0].dev;
	s->b.rail[2].state = HA_RAIL_UP;
	s->b.active = 5;
	for (unsigned i = 0; i <= 2; i += 2) {
		strcpy(s->b.rail[i].setup.peer.name, device[1].name);
		s->b.rail[i].setup.peer.qp.gid[15] = (uint8_t)(i + 1);
	}
	s->b.failover->spares.peer_ports = 3;
	ha_spares_pair(&s->b, 0, &device[1])->tries = 0;
	CHECK_INT(choose_device(s, now), 1);
	free(s);
}

int main(void)
{
	waits_for_one_that_was_well();
	does_not_wait();
	the_best_of_the_others();
	turns_without_a_rail();
	a_pair_that_is_taken();
	the_receivers_choice();
	the_receivers_choice_by_switches();
	where_one_could_ever_be();
	how_many_on_one_device();
	for (unsigned swapped = 0; swapped < 2; swapped++) {
		avoids_the_shared_switch(swapped);
		another_device_comes_first(swapped);
	}
	return 0;
}
