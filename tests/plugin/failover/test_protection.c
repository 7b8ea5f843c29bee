/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which single failure a set of rails survives: of a NIC here, of one there, of either, or of a
 * leaf switch. Two hosts with four NICs each; NICs 0 and 1 are on the first leaf switch, 2 and 3 on
 * the second.
 */
#include "base/check.h"
#include "plugin/bundle.h"
#include "plugin/device/device.h"
#include "plugin/failover/protection.h"
#include "rdma/topo/device.h"
#include "tests/plugin/ends.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NICS 4

static struct ha_topo_device topo[NICS];
static struct ha_device device[NICS];

static uint32_t place_of(int nic)
{
	return ha_device_place(&device[nic]);
}

static struct ha_bundle *make_bundle(void)
{
	struct ha_bundle *b = new_end(true);

	CHECK(b);
	for (int i = 0; i < NICS; i++) {
		topo[i].place.rail_id = i / 2;
		topo[i].place.plane_id = -1;
		device[i].topo = &topo[i];
		snprintf(device[i].name, sizeof(device[i].name), "nic%d:1", i);
	}
	b->terms.flags = HA_FLAG_FAILOVER | HA_FLAG_PAIRS;
	return b;
}

/* Rail `rail` is between NIC `here` and the peer's NIC `there`. */
static void connect_nics(struct ha_bundle *b, unsigned rail, int here, int there)
{
	struct ha_wire_rail *peer = &b->rail[rail].setup.peer;

	b->rail[rail].dev = &device[here];
	*peer = (struct ha_wire_rail) { .guid = 7, .keys = place_of(there) << 8 | 3 };
	snprintf(peer->name, sizeof(peer->name), "nic%d:1", there);
}

/* What two rails between these NICs protect against. */
static enum ha_status_against protection_of(int here0, int there0, int here1, int there1)
{
	struct ha_bundle *b = make_bundle();
	enum ha_status_against found;

	connect_nics(b, 1, here0, there0);
	connect_nics(b, 3, here1, there1);
	found = ha_protection(b, 0xa);
	CHECK_INT(ha_protection(b, 2), HA_AGAINST_NOTHING); /* either alone */
	CHECK_INT(ha_protection(b, 8), HA_AGAINST_NOTHING);
	free(b);
	return found;
}

static void two_rails(void)
{
	CHECK_INT(protection_of(0, 0, 0, 0), HA_AGAINST_NOTHING);
	CHECK_INT(protection_of(0, 0, 1, 0), HA_AGAINST_NIC_HERE);
	CHECK_INT(protection_of(0, 0, 0, 1), HA_AGAINST_NIC_THERE);
	CHECK_INT(protection_of(0, 0, 1, 1), HA_AGAINST_NIC); /* all on one switch */
	CHECK_INT(protection_of(0, 0, 2, 2), HA_AGAINST_SWITCH);
	CHECK_INT(protection_of(0, 0, 2, 1),
		  HA_AGAINST_NIC); /* the first switch takes both along */
	CHECK_INT(protection_of(0, 0, 1, 2), HA_AGAINST_NIC);
	CHECK_INT(protection_of(0, 2, 1, 3), HA_AGAINST_NIC); /* across: either switch does */
	CHECK_INT(protection_of(0, 2, 2, 0), HA_AGAINST_NIC);
}

/* Without any rail nothing is survived. */
static void no_rail(void)
{
	struct ha_bundle *b = make_bundle();

	CHECK_INT(ha_protection(b, 0), HA_AGAINST_NOTHING);
	CHECK_INT(ha_protection_shared_place(b, 0), 0);
	free(b);
}

/* What a third rail adds: switch and NIC each leave one of the others. */
static void three_rails(void)
{
	struct ha_bundle *b = make_bundle();

	connect_nics(b, 0, 0, 0);
	connect_nics(b, 1, 1, 0);
	connect_nics(b, 2, 2, 2);
	CHECK_INT(ha_protection(b, 3), HA_AGAINST_NIC_HERE);
	CHECK_INT(ha_protection(b, 5), HA_AGAINST_SWITCH);
	CHECK_INT(ha_protection(b, 6), HA_AGAINST_SWITCH);
	CHECK_INT(ha_protection(b, 7), HA_AGAINST_SWITCH);
	free(b);
}

/* The switch that takes all rails along is named for the operator; none is promised where one end's
 * place is not known. */
static void shared_switch(void)
{
	struct ha_bundle *b = make_bundle();

	connect_nics(b, 0, 0, 0);
	connect_nics(b, 1, 1, 1);
	CHECK_INT(ha_protection_shared_place(b, 3), place_of(0));
	connect_nics(b, 1, 2, 1); /* at the far end only */
	CHECK_INT(ha_protection_shared_place(b, 3), place_of(0));
	connect_nics(b, 0, 2, 0); /* here both on the second, there both on the first */
	CHECK(ha_protection_shared_place(b, 3));
	connect_nics(b, 0, 0, 0);
	connect_nics(b, 1, 2, 2);
	CHECK_INT(ha_protection_shared_place(b, 3), 0);
	CHECK_INT(ha_protection(b, 3), HA_AGAINST_SWITCH);

	topo[2].place.rail_id = -1; /* not known here */
	CHECK_INT(ha_protection(b, 3), HA_AGAINST_NIC);
	CHECK_INT(ha_protection_shared_place(b, 3), 0);
	topo[2].place.rail_id = 1;
	b->rail[1].setup.peer.keys = 3; /* or there */
	CHECK_INT(ha_protection(b, 3), HA_AGAINST_NIC);
	CHECK_INT(ha_protection_shared_place(b, 3), 0);
	free(b);

	b = make_bundle(); /* an old peer's number of keys is no place */
	connect_nics(b, 0, 0, 0);
	connect_nics(b, 1, 2, 2);
	b->terms.flags = HA_FLAG_FAILOVER;
	CHECK_INT(ha_peer_place(b, &b->rail[1].setup.peer), 0);
	CHECK_INT(ha_protection(b, 3), HA_AGAINST_NIC);
	free(b);
}

/* Two planes of one rail are two switches. */
static void planes_are_switches(void)
{
	struct ha_bundle *b = make_bundle();

	topo[0].place.plane_id = 0;
	topo[1].place.plane_id = 1;
	connect_nics(b, 0, 0, 0);
	connect_nics(b, 1, 1, 1);
	CHECK_INT(ha_protection(b, 3), HA_AGAINST_SWITCH);
	free(b);
}

/* Places of no use: NICs are presumed to hang on one switch if they have one name. */
static struct ha_bundle *make_unplaced(void)
{
	struct ha_bundle *b = make_bundle();

	for (int i = 0; i < NICS; i++)
		topo[i].place.rail_id = -1;
	return b;
}

static uint64_t presumed(const struct ha_bundle *b, unsigned rails)
{
	return ha_protection_presumed_switch(b, rails).mark;
}

/* A path from NIC 0 to NIC 1 and one from NIC 1 to NIC 0 share both switches; each pair of equal
 * names survives one of them. */
static void presumed_by_name(void)
{
	struct ha_bundle *b = make_unplaced();
	struct ha_presumed_switch shared;

	connect_nics(b, 0, 0, 1);
	connect_nics(b, 1, 1, 0);
	CHECK(ha_protection_crosses(b, 1));
	shared = ha_protection_presumed_switch(b, 3);
	CHECK(shared.mark);
	CHECK(!shared.by_place);
	CHECK(ha_protection_is_on(&shared, &device[0]) != ha_protection_is_on(&shared, &device[1]));
	CHECK(!ha_protection_is_on(&shared, &device[2]));
	connect_nics(b, 2, 1, 1);
	connect_nics(b, 3, 0, 0);
	CHECK(!ha_protection_crosses(b, 0xc));
	CHECK(presumed(b, 7));
	CHECK(presumed(b, 0xb));
	CHECK_INT(presumed(b, 0xf), 0);
	CHECK_INT(presumed(b, 0xc), 0);
	CHECK_INT(ha_protection(b, 0xf), HA_AGAINST_NIC); /* nothing is promised by names */
	connect_nics(b, 1, 2, 3);                         /* a standby on two others */
	CHECK_INT(presumed(b, 3), 0);
	CHECK_INT(presumed(b, 0), 0);
	free(b);
}

/* Both ends find the same switch: what is here for one is there for the other. */
static void presumed_alike_at_both_ends(void)
{
	struct ha_bundle *b = make_unplaced();
	uint64_t mark;

	connect_nics(b, 0, 2, 3);
	connect_nics(b, 1, 3, 2);
	mark = presumed(b, 3);
	CHECK(mark);
	connect_nics(b, 0, 3, 2);
	connect_nics(b, 1, 2, 3);
	CHECK_INT(presumed(b, 3), mark);
	free(b);
}

/* Rail and plane come before the names: NICs 0 and 1 are on one switch. */
static void presumed_by_place(void)
{
	struct ha_bundle *b = make_bundle();
	struct ha_presumed_switch shared;

	connect_nics(b, 0, 0, 1);
	CHECK(!ha_protection_crosses(b, 1));
	connect_nics(b, 0, 0, 2);
	CHECK(ha_protection_crosses(b, 1));
	connect_nics(b, 1, 3, 1);
	shared = ha_protection_presumed_switch(b, 3);
	CHECK(shared.by_place);
	CHECK_INT(shared.mark, place_of(0));
	CHECK(ha_protection_is_on(&shared, &device[1]));
	CHECK(!ha_protection_is_on(&shared, &device[2]));
	free(b);
}

/* Switches that the file of `ha switches` names instead of rails, at both ends. */
static void switches_of_the_file(void)
{
	struct ha_bundle *b = make_bundle();

	b->terms.flags |= HA_FLAG_SWITCHES;
	for (int i = 0; i < NICS; i++) {
		topo[i].place.rail_id = -1;
		snprintf(topo[i].place.at.id, sizeof(topo[i].place.at.id), "mac:%d", i / 2);
	}
	connect_nics(b, 0, 0, 0);
	connect_nics(b, 1, 2, 2);
	CHECK_INT(ha_protection(b, 3), HA_AGAINST_SWITCH);
	connect_nics(b, 1, 1, 1); /* all on one */
	CHECK_INT(ha_protection(b, 3), HA_AGAINST_NIC);
	CHECK_INT(ha_protection_shared_place(b, 3), place_of(0));
	connect_nics(b, 1, 1, 2); /* here on one, there on two */
	CHECK_INT(ha_protection(b, 3), HA_AGAINST_NIC);

	connect_nics(b, 1, 2, 2);
	CHECK_INT(ha_sent_place(b, &device[2]), place_of(2));
	b->terms.flags &= ~HA_FLAG_SWITCHES; /* a peer that takes a switch for a rail */
	CHECK_INT(ha_sent_place(b, &device[2]), 0);
	CHECK_INT(ha_peer_place(b, &b->rail[1].setup.peer), 0);
	CHECK_INT(ha_protection(b, 3), HA_AGAINST_NIC);
	memset(topo, 0, sizeof(topo));
	free(b);
}

/* A rail at one end and a switch at the other, or on two NICs of one end, are nothing that can be
 * compared. */
static void kinds_are_not_compared(void)
{
	struct ha_bundle *b = make_bundle();

	b->terms.flags |= HA_FLAG_SWITCHES;
	connect_nics(b, 0, 0, 0);
	connect_nics(b, 1, 2, 2);
	CHECK_INT(ha_protection(b, 3), HA_AGAINST_SWITCH);
	b->rail[1].setup.peer.keys = ha_leaf_of_switch("mac:1") << 8; /* there */
	CHECK_INT(ha_protection(b, 3), HA_AGAINST_NIC);
	CHECK_INT(ha_protection_shared_place(b, 3), 0);
	b->rail[0].setup.peer.keys = ha_leaf_of_switch("mac:1") << 8; /* on all NICs there */
	CHECK_INT(ha_protection(b, 3), HA_AGAINST_NIC);
	CHECK_INT(ha_protection_shared_place(b, 3), 0);

	connect_nics(b, 0, 0, 0);
	connect_nics(b, 1, 2, 2);
	topo[2].place.rail_id = -1; /* here, on one NIC */
	strcpy(topo[2].place.at.id, "mac:1");
	CHECK_INT(ha_protection(b, 3), HA_AGAINST_NIC);
	CHECK_INT(ha_protection_shared_place(b, 3), 0);
	memset(topo, 0, sizeof(topo));
	free(b);
}

/* What HELLO has is read as "not known" by a hawser that does not know of switches, and as the same
 * place as in other messages by one that does. */
static void places_in_hello(void)
{
	uint32_t leaf = ha_leaf_of_switch("mac:1"), rail = 5 << 12 | 2;

	CHECK_INT(ha_wire_place(ha_wire_hello_keys(leaf)), 0);
	CHECK_INT(ha_wire_place(ha_wire_keys_of_hello(ha_wire_hello_keys(leaf))), leaf);
	CHECK_INT(ha_wire_place(ha_wire_hello_keys(rail)), rail);
	CHECK_INT(ha_wire_place(ha_wire_keys_of_hello(ha_wire_hello_keys(rail))), rail);
	CHECK_INT(ha_wire_keys_of_hello(ha_wire_hello_keys(0)), 0);
}

/* The peer's NICs are told apart by name, ports of one card too, and cards of one name by their
 * GUID. */
static void peer_devices(void)
{
	struct ha_wire_rail a = { .guid = 7, .name = "mlx5_0:1" }, b = a;

	CHECK_INT(ha_peer_device(&a), ha_peer_device(&b));
	b.qp.qpn = 9; /* another incarnation */
	CHECK_INT(ha_peer_device(&a), ha_peer_device(&b));
	strcpy(b.name, "mlx5_0:2");
	CHECK(ha_peer_device(&a) != ha_peer_device(&b));
	b = a;
	b.guid = 8 << 4;
	CHECK(ha_peer_device(&a) != ha_peer_device(&b));
	memset(&b, 0, sizeof(b));
	CHECK(ha_peer_device(&b));           /* 0 is the sender's own */
	memset(b.name, 'x', sizeof(b.name)); /* not ended */
	CHECK(ha_peer_device(&b));
}

static void from_the_least_to_the_best(void)
{
	static const enum ha_status_against order[] = { HA_AGAINST_NOTHING, HA_AGAINST_NIC_HERE,
							HA_AGAINST_NIC, HA_AGAINST_SWITCH };

	for (unsigned i = 0; i + 1 < sizeof(order) / sizeof(order[0]); i++)
		CHECK(ha_protection_rank(order[i]) < ha_protection_rank(order[i + 1]));
	CHECK_INT(ha_protection_rank(HA_AGAINST_NIC_THERE),
		  ha_protection_rank(HA_AGAINST_NIC_HERE));
	CHECK_TEXT(ha_protection_text(HA_AGAINST_NOTHING), "nothing");
	CHECK_TEXT(ha_protection_text(HA_AGAINST_NIC), "the loss of a NIC");
}

int main(void)
{
	two_rails();
	no_rail();
	three_rails();
	shared_switch();
	planes_are_switches();
	presumed_by_name();
	presumed_alike_at_both_ends();
	presumed_by_place();
	switches_of_the_file();
	kinds_are_not_compared();
	places_in_hello();
	peer_devices();
	from_the_least_to_the_best();
	return 0;
}
