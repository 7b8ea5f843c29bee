/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fence.c - the end of a rail's incarnation at this end: from suspicion to the moment when nothing
 * of it can reach memory any more
 *
 * Completions that say success count as on any day until the last one is taken: a stripe whose
 * completion is thrown away is unseen for ever, and ends the connection if the sender has released
 * it. So a receiver first waits until nothing comes any more (going to error may flush a receive
 * whose data the NIC has acknowledged), then both ends put the queue pair into error, wait for a
 * marker behind everything that was posted and for the event that no receive will be taken any
 * more. A queue pair that is in error and has accounted for all its work takes and sends nothing,
 * so it is destroyed later, when nothing waits for this thread (incarnation.c). Never before:
 * drivers remove a destroyed queue pair's entries from its completion queue. One that does not
 * account for its work, or whose device is gone, must be destroyed for the fence to be over.
 */
#include "base/clock.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "plugin/failover/failover.h"
#include "plugin/report/journal.h"
#include "rdma/verbs/status.h"

#include <errno.h>

#define QUIET_NS 100000u /* a receiver has received nothing for so long */
#define LOOK_NS 20000u   /* between two looks at a draining queue */
/* drivers that never say that the last receive was taken */
#define EVENT_NS 5000000u
#define TIDY_NS (100 * HA_NS_PER_MS) /* from the end of a fence until its queue pair goes */
/* a NIC that does not account for its work: destroying the queue pair ends it as well */
#define FENCE_NS 1000000000u

static bool device_gone(const struct ha_rail *r)
{
	return r->opening && ha_opening_lost(r->opening);
}

/* Optional receives that are open may have given their data to the application already, and get it
 * once more. */
static void doubt_receives(struct ha_recv *c)
{
	bool any = false;

	for (uint64_t idx = c->done; idx < c->head; idx++) {
		struct ha_recv_slot *slot = &c->slot[idx % HA_SLOTS];

		if (slot->busy & HA_SLOT_WIRE && slot->busy & HA_SLOT_OPTIONAL) {
			slot->busy |= HA_SLOT_DOUBT;
			any = true;
		}
	}
	if (any)
		atomic_fetch_or_explicit(&c->b.attention, HA_ATTN_DOUBT, memory_order_relaxed);
}

/* The same fault, seen by one connection, is everybody's who uses the same port. */
static void notify_siblings(struct ha_bundle *b, struct ha_rail *r)
{
	if (!r->loss.local)
		return;
	r->loss.local = false;
	ha_device_refresh(r->dev);
	if (!ha_device_usable(r->dev))
		ha_failover_device(r->dev, HA_CAUSE_SIBLING);
}

static void begin_fence(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	struct ha_control *k = &b->failover->ctl[r->index];

	k->fence.stage = HA_FENCE_QUIET;
	k->fence.quiet_until = b->is_send || !k->working ? now : now + QUIET_NS;
	k->fence.deadline = now + FENCE_NS;
	r->loss.marker = HA_MARKER_NONE;
	k->out.repeat_at = 0;
	k->out.due = 0;
	if (!b->abort->error && !b->peer_closed && b->terms.flags & HA_FLAG_FAILOVER &&
	    !k->fence.peer_knows)
		k->out.due |= HA_SEND(RAIL_DOWN);
	if (!b->is_send)
		doubt_receives((struct ha_recv *)b);
	notify_siblings(b, r);
	ha_roles_update(b);
}

static void to_error(struct ha_bundle *b, struct ha_rail *r)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	if (r->qp && !r->hookup)
		(void)b->ctx->verbs->modify_qp(b->ctx->verbs, r->qp, &attr, IBV_QP_STATE);
	b->failover->ctl[r->index].fence.stage = HA_FENCE_DRAIN;
}

/* Behind all that was posted; in error it comes back at once, and last. */
static void post_marker(struct ha_bundle *b, struct ha_rail *r)
{
	struct ibv_send_wr *bad, wr = {
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = b->peer_ring, .rkey = r->ring_rkey },
	};

	if (r->loss.marker != HA_MARKER_NONE || !ha_rail_room(r))
		return;
	wr.wr_id = ha_wr_id(HA_WR_MARKER, 0, r->sq_posted + 1);
	if (r->hot->post_send(r->qp, &wr, &bad))
		return;
	ha_rail_count_post(r);
	r->loss.marker = HA_MARKER_POSTED;
}

/* What its completion queue holds goes with it: all of that counts, however much one poll takes. */
static void take_rest(struct ha_bundle *b, struct ha_rail *r)
{
	int n, left = r->cq ? r->cq->cqe : 0;

	do {
		n = ha_rail_poll(b, r);
		left -= n;
	} while (n == b->poll.most && left > 0);
}

/* How the drain goes on: it does, or it is over, or the queue pair must be destroyed. */
static enum ha_fence_stage drain_rail(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	struct ha_control *k = &b->failover->ctl[r->index];
	bool receives_over = b->is_send ||
			     atomic_load_explicit(&k->fence.last_receive, memory_order_acquire) ||
			     now >= k->fence.deadline - FENCE_NS + EVENT_NS;

	/* An incarnation that never carried anything, and a device that is gone, have nothing to
	 * account for. */
	if (!r->qp || !k->working || device_gone(r)) {
		take_rest(b, r);
		return HA_FENCE_CLOSE;
	}
	post_marker(b, r);
	/* The marker is in error, so the queue pair is. */
	if (ha_rail_poll(b, r) < b->poll.most && r->loss.marker == HA_MARKER_BACK &&
	    receives_over) {
		k->fence.tidy_at = now + TIDY_NS;
		return HA_FENCE_OVER;
	}
	if (now < k->fence.deadline)
		return HA_FENCE_DRAIN;
	take_rest(b, r);
	return HA_FENCE_CLOSE;
}

static bool has_overlap(const struct ha_recv_slot *a, const struct ha_recv_slot *b)
{
	for (unsigned i = 0; i < a->n; i++) {
		const struct ha_recv_buffer *buf = ha_recv_buffer(a, i);

		for (unsigned k = 0; k < b->n; k++)
			if (ha_recv_overlaps(ha_recv_buffer(b, k), buf->data, buf->size))
				return true;
	}
	return false;
}

/* An optional receive whose buffer was posted again has had its data used: it is complete, whatever
 * immediates are missing. */
static void supersede_receives(struct ha_recv *c)
{
	for (uint64_t idx = c->done; idx < c->head; idx++) {
		struct ha_recv_slot *slot = &c->slot[idx % HA_SLOTS];
		bool used = false;

		if (!(slot->busy & HA_SLOT_OPTIONAL))
			continue;
		for (uint64_t later = idx + 1; later < c->head && !used; later++)
			used = has_overlap(slot, &c->slot[later % HA_SLOTS]);
		if (!used)
			continue;
		c->superseded++;
		ha_recv_arrived(c, slot);
	}
}

/* Reads behind received data that this rail would have answered: what it had written has left
 * it. */
static void end_flushes(struct ha_recv *c, const struct ha_rail *r)
{
	for (unsigned busy = c->flush_busy; busy; busy &= busy - 1) {
		struct ha_request *q = &c->flush[__builtin_ctz(busy)];

		q->pending &= ~(1u << r->index);
		q->done = !q->pending;
	}
}

static void end_fence(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	struct ha_control *k = &b->failover->ctl[r->index];

	if (!b->is_send) {
		end_flushes((struct ha_recv *)b, r);
		supersede_receives((struct ha_recv *)b);
	}
	ha_rail_enter(r, HA_RAIL_FENCED);
	if (b->abort->error || b->peer_closed || !(b->terms.flags & HA_FLAG_FAILOVER)) {
		ha_rail_enter(r, HA_RAIL_DOWN); /* nobody to compare with */
		return;
	}
	if (k->working && r->loss.cause != HA_CAUSE_SURPLUS)
		ha_journal_eventf(
			b->ctx,
			&(struct ha_event) { .kind = HA_EVENT_FENCED,
					     .cause = r->loss.cause,
					     .bundle = b,
					     .rail = r },
			"%u us after the suspicion",
			(unsigned)((ha_clock_now(b->ctx->clock) - r->loss.suspected_at) / 1000));
	ha_reconcile_state(b, &k->compare.state);
	ha_compare_enter(b, r, HA_COMPARE_TAKEN);
	/* Which says all but the cause; a silence is news for others, what is superfluous is none,
	 * and buffers that were given back are mostly how the connection ends. */
	if (r->loss.cause != HA_CAUSE_TIMEOUT && r->loss.cause != HA_CAUSE_SILENCE &&
	    r->loss.cause != HA_CAUSE_SURPLUS && r->loss.cause != HA_CAUSE_QUEUE_ERROR)
		k->out.due &= ~HA_SEND(RAIL_DOWN);
	k->out.due |= HA_SEND(RAIL_FENCED);
	k->out.repeats = 0;
}

static void step_start(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	if (b->failover->ctl[r->index].fence.stage == HA_FENCE_START)
		begin_fence(b, r, now);
}

/* Until nothing has come for a moment; then the queue pair goes into error. */
static void step_quiet(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	struct ha_fence *fence = &b->failover->ctl[r->index].fence;

	if (fence->stage != HA_FENCE_QUIET)
		return;
	if (!b->is_send && r->cq && ha_rail_poll(b, r) && now < fence->deadline)
		fence->quiet_until = now + QUIET_NS;
	if (now >= fence->quiet_until || device_gone(r))
		to_error(b, r);
}

static void step_drain(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	struct ha_control *k = &b->failover->ctl[r->index];

	if (k->fence.stage != HA_FENCE_DRAIN)
		return;
	k->fence.stage = drain_rail(b, r, now);
	if (k->fence.stage == HA_FENCE_CLOSE)
		k->slow = HA_SLOW_CLOSE;
}

static void step_close(struct ha_bundle *b, const struct ha_rail *r)
{
	struct ha_control *k = &b->failover->ctl[r->index];

	if (k->fence.stage != HA_FENCE_CLOSE || k->slow != HA_SLOW_DONE)
		return;
	k->slow = HA_SLOW_NONE;
	k->fence.stage = HA_FENCE_OVER;
}

/* Back before the incarnation that it took down was over: the port's own event found nothing to
 * notify the peer. */
static void report_port_is_back(struct ha_bundle *b, struct ha_rail *r)
{
	struct ha_control *k = &b->failover->ctl[r->index];

	if (!b->is_send && r->loss.cause == HA_CAUSE_PORT_DOWN && ha_device_usable(r->dev))
		k->out.due |= HA_SEND(RAIL_BACK);
}

/* Both ends are fenced: what is missing is posted again elsewhere, and the epoch is closed. */
static void step_compare(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	struct ha_control *k = &b->failover->ctl[r->index];

	if (r->state != HA_RAIL_FENCED || !k->compare.has_peer_state)
		return;
	ha_reconcile(b, r);
	k->out.due |= HA_SEND(RAIL_ACK);
	/* later incarnations may fail before it can be reported */
	if (k->working && r->loss.cause != HA_CAUSE_SURPLUS) {
		k->compare.unreported = true;
		k->compare.cause = r->loss.cause;
	}
	ha_rail_enter(r, HA_RAIL_DOWN);
	ha_incarnation_over(b, r, now);
	report_port_is_back(b, r);
}

void ha_fence_step(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	const struct ha_fence *fence = &b->failover->ctl[r->index].fence;

	step_start(b, r, now);
	step_quiet(b, r, now);
	step_drain(b, r, now);
	step_close(b, r);
	if (r->state == HA_RAIL_FENCING && fence->stage == HA_FENCE_OVER)
		end_fence(b, r, now);
	step_compare(b, r, now);
	if (fence->stage == HA_FENCE_QUIET)
		ha_due(b, fence->quiet_until);
	else if (fence->stage == HA_FENCE_DRAIN)
		ha_due(b, now + LOOK_NS);
}
