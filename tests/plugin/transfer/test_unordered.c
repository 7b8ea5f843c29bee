/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A sender whose messages may overtake each other (NCCL_IB_OOO_RQ): what says that a stripe is
 * there leaves when the NIC has acknowledged the stripe's data, and not before.
 */
#include "base/check.h"
#include "plugin/balance/policy.h"
#include "plugin/bundle.h"
#include "plugin/device/send_queue.h"
#include "plugin/transfer/stripe.h"
#include "tests/plugin/transfer/recorder.h"

#include <errno.h>

#define KIND(id) ((unsigned)((id) >> 16 & 0xffff))

static struct ha_send *make_unordered(void)
{
	struct ha_send *s = make_sender();

	s->b.terms.unordered = true;
	s->b.active = 1;
	ha_policy_update(&s->b);
	return s;
}

/* The NIC has carried out this one, and all before it. */
static void complete(struct ha_send *s, const struct work *w)
{
	arriving = (struct ibv_wc) { .opcode = IBV_WC_RDMA_WRITE, .wr_id = w->id };
	arrivals = 1;
	ha_bundle_poll(&s->b);
	CHECK_INT(arrivals, 0);
}

/* Two buffers: both are written, and acknowledged, before the record leaves. */
static void record_follows(void)
{
	struct ha_send *s = make_unordered();
	struct ha_request *one, *two;

	announce_receive(s, 2, LARGE);
	one = send_member(s, 0, 1000);
	two = send_member(s, 1, 3000);
	check_bytes(0, 1000);
	check_bytes(1, 3000);
	CHECK_INT(posted, 2);
	for (unsigned i = 0; i < 2; i++)
		CHECK_INT(work[i].opcode, IBV_WR_RDMA_WRITE);
	CHECK_INT(KIND(work[1].id), HA_WR_PAYLOAD);
	CHECK(work[1].flags & IBV_SEND_SIGNALED);
	complete(s, &work[1]);
	CHECK_INT(posted, 3);
	CHECK_INT(work[2].opcode, IBV_WR_RDMA_WRITE_WITH_IMM);
	CHECK_INT(work[2].to, RING);
	CHECK_INT(work[2].length, sizeof(struct ha_sizes));
	CHECK_INT(work[2].imm, ha_imm_make(0, 0, 1, true));
	CHECK_INT(KIND(work[2].id), HA_WR_DATA);
	CHECK(!one->done && !two->done);
	complete(s, &work[2]);
	CHECK(one->done && two->done);
	CHECK_INT(s->b.rail[0].sq_posted, s->b.rail[0].sq_retired);
	free_sender(s);
}

/* Without data there is nothing to wait for; one buffer in one work request says so itself. */
static void nothing_to_wait_for(void)
{
	struct ha_send *s = make_unordered();

	announce_receive(s, 2, LARGE);
	send_member(s, 0, 0);
	send_member(s, 1, 0);
	CHECK_INT(posted, 1);
	CHECK_INT(work[0].imm, ha_imm_make(0, 0, 1, true));
	announce_receive(s, 1, LARGE);
	send_member(s, 0, LARGE);
	CHECK_INT(posted, 1);
	CHECK_INT(work[0].opcode, IBV_WR_RDMA_WRITE_WITH_IMM);
	CHECK_INT(work[0].length, LARGE);
	free_sender(s);
}

/* What is measured is measured up to the record's completion. */
static void measured_stripe(void)
{
	struct ha_send *s = make_unordered();
	const struct ha_cts *cts = announce_receive(s, 1, LARGE);
	struct ha_stripe st = { .slot = &s->slot[0], .cts = cts, .mask = 1, .timed = true };

	send_member(s, 0, 5000);
	posted = 0;
	st.weight = s->slot[0].weight;
	s->slot[0].weight[0] = 1024;
	ha_stripe_post(s, &s->b.rail[0], &st);
	CHECK_INT(posted, 1);
	CHECK_INT(KIND(work[0].id), HA_WR_PAYLOAD_TIMED);
	complete(s, &work[0]);
	CHECK_INT(posted, 2);
	CHECK_INT(KIND(work[1].id), HA_WR_TIMED);
	free_sender(s);
}

/* The fence of a rail sends the whole stripe again: nothing more of it leaves on this one. */
static void rail_that_failed(void)
{
	struct ha_send *s = make_unordered();

	announce_receive(s, 2, LARGE);
	send_member(s, 0, 100);
	send_member(s, 1, 100);
	CHECK_INT(posted, 2);
	s->b.rail[0].state = HA_RAIL_FENCING;
	complete(s, &work[1]);
	CHECK_INT(posted, 2);
	CHECK_INT(s->slot[0].pending, 1);
	free_sender(s);
}

static void record_is_refused(void)
{
	struct ha_send *s = make_unordered();

	s->b.peer_closed = true; /* no event */
	atomic_store(&s->b.attention, HA_ATTN_DRIVE);
	announce_receive(s, 2, LARGE);
	send_member(s, 0, 100);
	send_member(s, 1, 100);
	refusal = EIO;
	complete(s, &work[1]);
	CHECK_INT(s->b.rail[0].state, HA_RAIL_FENCING);
	CHECK_INT(s->slot[0].pending, 1);
	free_sender(s);
}

int main(void)
{
	record_follows();
	nothing_to_wait_for();
	measured_stripe();
	rail_that_failed();
	record_is_refused();
	return 0;
}
