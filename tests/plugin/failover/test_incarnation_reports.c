/* SPDX-License-Identifier: BSD-3-Clause */
/* What the operator reads of a rail that comes up again, or does not, and of what protects then. */
#include "base/check.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "plugin/failover/failover.h"
#include "plugin/failover/protection.h"
#include "rdma/topo/device.h"
#include "tests/base/lines.h"
#include "tests/plugin/failover/incarnation_rig.h"

#include <string.h>

/* What the operator reads: how long it was down, and what the connection survives now. */
static void what_is_logged(void)
{
	struct ha_bundle *b = rig_begin(true);

	strcpy(b->rail[0].setup.peer.name, "far0:1");
	strcpy(b->rail[RAIL].setup.peer.name, "far1:1");
	b->rail[RAIL].loss.suspected_at = RIG_START - 1500 * MS;
	rig_come_up(b);
	CHECK(lines_contain("it was down for 1.500 s"));
	CHECK(lines_contain("nic0:1 ⇄ nic1:1, against the loss of a NIC"));
	lines_catch();
	ha_roles_update(b); /* no news */
	CHECK_INT(lines_count("⇄"), 0);
	b->active = 1;
	b->rail[RAIL].state = HA_RAIL_FENCING;
	ha_roles_update(b);
	CHECK_INT(lines_count("not protected"), 1);
	CHECK_INT(b->balance.weight[RAIL], 0);
	rig_end(b);

	b = rig_begin(true); /* a connection that ends says nothing of it */
	b->peer_closed = true;
	lines_catch();
	b->active = 3;
	ha_roles_update(b);
	CHECK_INT(lines_count("⇄"), 0);
	rig_end(b);
}

/* A spare stands by; one that comes up beside another that does is news of its own. */
static void what_is_logged_of_spares(void)
{
	struct ha_bundle *b = rig_begin(true);

	b->balance.ndata = 1;
	b->rail[RAIL].proven = false;
	strcpy(b->rail[RAIL].setup.peer.name, "far1:1");
	rig_come_up(b);
	CHECK(lines_contain("nic0:1 ⇄ standby nic1:1, against the loss of a NIC"));
	CHECK(!lines_contain("recovered"));
	CHECK(!lines_contain("it may stand by better"));
	rig_end(b);

	b = rig_begin(true);
	b->balance.ndata = 1;
	b->rail[RAIL].proven = false;
	b->against = HA_AGAINST_NIC_HERE;
	rig_come_up(b);
	CHECK(lines_contain("it may stand by better than those there are"));
	CHECK(b->failover->spares.improve); /* at the far end both share a NIC */
	rig_end(b);

	b = rig_begin(true);
	b->balance.ndata = 1;
	b->rail[RAIL].proven = false;
	b->failover->spares.add_until = RIG_START + MS;
	rig_come_up(b);
	CHECK(lines_contain("no path that was up gave a sign"));
	rig_end(b);

	b = rig_begin(true); /* the first one up after a while without any */
	b->balance.ndata = 1;
	b->active = 0;
	b->rail[0].state = HA_RAIL_DOWN;
	b->rail[RAIL].proven = false;
	b->failover->no_path_since = RIG_START - 250 * MS;
	rig_come_up(b);
	CHECK(lines_contain("no rail was up for 0.250 s"));
	CHECK_INT(b->balance.weight[RAIL], 1024);
	rig_end(b);
}

/* The first try of a standby that has never been up is logged, once; a port of the peer that is
 * down is waited for. */
static void a_standby_that_fails(void)
{
	struct ha_bundle *b = rig_begin(true);

	b->balance.ndata = 1;
	b->rail[RAIL].proven = false;
	lines_catch();
	ha_incarnation_over(b, &b->rail[RAIL], RIG_START);
	CHECK_INT(lines_count("the standby did not come up; it is tried again and again"), 1);
	ha_incarnation_over(b, &b->rail[RAIL], RIG_START);
	CHECK_INT(lines_count("the standby did not come up"), 1);
	rig_end(b);

	b = rig_begin(true);
	b->active = 0;
	rig_control(b)->working = true;
	rig_control(b)->join.up_since = RIG_START - 20000 * MS;
	rig_control(b)->fence.peer_port = true;
	ha_incarnation_over(b, &b->rail[RAIL], RIG_START);
	CHECK_INT(rig_control(b)->join.retry_at, RIG_START + 100 * MS);
	rig_control(b)->fence.peer_port = false;
	ha_incarnation_over(b, &b->rail[RAIL], RIG_START);
	CHECK_INT(rig_control(b)->join.retry_at, RIG_START);
	rig_end(b);
}

/* Rails and planes are known, and no standby avoids a leaf switch: said once for all
 * connections. */
static void the_switch_that_is_shared(void)
{
	static struct ha_topo list;
	struct ha_bundle *b = rig_begin(true);

	rig.ctx.shared_switch_reported = false;
	rig.topo.place.rail_id = 2;
	b->terms.flags |= HA_FLAG_PAIRS;
	for (unsigned i = 0; i < 2; i++) {
		b->rail[i].setup.peer.guid = 5 + i;
		b->rail[i].setup.peer.keys = ha_device_place(&rig.device[0]) << 8;
	}
	rig_come_up(b);
	CHECK_INT(lines_count("no standby avoids the leaf switch of rail 2: if it fails"), 1);
	CHECK(lines_contain("nic0:1 ⇄ nic1:1, against the loss of a NIC"));
	lines_catch();
	b->against = HA_AGAINST_NOTHING;
	ha_roles_update(b);
	CHECK_INT(lines_count("no standby avoids"), 0);
	rig_end(b);

	b = rig_begin(true); /* a switch of the file of `ha switches`, by its name */
	rig.ctx.shared_switch_reported = false;
	rig.topo.place.rail_id = -1;
	strcpy(rig.topo.place.at.id, "mac:1");
	strcpy(rig.topo.place.at.name, "leaf1");
	list.nports = 1;
	list.devices[0] = rig.topo;
	rig.ctx.topo = &list;
	b->terms.flags |= HA_FLAG_PAIRS | HA_FLAG_SWITCHES;
	for (unsigned i = 0; i < 2; i++) {
		b->rail[i].setup.peer.guid = 5 + i;
		b->rail[i].setup.peer.keys = ha_device_place(&rig.device[0]) << 8;
	}
	rig_come_up(b);
	CHECK_INT(lines_count("no standby avoids the leaf switch leaf1 (mac:1): if it fails"), 1);
	rig_end(b);
	rig.topo.place.rail_id = 2;

	b = rig_begin(true); /* one NIC alone is worse than that, and said instead */
	rig.ctx.shared_switch_reported = false;
	b->terms.flags |= HA_FLAG_PAIRS;
	for (unsigned i = 0; i < 2; i++)
		b->rail[i].setup.peer.keys = ha_device_place(&rig.device[0]) << 8;
	rig_come_up(b);
	CHECK_INT(lines_count("no standby avoids"), 0);
	CHECK(lines_contain("against the loss of a NIC here, not there"));
	rig_end(b);
	rig.topo.place.rail_id = -1;
}

/* Of several rails the one on another device is named. */
static void who_protects(void)
{
	struct ha_bundle *b = rig_begin(true);

	b->nrails = b->balance.ndata = 3;
	b->rail[2] = b->rail[0]; /* a second queue pair on the first device */
	b->rail[2].index = 2;
	b->active = 5;
	b->balance.share[2] = 512;
	strcpy(b->rail[RAIL].setup.peer.name, "far1:1");
	rig_come_up(b);
	CHECK(lines_contain("nic0:1 ⇄ nic1:1, against the loss of a NIC"));
	rig_end(b);
}

/* The third false alarm in a row: the soft time-out is longer from now on. */
static void the_time_out_was_wrong(void)
{
	struct ha_bundle *b = rig_begin(true);

	ha_rto_init(&b->failover->rto, 100 * MS);
	for (unsigned i = 1; i <= HA_RTO_FALSE_ALARMS; i++) {
		ha_rto_failed(&b->failover->rto, RIG_START - MS);
		rig_control(b)->fence.by_timeout = true;
		rig_come_up(b);
		CHECK_INT(lines_count("the soft time-out was wrong three times in a row; it is "
				      "150 ms from now on"),
			  i == HA_RTO_FALSE_ALARMS);
		CHECK(!rig_control(b)->fence.by_timeout);
		rig_control(b)->join.pongs = 2;
		b->active = 1;
	}
	ha_rto_failed(&b->failover->rto, RIG_START - MS); /* what else ended it teaches nothing */
	rig_come_up(b);
	CHECK(b->failover->rto.failed);
	rig_end(b);
}

/* No device is up that the standby could be on: the operator reads it once, and it is tried again
 * and again. */
static void no_device_for_a_standby(void)
{
	static struct ha_topo all;
	struct ha_bundle *b = rig_begin(true);

	all.nports = all.ndevices = 2;
	rig.ctx.topo = &all;
	b->balance.ndata = 1;
	b->rail[RAIL].proven = false;
	rig.device[0].up = rig.device[1].up = false;
	lines_catch();
	for (unsigned i = 1; i <= 2; i++) {
		CHECK_INT(rig_step(b, 0), 100 * MS << i);
		CHECK_INT(rig_control(b)->slow, HA_SLOW_NONE);
		CHECK_INT(rig_control(b)->join.attempts, i);
		rig_control(b)->join.retry_at = 0;
	}
	CHECK_INT(lines_count("no device for the standby is up; it is tried again and again"), 1);
	rig_control(b)->join.flaps = 2; /* it came up before, and was lost */
	CHECK_INT(rig_step(b, 0), 100 * MS << 5);
	rig.ctx.topo = NULL;
	rig_end(b);
}

int main(void)
{
	what_is_logged();
	what_is_logged_of_spares();
	a_standby_that_fails();
	the_switch_that_is_shared();
	who_protects();
	the_time_out_was_wrong();
	no_device_for_a_standby();
	return 0;
}
