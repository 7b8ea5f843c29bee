/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/plugin/failover/incarnation_rig.h"

#include "base/check.h"
#include "plugin/bundle.h"
#include "plugin/channel/board.h"
#include "plugin/failover/failover.h"
#include "tests/base/lines.h"
#include "tests/plugin/ends.h"
#include "tests/plugin/idle_cq.h"

#include <stdlib.h>
#include <string.h>

static int take_write(struct ibv_qp *to, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	(void)bad;
	if (to != &rig.qp[RAIL])
		return 0;
	rig.writes++;
	memcpy(&rig.last_value, (const void *)(uintptr_t)wr->sg_list[0].addr,
	       sizeof(rig.last_value));
	return 0;
}

static const struct ha_verbs_hot hot = { .post_send = take_write, .poll_cq = poll_nothing };

struct incarnation_rig rig = {
	.time = HA_CLOCK_VIRTUAL_INIT(RIG_START),
	.topo = { .place.rail_id = -1, .place.plane_id = -1 },
	.ctx = { .clock = &rig.time.clock, .devices = rig.device, .nports = 2 },
};

/* Two data rails, of which RAIL is down, its last epoch closed. */
struct ha_bundle *rig_begin(bool is_send)
{
	struct ha_bundle *b = new_end(is_send);
	static const char *const names[] = { "nic0:1", "nic1:1" };

	CHECK(b);
	rig.time.now = RIG_START;
	rig.writes = 0;
	rig.last_value = 0;
	rig.ctx.config.ib_recovery_ack_timeout = LIMIT_MS;
	rig.ctx.config.enable_failback = true;
	b->ctx = &rig.ctx;
	b->is_send = is_send;
	b->nrails = b->balance.ndata = 2;
	b->active = 1;
	b->poll.most = b->poll.batch = 16;
	b->terms.flags = HA_FLAG_FAILOVER;
	b->schedule->due = UINT64_MAX;
	b->ring = calloc(1, is_send ? HA_SEND_RING_SIZE : HA_RECV_RING_SIZE);
	CHECK(b->ring);
	atomic_store(&b->attention, HA_ATTN_DRIVE); /* there is no loop to wake */
	pthread_mutex_init(&b->registered.lock, NULL);
	pthread_mutex_init(&b->registered.list_lock, NULL);
	for (unsigned i = 0; i < 2; i++) {
		rig.device[i] =
			(struct ha_device) { .ctx = &rig.ctx, .topo = &rig.topo, .up = true };
		strcpy(rig.device[i].name, names[i]);
		rig.device[i].now = &rig.opening;
		pthread_mutex_init(&rig.device[i].lock, NULL);
		b->balance.share[i] = 512;
		b->balance.lead[i] = (uint8_t)i;
		b->balance.weight[i] = i == RAIL ? 0 : 512;
		b->rail[i] = (struct ha_rail) { .index = (uint8_t)i,
						.hot = &hot,
						.qp = &rig.qp[i],
						.sq_depth = 64,
						.state = i == RAIL ? HA_RAIL_DOWN : HA_RAIL_UP,
						.epoch = EPOCH,
						.dev = &rig.device[i] };
		b->rail[i].proven = true;
	}
	b->failover->ctl[RAIL].compare.stage = HA_COMPARE_SETTLED;
	return b;
}

void rig_end(struct ha_bundle *b)
{
	free(b->ring);
	free(b);
}

struct ha_control *rig_control(struct ha_bundle *b)
{
	return &b->failover->ctl[RAIL];
}

/* A step so long after the start; when the next is due, as long after it. */
uint64_t rig_step(struct ha_bundle *b, uint64_t ns)
{
	rig.time.now = RIG_START + ns;
	b->schedule->due = UINT64_MAX;
	ha_incarnation_step(b, &b->rail[RAIL], rig.time.now);
	return b->schedule->due == UINT64_MAX ? UINT64_MAX : b->schedule->due - RIG_START;
}
uint64_t rig_probe_value(uint32_t epoch, uint32_t number)
{
	return (uint64_t)epoch << 32 | number;
}

void rig_come_up(struct ha_bundle *b)
{
	lines_catch();
	b->rail[RAIL].state = HA_RAIL_PROBE;
	rig_control(b)->join.deadline = UINT64_MAX;
	rig_control(b)->join.pongs = 2;
	rig_control(b)->join.pings = 3;
	ha_bundle_board(b)->heartbeat[RAIL].pong = rig_probe_value(EPOCH, 3);
	rig_step(b, 0);
	CHECK_INT(b->rail[RAIL].state, HA_RAIL_UP);
}
