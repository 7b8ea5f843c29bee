/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is said of a path that is left because it is far too slow: how much slower, beside which
 * path, and what its port has counted. When one is left: tests/sim/plugin/test_lag.c.
 */
#include "plugin/balance/lag.h"

#include "base/check.h"
#include "base/clock.h"
#include "plugin/channel/schedule.h"
#include "tests/base/lines.h"
#include "tests/plugin/failover/incarnation_rig.h"
#include "tests/rdma/topo/tree.h"

#include <stdlib.h>
#include <string.h>

#define QUEUED (64 << 10)
#define TIMES(n) ((n)*HA_PAST_UNIT)

static struct tree tree;

static void set_counter(const char *name, const char *value)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/class/infiniband/mlx5_7/ports/2/counters/%s", name);
	tree_file(&tree, path, value);
}

/* A sender that compares rail 0, which carries, with rail 1, which stands by. */
static struct ha_bundle *begin_comparing(uint32_t home, uint32_t other)
{
	struct ha_bundle *b = rig_begin(true);
	struct ha_lag *g = &b->balance.lag;

	rig.ctx.config.slow_factor = 4;
	rig.ctx.config.slow_moves = 4;
	rig.ctx.config.heartbeat_ms = 100;
	strcpy(rig.ctx.config.sysfs_root, tree.root);
	strcpy(rig.topo.system_name, "mlx5_7");
	rig.topo.port = 2;
	b->balance.ndata = 1;
	b->rail[1].state = HA_RAIL_UP;
	b->active = 3;
	g->on = true;
	g->state = HA_LAG_COMPARE;
	g->home = 1;
	g->other = 1;
	g->since = rig.time.now;
	g->queued = QUEUED;
	ha_past_learn(&g->past, QUEUED, 131000);
	for (unsigned i = 0; i < HA_PAST_SAMPLES; i++) {
		ha_past_add(&g->side[0], home);
		ha_past_add(&g->side[1], other);
	}
	lines_catch();
	ha_lag_step(b, rig.time.now);
	return b;
}

static void numbers_are_reported(void)
{
	struct ha_bundle *b = begin_comparing(TIMES(10), TIMES(3) / 2);

	CHECK_INT(b->balance.lag.state, HA_LAG_AWAY);
	CHECK(lines_contain("messages take 10.0 times as long as they used to (0.131 ms for 64 KiB "
			    "in the queue), 1.5 times on rail 1 (nic1:1), which carries from now "
			    "on; this path stands by while it stays so (HA_NCCL_SLOW_FACTOR)"));
	CHECK(!lines_contain("its port has counted"));
	rig_end(b);
}

static void counters_of_its_port_are_reported(void)
{
	struct ha_bundle *b;

	set_counter("symbol_error", "12\n");
	set_counter("link_downed", "3\n");
	set_counter("link_error_recovery", "0\n");
	b = begin_comparing(TIMES(10), TIMES(1));
	CHECK(lines_contain("(HA_NCCL_SLOW_FACTOR); its port has counted 12 symbol errors, link "
			    "down 3 times"));
	CHECK(!lines_contain("link recovered"));
	rig_end(b);
}

static void nothing_is_reported_of_a_path_that_stays(void)
{
	struct ha_bundle *b = begin_comparing(TIMES(2), TIMES(1));

	CHECK_INT(b->balance.lag.state, HA_LAG_WATCH);
	CHECK(!lines_contain("times as long"));
	rig_end(b);
}

/* Does a heartbeat later some message get measured, when the connection has sent so many? */
static bool asks_when_sent(struct ha_bundle *b, uint64_t sent)
{
	((struct ha_send *)b)->head = sent;
	ha_lag_arm(b, false);
	b->balance.lag.wanted = 0;
	rig.time.now += 100 * HA_NS_PER_MS;
	ha_lag_step(b, rig.time.now);
	return b->balance.lag.armed;
}

/* Many connections send few messages each from heartbeat to heartbeat, and would have each of them
 * measured. */
static void few_of_a_crowd_are_measured(void)
{
	struct ha_bundle *b = begin_comparing(TIMES(2), TIMES(1));

	CHECK_INT(b->balance.lag.state, HA_LAG_WATCH);
	b->balance.lag.rest_until = 0;
	rig.ctx.round.connections = HA_CROWD_FROM;
	CHECK(asks_when_sent(b, 1));
	CHECK(asks_when_sent(b, 2));
	rig.ctx.round.connections++;
	CHECK(!asks_when_sent(b, 2 + 127));
	CHECK(asks_when_sent(b, 2 + 128));
	CHECK(!asks_when_sent(b, 2 + 129));
	rig_end(b);
}

int main(void)
{
	tree_make(&tree);
	numbers_are_reported();
	counters_of_its_port_are_reported();
	nothing_is_reported_of_a_path_that_stays();
	few_of_a_crowd_are_measured();
	tree_remove(&tree);
	return 0;
}
