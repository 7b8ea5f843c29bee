/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of a rail's incarnation at this end, step by step in virtual time: quiet, error, drain,
 * destruction where that alone ends it, comparison; and optional receives in doubt.
 */
#include "base/check.h"
#include "base/clock.h"
#include "plugin/bundle.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "plugin/failover/failover.h"
#include "rdma/topo/device.h"
#include "rdma/verbs/ops.h"
#include "tests/base/lines.h"
#include "tests/plugin/ends.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LOST 1
#define US UINT64_C(1000)
#define MS HA_NS_PER_MS
#define START (1000000 * MS)

static unsigned markers, errors; /* that the queue pair was given */
static struct ibv_wc completion; /* the next one, */
static unsigned completions;     /* if any are left */
static int post_error;

static int post_marker(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	(void)qp;
	(void)bad;
	CHECK(errors); /* in error already: it comes back at once */
	CHECK(wr->send_flags & IBV_SEND_SIGNALED);
	if (post_error)
		return post_error;
	markers++;
	completion.wr_id = wr->wr_id;
	completion.status = IBV_WC_WR_FLUSH_ERR;
	return 0;
}

static int poll_one(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	(void)cq;
	(void)n;
	if (!completions)
		return 0;
	completions--;
	*wc = completion;
	return 1;
}

static int to_error(const struct ha_verbs_ops *v, struct ibv_qp *qp, struct ibv_qp_attr *attr,
		    int mask)
{
	(void)v;
	(void)qp;
	CHECK_INT(attr->qp_state, IBV_QPS_ERR);
	CHECK_INT(mask, IBV_QP_STATE);
	errors++;
	return 0;
}

static const struct ha_verbs_hot hot = { .post_send = post_marker, .poll_cq = poll_one };
static const struct ha_verbs_ops verbs = { .modify_qp = to_error };
static struct ha_clock_virtual virtual_time = HA_CLOCK_VIRTUAL_INIT(START);
static struct ha_topo topo; /* its NIC answers no question */
static struct ha_device device;
static struct ha_nic nic;
static struct ha_opening opening = { .nic = &nic };
static struct ha_ctx ctx = {
	.clock = &virtual_time.clock, .verbs = &verbs, .devices = &device, .topo = &topo
};
static struct ibv_qp qp;
static struct ibv_cq cq = { .cqe = 64 };

/* Rail LOST has just been suspected; another one is up. */
static struct ha_bundle *make_suspected(bool is_send, enum ha_event_cause cause)
{
	struct ha_bundle *b = new_end(is_send);

	CHECK(b);
	virtual_time.now = START;
	markers = errors = completions = 0;
	post_error = 0;
	memset(&completion, 0, sizeof(completion));
	device = (struct ha_device) { .ctx = &ctx, .topo = &topo.devices[0], .up = true };
	pthread_mutex_init(&device.lock, NULL);
	pthread_mutex_init(&topo.lock, NULL);
	atomic_store(&nic.lost, false);
	b->ctx = &ctx;
	b->is_send = is_send;
	b->nrails = 2;
	b->balance.ndata = 1;
	b->active = 3;
	b->poll.most = b->poll.batch = 16;
	b->terms.flags = HA_FLAG_FAILOVER;
	b->ring = calloc(1, is_send ? HA_SEND_RING_SIZE : HA_RECV_RING_SIZE);
	CHECK(b->ring);
	atomic_store(&b->attention, HA_ATTN_DRIVE); /* there is no loop to wake */
	for (unsigned i = 0; i < 2; i++)
		b->rail[i] = (struct ha_rail) { .index = (uint8_t)i,
						.hot = &hot,
						.qp = &qp,
						.cq = &cq,
						.opening = &opening,
						.sq_depth = 64,
						.state = HA_RAIL_UP,
						.dev = &device };
	b->failover->ctl[LOST].working = b->rail[LOST].proven = true;
	LIST_INSERT_HEAD(&ctx.bundles, b, entry);
	ha_rail_suspect(b, &b->rail[LOST], cause, "test");
	return b;
}

static void free_bundle(struct ha_bundle *b)
{
	LIST_INIT(&ctx.bundles);
	free(b->ring);
	free(b);
}

static struct ha_fence *fence_of(struct ha_bundle *b)
{
	return &b->failover->ctl[LOST].fence;
}

/* A step so long after the suspicion; the stage behind it. */
static unsigned step_after(struct ha_bundle *b, uint64_t ns)
{
	virtual_time.now = START + ns;
	b->schedule->due = UINT64_MAX;
	ha_fence_step(b, &b->rail[LOST], virtual_time.now);
	return fence_of(b)->stage;
}

/* A receiver goes on taking what its NIC has acknowledged until nothing comes for 100 us; the
 * sender has nothing to wait for. */
static void until_it_is_quiet(void)
{
	struct ha_bundle *b = make_suspected(false, HA_CAUSE_PORT_DOWN);

	CHECK_INT(step_after(b, 0), HA_FENCE_QUIET);
	CHECK_INT(b->schedule->due, START + 100 * US);
	CHECK_INT(b->failover->ctl[LOST].out.due, HA_SEND(RAIL_DOWN));
	completion.wr_id = ha_wr_id(HA_WR_CONTROL, 0, 0);
	completions = 1;
	CHECK_INT(step_after(b, 99 * US), HA_FENCE_QUIET);
	CHECK_INT(b->schedule->due, START + 199 * US);
	CHECK_INT(step_after(b, 198 * US), HA_FENCE_QUIET);
	CHECK_INT(errors, 0);
	CHECK_INT(step_after(b, 199 * US), HA_FENCE_DRAIN);
	CHECK_INT(errors, 1);
	free_bundle(b);

	b = make_suspected(false, HA_CAUSE_PORT_DOWN); /* but not for ever */
	step_after(b, 0);
	for (unsigned ms = 1; ms <= 1000; ms++) {
		completion.wr_id = ha_wr_id(HA_WR_CONTROL, 0, 0);
		completions = 1;
		CHECK_INT(step_after(b, ms * MS - MS + 50 * US), HA_FENCE_QUIET);
		completion.wr_id = ha_wr_id(HA_WR_CONTROL, 0, 0);
		completions = 1;
		CHECK_INT(step_after(b, ms * MS) == HA_FENCE_QUIET, ms < 1000);
	}
	free_bundle(b);

	b = make_suspected(true, HA_CAUSE_PORT_DOWN);
	CHECK_INT(step_after(b, 0), HA_FENCE_DRAIN);
	free_bundle(b);

	b = make_suspected(false, HA_CAUSE_PORT_DOWN); /* its device is gone: nothing can come */
	atomic_store(&nic.lost, true);
	CHECK(step_after(b, 0) != HA_FENCE_QUIET);
	free_bundle(b);
}

/* Over when the marker is back, and at a receiver the event has come that no receive is taken any
 * more; some drivers never report it. */
static void until_it_is_drained(void)
{
	struct ha_bundle *b = make_suspected(true, HA_CAUSE_PORT_DOWN);

	lines_catch();
	step_after(b, 0);
	CHECK_INT(markers, 1);
	CHECK_INT(b->schedule->due, START + 20 * US);
	CHECK_INT(step_after(b, 20 * US), HA_FENCE_DRAIN);
	CHECK_INT(markers, 1);
	completions = 1;
	CHECK_INT(step_after(b, 40 * US), HA_FENCE_OVER);
	CHECK_INT(b->rail[LOST].state, HA_RAIL_FENCED);
	CHECK_INT(fence_of(b)->tidy_at, START + 40 * US + 100 * MS);
	CHECK_INT(b->failover->ctl[LOST].out.due, HA_SEND(RAIL_FENCED));
	CHECK_INT(b->failover->ctl[LOST].compare.stage, HA_COMPARE_TAKEN);
	CHECK_INT(lines_count("40 us after the suspicion"), 1);
	free_bundle(b);

	b = make_suspected(false, HA_CAUSE_PORT_DOWN);
	step_after(b, 0);
	CHECK_INT(step_after(b, 100 * US), HA_FENCE_DRAIN);
	completions = 1;
	CHECK_INT(step_after(b, 120 * US), HA_FENCE_DRAIN);
	atomic_store(&fence_of(b)->last_receive, true);
	CHECK_INT(step_after(b, 140 * US), HA_FENCE_OVER);
	free_bundle(b);

	b = make_suspected(false, HA_CAUSE_PORT_DOWN);
	step_after(b, 0);
	step_after(b, 100 * US);
	completions = 1;
	CHECK_INT(step_after(b, 120 * US), HA_FENCE_DRAIN);
	CHECK_INT(step_after(b, 5 * MS - 1), HA_FENCE_DRAIN);
	CHECK_INT(step_after(b, 5 * MS), HA_FENCE_OVER);
	free_bundle(b);
}

/* A full queue, or one that refuses, takes the marker later. A NIC that never accounts for its work
 * has its queue pair destroyed. */
static void until_it_is_destroyed(void)
{
	struct ha_bundle *b = make_suspected(true, HA_CAUSE_PORT_DOWN);
	struct ha_control *k = &b->failover->ctl[LOST];

	b->rail[LOST].sq_posted = 64;
	step_after(b, 0);
	CHECK_INT(markers, 0);
	b->rail[LOST].sq_retired = 1;
	post_error = ENOMEM;
	step_after(b, 20 * US);
	CHECK_INT(b->rail[LOST].loss.marker, HA_MARKER_NONE);
	post_error = 0;
	step_after(b, 40 * US);
	CHECK_INT(markers, 1);
	CHECK_INT(b->rail[LOST].sq_posted, 65);
	CHECK_INT(step_after(b, 1000 * MS - 1), HA_FENCE_DRAIN);
	CHECK_INT(step_after(b, 1000 * MS), HA_FENCE_CLOSE);
	CHECK_INT(k->slow, HA_SLOW_CLOSE);
	CHECK_INT(step_after(b, 1001 * MS), HA_FENCE_CLOSE); /* it takes the kernel a while */
	CHECK_INT(b->rail[LOST].state, HA_RAIL_FENCING);
	k->slow = HA_SLOW_DONE;
	CHECK_INT(step_after(b, 1002 * MS), HA_FENCE_OVER);
	CHECK_INT(k->slow, HA_SLOW_NONE);
	CHECK_INT(b->rail[LOST].state, HA_RAIL_FENCED);
	CHECK_INT(fence_of(b)->tidy_at, 0);
	free_bundle(b);

	b = make_suspected(true, HA_CAUSE_PORT_DOWN); /* it never carried anything */
	b->failover->ctl[LOST].working = false;
	CHECK_INT(step_after(b, 0), HA_FENCE_CLOSE);
	CHECK_INT(markers, 0);
	free_bundle(b);

	b = make_suspected(true, HA_CAUSE_DEVICE_FAILED);
	atomic_store(&nic.lost, true);
	CHECK_INT(step_after(b, 0), HA_FENCE_CLOSE);
	CHECK_INT(markers, 0);
	free_bundle(b);
}

/* What is in the completion queue when the queue pair must be destroyed goes with it: all of it is
 * taken before, however much one poll takes. */
static void the_rest_is_taken(void)
{
	struct ha_bundle *b = make_suspected(true, HA_CAUSE_DEVICE_FAILED);

	atomic_store(&nic.lost, true);
	b->poll.most = b->poll.batch = 1;
	completion.wr_id = ha_wr_id(HA_WR_CONTROL, 0, 7);
	completions = 40;
	CHECK_INT(step_after(b, 0), HA_FENCE_CLOSE);
	CHECK_INT(completions, 0);
	CHECK_INT(b->rail[LOST].sq_retired, 7);
	completions = 1000; /* more than the queue holds: a driver that does not end */
	fence_of(b)->stage = HA_FENCE_DRAIN;
	CHECK_INT(step_after(b, 20 * US), HA_FENCE_CLOSE);
	CHECK(completions > 900);
	free_bundle(b);
}

/* Its suspicion is news for the peer, unless that knows: from then on, what ends the fence says it,
 * but for a silence, which others on the path must learn of, what is superfluous, and buffers that
 * were given back. */
static void what_the_peer_is_sent(void)
{
	static const struct {
		enum ha_event_cause cause;
		bool also_down;
	} causes[] = { { HA_CAUSE_PORT_DOWN, false },
		       { HA_CAUSE_TIMEOUT, true },
		       { HA_CAUSE_SILENCE, true },
		       { HA_CAUSE_SURPLUS, true },
		       { HA_CAUSE_QUEUE_ERROR, true } };

	for (unsigned i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
		struct ha_bundle *b = make_suspected(true, causes[i].cause);

		step_after(b, 0);
		CHECK_INT(b->failover->ctl[LOST].out.due, HA_SEND(RAIL_DOWN));
		completions = 1;
		step_after(b, 20 * US);
		CHECK_INT(b->failover->ctl[LOST].out.due,
			  HA_SEND(RAIL_FENCED) | (causes[i].also_down ? HA_SEND(RAIL_DOWN) : 0));
		free_bundle(b);
	}
	for (unsigned i = 0; i < 4; i++) {
		struct ha_bundle *b = make_suspected(true, HA_CAUSE_PORT_DOWN);

		fence_of(b)->peer_knows = i == 0;
		b->abort->error = i == 1 ? -EIO : 0;
		b->peer_closed = i == 2;
		b->terms.flags = i == 3 ? 0 : HA_FLAG_FAILOVER;
		step_after(b, 0);
		CHECK_INT(b->failover->ctl[LOST].out.due, 0);
		completions = 1;
		step_after(b, 20 * US); /* nobody is left to compare with, but in the first case */
		CHECK_INT(b->rail[LOST].state, i ? HA_RAIL_DOWN : HA_RAIL_FENCED);
		free_bundle(b);
	}
}

/* A fault at our own NIC, which does not answer either, is everybody's who uses it; one at the far
 * end is not. */
static void others_on_the_port(void)
{
	for (unsigned local = 0; local < 2; local++) {
		struct ha_bundle *b = make_suspected(true, HA_CAUSE_WORK_FAILED);

		b->rail[LOST].loss.local = local;
		step_after(b, 0);
		CHECK_INT(b->failover->ctl[0].fence_wanted, local ? HA_CAUSE_SIBLING : 0);
		free_bundle(b);
	}
}

/* Both ends are fenced: the epoch is closed, the peer is answered, and the failover is reported
 * once all is on its way again. */
static void both_are_fenced(void)
{
	struct ha_bundle *b = make_suspected(true, HA_CAUSE_PORT_DOWN);
	struct ha_control *k = &b->failover->ctl[LOST];

	step_after(b, 0);
	completions = 1;
	k->compare.has_peer_state = true; /* the peer was first */
	k->out.due = 0;
	step_after(b, 20 * US);
	CHECK_INT(b->rail[LOST].state, HA_RAIL_DOWN);
	CHECK_INT(k->out.due, HA_SEND(RAIL_FENCED) | HA_SEND(RAIL_ACK));
	CHECK(k->compare.unreported);
	CHECK_INT(k->compare.cause, HA_CAUSE_PORT_DOWN);
	free_bundle(b);

	b = make_suspected(true, HA_CAUSE_SURPLUS); /* no failure */
	b->failover->ctl[LOST].compare.has_peer_state = true;
	step_after(b, 0);
	completions = 1;
	step_after(b, 20 * US);
	CHECK_INT(b->rail[LOST].state, HA_RAIL_DOWN);
	CHECK(!b->failover->ctl[LOST].compare.unreported);
	free_bundle(b);
}

/* A receiver's port that is back before its fence was over notifies the sender behind it. */
static void port_is_back_already(void)
{
	for (unsigned i = 0; i < 3; i++) {
		struct ha_bundle *b =
			make_suspected(false, i == 1 ? HA_CAUSE_WORK_FAILED : HA_CAUSE_PORT_DOWN);

		b->failover->ctl[LOST].compare.has_peer_state = true;
		atomic_store(&fence_of(b)->last_receive, true);
		device.up = i != 2;
		step_after(b, 0);
		step_after(b, 100 * US);
		completions = 1;
		step_after(b, 120 * US);
		CHECK_INT(b->rail[LOST].state, HA_RAIL_DOWN);
		CHECK_INT(!!(b->failover->ctl[LOST].out.due & HA_SEND(RAIL_BACK)), i == 0);
		free_bundle(b);
	}
}

/* ---- optional receives ---- */

static struct ha_recv_slot *put_receive(struct ha_recv *c, uint64_t idx, unsigned busy, char *data)
{
	struct ha_recv_slot *slot = &c->slot[idx % HA_SLOTS];

	*slot = (struct ha_recv_slot) {
		.idx = idx, .busy = (uint8_t)busy, .n = 1, .more = c->more[idx % HA_SLOTS]
	};
	slot->buf.data = data;
	slot->buf.size = 100;
	return slot;
}

/* Those that are open may have their data twice. One whose buffer was posted again had its data
 * used: it is complete, whatever immediates are missing. */
static void optional_receives(void)
{
	const unsigned optional = HA_SLOT_WIRE | HA_SLOT_OPTIONAL;
	struct ha_bundle *b = make_suspected(false, HA_CAUSE_PORT_DOWN);
	struct ha_recv *c = (struct ha_recv *)b;
	static char data[1000];

	c->done = 130;
	c->head = 135;
	put_receive(c, 130, optional, data);
	put_receive(c, 131, HA_SLOT_WIRE, data + 300); /* not optional */
	put_receive(c, 132, optional, data + 200);
	put_receive(c, 133, optional, data + 99); /* one byte of 130's, none of 132's */
	put_receive(c, 134, HA_SLOT_WIRE, data + 400);
	/* what is behind the last buffer is of an earlier receive */
	*c->slot[132 % HA_SLOTS].more = *c->slot[134 % HA_SLOTS].more = c->slot[134 % HA_SLOTS].buf;
	*c->slot[133 % HA_SLOTS].more = c->slot[133 % HA_SLOTS].buf; /* of groups */
	c->slot[133 % HA_SLOTS].buf.data = data + 500;
	c->slot[133 % HA_SLOTS].n = 2;
	*c->slot[130 % HA_SLOTS].more = c->slot[130 % HA_SLOTS].buf;
	c->slot[130 % HA_SLOTS].buf.data = data + 700;
	c->slot[130 % HA_SLOTS].n = 2;
	step_after(b, 0);
	for (uint64_t idx = 130; idx < 135; idx++) {
		unsigned busy = c->slot[idx % HA_SLOTS].busy;

		CHECK_INT(!!(busy & HA_SLOT_DOUBT), !!(busy & HA_SLOT_OPTIONAL));
	}
	CHECK(atomic_load(&b->attention) & HA_ATTN_DOUBT);
	atomic_store(&fence_of(b)->last_receive, true);
	step_after(b, 100 * US);
	completions = 1;
	step_after(b, 120 * US);
	CHECK_INT(b->rail[LOST].state, HA_RAIL_FENCED);
	CHECK_INT(c->superseded, 1);
	for (uint64_t idx = 130; idx < 135; idx++)
		CHECK_INT(!(c->slot[idx % HA_SLOTS].busy & HA_SLOT_WIRE), idx == 130);
	free_bundle(b);

	b = make_suspected(false, HA_CAUSE_PORT_DOWN); /* none is open */
	step_after(b, 0);
	CHECK(!(atomic_load(&b->attention) & HA_ATTN_DOUBT));
	free_bundle(b);
}

/* A flush that this rail would have answered is over with it; one that others answer, too, waits
 * for them. */
static void flushes_end_with_it(void)
{
	struct ha_bundle *b = make_suspected(false, HA_CAUSE_PORT_DOWN);
	struct ha_recv *c = (struct ha_recv *)b;

	c->flush_busy = 0x13;
	c->flush[0].pending = 1 << LOST;
	c->flush[1].pending = 1 << LOST | 1;
	c->flush[4].pending = 1;
	atomic_store(&fence_of(b)->last_receive, true);
	step_after(b, 0);
	step_after(b, 100 * US);
	completions = 1;
	step_after(b, 120 * US);
	CHECK_INT(c->flush[0].done, 1);
	CHECK_INT(c->flush[1].done, 0);
	CHECK_INT(c->flush[1].pending, 1);
	CHECK_INT(c->flush[4].done, 0);
	free_bundle(b);
}

int main(void)
{
	until_it_is_quiet();
	until_it_is_drained();
	until_it_is_destroyed();
	the_rest_is_taken();
	what_the_peer_is_sent();
	others_on_the_port();
	both_are_fenced();
	port_is_back_already();
	optional_receives();
	flushes_end_with_it();
	return 0;
}
