/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * complete.c - from completions to requests: polling, the meaning of each completion, test()
 *
 * A send is complete when each rail that carried a stripe of it has reported its immediate sent. A receive is complete when
 * the stripes seen are those that the first immediate's mask named. Nothing else counts.
 */
#include "core/bundle.h"
#include "core/ctx.h"
#include "core/device.h"
#include "core/journal.h"
#include "core/policy.h"

#include "base/clock.h"
#include "base/log.h"
#include "verbs/status.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* After a farewell, how long messages that the peer says it has sent may still take. A NIC acknowledges before the
 * receiver's completion is visible, so the farewell on the socket may overtake the last one, by microseconds. */
#define BYE_GRACE_NS 1000000000ull

#define SELF_DRIVE_INTERVAL 64 /* fruitless polls between two looks at sockets and events, without a service thread */

static __attribute__((noinline, cold)) void broken_immediate(struct ha_bundle *b, uint32_t imm)
{
	HA_WARN(b->name,
		"immediate 0x%08x names no receive that is waiting; the peer's plugin is of another kind or damaged", imm);
	b->error = -EPROTO;
}

static void refill(struct ha_rail *r)
{
	struct ibv_recv_wr *bad;

	/* A full or failed queue is no news here: what is missing shows as the peer's receiver-not-ready retries. */
	if (!r->hot->post_srq_recv(r->dev->srq, r->dev->refill, &bad))
		r->rq_debt -= HA_REFILL;
}

static inline void message_arrived(struct ha_recv *c, struct ha_recv_slot *slot)
{
	slot->busy &= (uint8_t)~HA_SLOT_WIRE;
	slot->req.done = 1;
	while (c->done < c->head && !(c->slot[c->done % HA_SLOTS].busy & HA_SLOT_WIRE))
		c->done++;
}

/* One of several stripes, or a message with a sizes record, or something that should not be. */
static __attribute__((noinline)) void on_stripe(struct ha_recv *c, struct ha_recv_slot *slot, uint32_t imm, uint32_t byte_len)
{
	unsigned bit = 1u << ha_imm_stripe(imm), mask = ha_imm_mask(imm);

	if (unlikely(!(slot->busy & HA_SLOT_WIRE) || ha_imm_identity_of(imm) != ha_imm_identity(slot->idx) || !(mask & bit) ||
		     slot->seen & bit || (slot->mask && slot->mask != mask))) {
		broken_immediate(&c->b, imm);
		return;
	}
	slot->imm = ha_imm_spoiled(slot->req.entry);
	slot->mask = (uint8_t)mask;
	slot->seen |= (uint8_t)bit;
	slot->sized |= (imm & HA_IMM_SIZED) != 0;
	slot->bytes += byte_len;
	if (slot->seen == mask)
		message_arrived(c, slot);
}

static inline void on_immediate(struct ha_recv *c, struct ha_rail *r, const struct ibv_wc *wc)
{
	uint32_t imm = ntohl(wc->imm_data);
	struct ha_recv_slot *slot = &c->slot[ha_imm_slot(imm)];

	if (unlikely(++r->rq_debt >= HA_REFILL))
		refill(r);
	/* Nearly always: a whole message on this rail, for a slot that nothing has touched yet. */
	if (unlikely(imm != (slot->imm | r->imm_whole))) {
		on_stripe(c, slot, imm, wc->byte_len);
		return;
	}
	slot->imm = ha_imm_spoiled(slot->req.entry);
	slot->bytes = wc->byte_len;
	message_arrived(c, slot);
}

static inline void on_stripe_sent(struct ha_send *s, struct ha_rail *r, unsigned entry)
{
	struct ha_send_slot *slot = &s->slot[entry];

	slot->pending &= (uint8_t)~(1u << r->index);
	if (slot->pending)
		return;
	for (unsigned m = 0; m < slot->n; m++)
		slot->req[m].done = 1;
}

static inline void on_completion(struct ha_bundle *b, struct ha_rail *r, const struct ibv_wc *wc)
{
	if (unlikely(wc->status != IBV_WC_SUCCESS)) {
		ha_rail_failed(b, r, wc, -EIO);
		return;
	}
	if (wc->opcode & IBV_WC_RECV) {
		if (likely(!b->is_send))
			on_immediate((struct ha_recv *)b, r, wc);
		else
			broken_immediate(b, ntohl(wc->imm_data));
		return;
	}
	r->sq_retired = (uint32_t)(wc->wr_id >> 32);
	if ((wc->wr_id >> 16 & 0xffff) == HA_WR_DATA)
		on_stripe_sent((struct ha_send *)b, r, (uint8_t)wc->wr_id);
}

static void poll_flushes(struct ha_recv *c, struct ha_rail *r)
{
	struct ibv_wc wc[4];
	int n = r->hot->poll_cq(r->flush_cq, 4, wc);

	for (int i = 0; i < n; i++) {
		struct ha_request *q = &c->flush[(uint8_t)wc[i].wr_id % HA_FLUSHES];

		if (wc[i].status != IBV_WC_SUCCESS) {
			ha_rail_failed(&c->b, r, &wc[i], -EIO);
			continue;
		}
		q->pending &= ~(1u << r->index);
		q->done = !q->pending;
	}
}

/* Take completions from one rail, at most `most`; returns how many. */
static inline int poll_rail(struct ha_bundle *b, struct ha_rail *r, int most)
{
	struct ibv_wc wc[HA_POLL_BATCH_MAX];
	int n, total = 0, want = b->poll_batch < most ? b->poll_batch : most;

	do {
		n = r->hot->poll_cq(r->cq, want, wc);
		for (int k = 0; k < n; k++)
			on_completion(b, r, &wc[k]);
		if (unlikely(n < 0))
			ha_rail_failed(b, r, NULL, -EIO);
		else
			total += n;
		if (unlikely(want > most - total))
			want = most - total;
	} while (unlikely(n == b->poll_batch && want > 0));
	if (unlikely(r->flush_cq != NULL))
		poll_flushes((struct ha_recv *)b, r);
	return total;
}

int ha_bundle_poll(struct ha_bundle *b)
{
	int left = b->poll_max, at_least_one = 1;

	for (unsigned i = 0; i < b->nrails; i++) {
		struct ha_rail *r = &b->rail[i];

		if (likely(r->cq != NULL))
			left -= poll_rail(b, r, left > at_least_one ? left : at_least_one);
	}
	return b->poll_max - left;
}

static void finish_sizes(const struct ha_recv *c, const struct ha_recv_slot *slot, int *sizes)
{
	const struct ha_sizes *record = (const struct ha_sizes *)c->b.ring + slot->req.entry;

	if (likely(!slot->sized)) {
		sizes[0] = slot->bytes > INT_MAX ? INT_MAX : (int)slot->bytes;
		for (unsigned m = 1; m < slot->n; m++)
			sizes[m] = 0; /* an optional receive that NCCL completes before its data is here */
		return;
	}
	for (unsigned m = 0; m < slot->n; m++)
		sizes[m] = record->size[m] > INT_MAX ? INT_MAX : (int)record->size[m];
}

/* The request is done: hand out its sizes and take it back. */
static inline void finish(struct ha_request *req, int *sizes)
{
	struct ha_bundle *b = req->bundle;

	if (req->kind == HA_REQ_SEND) {
		((struct ha_send *)b)->slot[req->entry].held &= (uint8_t)~(1u << req->member);
		if (sizes)
			sizes[0] = req->size > INT_MAX ? INT_MAX : (int)req->size;
	} else if (likely(req->kind == HA_REQ_RECV)) {
		struct ha_recv *c = (struct ha_recv *)b;
		struct ha_recv_slot *slot = &c->slot[req->entry];

		if (sizes)
			finish_sizes(c, slot, sizes);
		slot->busy &= (uint8_t)~HA_SLOT_HELD;
	} else {
		((struct ha_recv *)b)->flush_busy &= ~(1u << req->entry);
	}
}

int ha_test(struct ha_request *req, int *done, int *sizes)
{
	struct ha_bundle *b = req->bundle;

	*done = 0;
	if (!req->done) {
		ha_bundle_poll(b);
		if (!req->done) {
			if (unlikely(b->self_driven) && ++b->idle_polls % SELF_DRIVE_INTERVAL == 0)
				ha_ctx_progress(b->ctx);
			if (unlikely(b->error || atomic_load_explicit(&b->attention, memory_order_relaxed)) &&
			    ha_bundle_attend(b) && !req->done)
				return b->error;
			if (likely(!req->done))
				return 0;
		}
	}
	finish(req, sizes);
	*done = 1;
	return 0;
}

/* ---- everything below is off the hot path ---- */

void ha_rail_failed(struct ha_bundle *b, struct ha_rail *r, const struct ibv_wc *wc, int err)
{
	const struct ha_event suspected = {
		.kind = HA_EVENT_SUSPECTED,
		.cause = wc ? HA_CAUSE_WORK_FAILED : HA_CAUSE_WORK_REFUSED,
		.bundle = b,
		.rail = r,
	};
	bool first = r->state == HA_RAIL_UP;

	r->state = HA_RAIL_DOWN;
	b->active &= (uint8_t)~(1u << r->index);
	ha_policy_update(b);
	if (!first)
		return; /* what follows the first error is its flush */
	if (b->bye_deadline || atomic_load_explicit(&b->attention, memory_order_acquire) & HA_ATTN_PEER_BYE)
		HA_TRACE(b->name, "rail %u: work after the peer's farewell failed", r->index);
	else if (wc)
		ha_journal_eventf(b->ctx, &suspected, "work request failed: %s (vendor 0x%x); %s",
				  ha_verbs_status_name(wc->status), wc->vendor_err, ha_verbs_status_advice(wc->status));
	else
		ha_journal_eventf(b->ctx, &suspected, "the device refused work: %s; is it still there (ibv_devinfo)?",
				  strerror(-err));
	if (!b->active)
		atomic_fetch_or_explicit(&b->attention, HA_ATTN_NO_RAIL, memory_order_relaxed);
}

/* The peer closed: what it says has arrived is complete. */
static void settle_sends(struct ha_send *s, uint64_t done)
{
	for (unsigned e = 0; e < HA_SLOTS; e++) {
		struct ha_send_slot *slot = &s->slot[e];

		if (slot->pending && slot->idx < done) {
			slot->pending = 0;
			for (unsigned m = 0; m < slot->n; m++)
				slot->req[m].done = 1;
		}
	}
}

/* What the peer had not looked at yet when it closed may still be acknowledged. */
static bool sends_pending(const struct ha_send *s)
{
	for (unsigned e = 0; e < HA_SLOTS; e++)
		if (s->slot[e].pending)
			return true;
	return false;
}

/* The last messages are on their way, or their flushes, which need nobody but our own device. */
static bool receives_pending(const struct ha_recv *c, uint64_t done)
{
	return c->done < done || c->flush_busy;
}

static int attend_farewell(struct ha_bundle *b)
{
	uint64_t now = ha_clock_now(b->ctx->clock), done = atomic_load_explicit(&b->peer_done, memory_order_relaxed);

	if (!b->bye_deadline)
		b->bye_deadline = now + BYE_GRACE_NS;
	if (b->is_send)
		settle_sends((struct ha_send *)b, done);
	if (now < b->bye_deadline && b->active &&
	    (b->is_send ? sends_pending((struct ha_send *)b) : receives_pending((struct ha_recv *)b, done)))
		return 0;
	return b->error = -ECONNRESET;
}

/* An empty write on each rail: its queue pair answers, or fails within its retries and says so. A send queue without room has
 * work in flight that tells as much. */
static void post_probes(struct ha_bundle *b)
{
	for (unsigned i = 0; i < b->nrails; i++) {
		struct ha_rail *r = &b->rail[i];
		struct ibv_send_wr *bad, wr = {
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { .remote_addr = b->peer_ring, .rkey = r->ring_rkey },
		};
		int err;

		r->probe = r->sq_retired;
		if (!(b->active >> i & 1) || r->sq_posted - r->sq_retired >= r->sq_depth)
			continue;
		r->probe = ++r->sq_posted;
		wr.wr_id = ha_wr_id(HA_WR_PROBE, 0, r->probe);
		err = r->hot->post_send(r->qp, &wr, &bad);
		if (err)
			ha_rail_failed(b, r, NULL, -err);
	}
}

/* Until every queue pair has answered or failed, each call looks: an end that waits for its first clear-to-send has no request
 * whose test would. */
static void probe(struct ha_bundle *b)
{
	bool waiting = false;

	if (!b->probing)
		post_probes(b);
	b->probing = true;
	ha_bundle_poll(b);
	for (unsigned i = 0; i < b->nrails; i++)
		waiting |= b->active >> i & 1 && (int32_t)(b->rail[i].probe - b->rail[i].sq_retired) > 0;
	if (waiting)
		return;
	b->probing = false;
	atomic_fetch_and_explicit(&b->attention, ~(uint32_t)HA_ATTN_PROBE, memory_order_relaxed);
}

static void tell_lost(struct ha_bundle *b, enum ha_event_cause cause, const char *text)
{
	ha_journal_event(b->ctx, &(struct ha_event){ .kind = HA_EVENT_LOST, .cause = cause, .bundle = b, .text = text });
}

int ha_bundle_attend(struct ha_bundle *b)
{
	/* Acquire: pairs with the service thread's release, so that peer_done is what came with the bit. */
	uint32_t attention = atomic_load_explicit(&b->attention, memory_order_acquire);

	if (b->error)
		return b->error;
	if (attention & HA_ATTN_PEER_BYE)
		return attend_farewell(b);
	if (attention & HA_ATTN_PEER_DEAD) {
		/* Said once, at the moment that NCCL learns of it. */
		tell_lost(b, HA_CAUSE_PEER_GONE, "the peer's process is gone; look at the log of that rank");
		return b->error = -ECONNRESET;
	}
	if (attention & HA_ATTN_DEVICE) {
		atomic_fetch_and_explicit(&b->attention, ~(uint32_t)HA_ATTN_DEVICE, memory_order_relaxed);
		for (unsigned i = 0; i < b->nrails; i++) {
			int err = atomic_load_explicit(&b->rail[i].dev->failed, memory_order_acquire);

			if (err)
				ha_rail_failed(b, &b->rail[i], NULL, err);
		}
	}
	if (attention & HA_ATTN_PROBE)
		probe(b);
	if (!b->active) {
		tell_lost(b, HA_CAUSE_NO_RAIL, "no rail is left");
		return b->error = -EIO;
	}
	return 0;
}
