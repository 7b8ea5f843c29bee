/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection of two data rails, of which RAIL is down, in virtual time and without a NIC: what
 * the tests of an incarnation's beginning work with. */
#ifndef TESTS_PLUGIN_FAILOVER_INCARNATION_RIG_H
#define TESTS_PLUGIN_FAILOVER_INCARNATION_RIG_H

#include "base/clock.h"
#include "plugin/bundle.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "rdma/topo/device.h"

#define RAIL 1
#define EPOCH 5
#define US UINT64_C(1000)
#define MS HA_NS_PER_MS
#define RIG_START (1000000 * MS)
#define LIMIT_MS 3000 /* from the offer to the third pong */

struct incarnation_rig {
	unsigned writes; /* that the rail was given */
	uint64_t last_value;
	struct ibv_qp qp[2];
	struct ha_clock_virtual time;
	struct ha_topo_device topo;
	struct ha_device device[2];
	struct ha_opening opening;
	struct ha_ctx ctx;
};

extern struct incarnation_rig rig;

/* Its last epoch is closed. */
struct ha_bundle *rig_begin(bool is_send);
void rig_end(struct ha_bundle *b);

struct ha_control *rig_control(struct ha_bundle *b);

/* A step so long after the start; when the next is due, as long after it. */
uint64_t rig_step(struct ha_bundle *b, uint64_t ns);

/* What a ping or pong of this epoch writes. */
uint64_t rig_probe_value(uint32_t epoch, uint32_t number);

/* The third pong is here; lines are caught from now on. */
void rig_come_up(struct ha_bundle *b);

#endif
