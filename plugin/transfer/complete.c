/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * complete.c - from completions to requests: polling, the meaning of each completion, test()
 *
 * A send is complete when each rail that carried a stripe of it has reported its immediate sent
 * (and, with ACK=memory, the receiver has said so: delivery.c). A receive is complete when the
 * stripes seen are those that the first immediate's mask named. Nothing else counts, until a rail
 * is fenced and the other end says what it has (reconcile.c).
 */
#include "plugin/balance/adaptive.h"
#include "plugin/balance/policy.h"
#include "plugin/channel/board.h"
#include "plugin/channel/schedule.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "plugin/transfer/guard.h"
#include "plugin/transfer/stripe.h"
#include "plugin/transfer/suspect.h"

#include "base/log.h"
#include "rdma/verbs/status.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

static __attribute__((noinline, cold)) void broken_immediate(struct ha_bundle *b, uint32_t imm)
{
	ha_bundle_abort(b, -EPROTO, HA_CAUSE_PROTOCOL,
			"immediate 0x%08x names no receive that is waiting; the peer's plugin is "
			"of another kind or damaged",
			imm);
}

/* A portion of receives is given back. The next one may be smaller: more connections share the
 * queue, or fewer. */
static void refill_receives(struct ha_rail *r)
{
	uint32_t portion = HA_REFILL - r->rq_base, left = r->rq_consumed - HA_REFILL;
	struct ibv_recv_wr *bad;

	/* A full or failed queue is no news here: what is missing shows as the peer's
	 * receiver-not-ready retries. */
	if (r->hot->post_srq_recv(r->srq, ha_device_refill(r->dev, portion), &bad))
		return;
	r->rq_base = HA_REFILL - ha_device_portion(r->dev);
	__atomic_store_n(&r->rq_consumed, r->rq_base + left, __ATOMIC_RELAXED);
}

static inline void message_arrived(struct ha_recv *c, struct ha_recv_slot *slot)
{
	slot->busy &= (uint8_t)~HA_SLOT_ARRIVED;
	slot->req.done = 1;
	while (c->done < c->head && !(c->slot[c->done % HA_SLOTS].busy & HA_SLOT_WIRE))
		c->done++;
}

/* An immediate that no slot waits for, or that comes a second time. */
static __attribute__((noinline, cold)) void on_unexpected(struct ha_recv *c,
							  const struct ha_recv_slot *slot,
							  uint32_t imm)
{
	bool waits = slot->busy & HA_SLOT_WIRE &&
		     ha_imm_identity_of(imm) == ha_imm_identity_of(slot->common);

	/* Of a receive that was called complete before: what comes of it still belongs to
	 * nobody. */
	if (!c->superseded || waits)
		broken_immediate(&c->b, imm);
}

/* One of several stripes, or a message with a sizes record, or something that should not be. */
static __attribute__((noinline)) void on_stripe(struct ha_recv *c, struct ha_recv_slot *slot,
						uint32_t imm, uint32_t byte_len)
{
	unsigned bit = 1u << ha_imm_stripe(imm);

	if (slot->imm == ha_imm_identity_of(imm)) { /* the first one says which they are */
		slot->imm = ha_imm_spoiled(slot->req.entry);
		slot->common = ha_imm_common(imm);
		slot->missing = (uint8_t)ha_imm_mask(imm);
	}
	if (unlikely(slot->common != ha_imm_common(imm) || !(slot->missing & bit))) {
		on_unexpected(c, slot, imm);
		return;
	}
	slot->seen |= (uint8_t)bit;
	slot->missing &= (uint8_t)~bit;
	slot->sized |= (imm & HA_IMM_SIZED) != 0;
	slot->bytes += byte_len;
	if (!slot->missing)
		message_arrived(c, slot);
}

static inline void on_immediate(struct ha_recv *c, struct ha_rail *r, const struct ibv_wc *wc)
{
	uint32_t imm = ntohl(wc->imm_data);
	struct ha_recv_slot *slot = &c->slot[ha_imm_slot(imm)];
	uint32_t consumed = r->rq_consumed + 1;

	/* Relaxed: heartbeat.c only wants to know whether it changes. */
	__atomic_store_n(&r->rq_consumed, consumed, __ATOMIC_RELAXED);
	if (unlikely(consumed >= HA_REFILL))
		refill_receives(r);
	/* Nearly always: a whole message on this rail, for a slot that nothing has touched yet. */
	if (unlikely(imm != (slot->imm | r->imm_whole))) {
		on_stripe(c, slot, imm, wc->byte_len);
		return;
	}
	slot->imm = ha_imm_spoiled(slot->req.entry);
	slot->bytes = wc->byte_len;
	message_arrived(c, slot);
}

void ha_recv_arrived(struct ha_recv *c, struct ha_recv_slot *slot)
{
	slot->imm = ha_imm_spoiled(slot->req.entry);
	slot->missing = 0;
	message_arrived(c, slot);
}

static inline void on_stripe_sent(struct ha_send *s, uint64_t wr_id)
{
	struct ha_send_slot *slot = &s->slot[(uint8_t)wr_id];

	slot->pending &= (uint16_t) ~(1u << (wr_id >> 8 & 7));
	if (slot->pending)
		return;
	slot->req.done = 1;
	for (unsigned m = 1; m < slot->n; m++)
		ha_send_request(slot, m)->done = 1;
}

static void on_timed_stripe(struct ha_send *s, uint64_t wr_id)
{
	unsigned stripe = wr_id >> 8 & 7;

	ha_adaptive_done(&s->b, stripe, ha_stripe_bytes(&s->slot[(uint8_t)wr_id], stripe));
	ha_gate_done(&s->b, stripe, (uint8_t)wr_id);
	ha_lag_done(&s->b, stripe, (uint8_t)wr_id);
	on_stripe_sent(s, wr_id);
}

/* A stripe's data is there, and its record may go. On a rail that has failed it may not: the fence
 * sends the whole stripe again. */
static void on_payload_sent(struct ha_send *s, struct ha_rail *r, uint64_t wr_id, bool timed)
{
	if (r->state == HA_RAIL_UP)
		ha_stripe_finish(s, r, &s->slot[(uint8_t)wr_id], wr_id >> 8 & 7, timed);
}

/* What is rare among completions that say success. */
static __attribute__((noinline)) void on_other(struct ha_bundle *b, struct ha_rail *r,
					       uint64_t wr_id)
{
	switch ((enum ha_wr_kind)(wr_id >> 16 & 0xffff)) {
	case HA_WR_TIMED:
		on_timed_stripe((struct ha_send *)b, wr_id);
		break;
	case HA_WR_PROBE:
		ha_gate_probed(b, r->index);
		break;
	case HA_WR_PAYLOAD:
		on_payload_sent((struct ha_send *)b, r, wr_id, false);
		break;
	case HA_WR_PAYLOAD_TIMED:
		on_payload_sent((struct ha_send *)b, r, wr_id, true);
		break;
	default:
		break;
	}
}

/* A work request that its queue pair gave back unsuccessfully. Its opcode says nothing, its number
 * does. A receive that the queue pair had taken is consumed all the same. */
static __attribute__((noinline, cold)) void on_failure(struct ha_bundle *b, struct ha_rail *r,
						       const struct ibv_wc *wc)
{
	unsigned kind = wc->wr_id >> 16 & 0xffff;

	if (ha_wr_is_receive(wc->wr_id)) {
		__atomic_store_n(&r->rq_consumed, r->rq_consumed + 1, __ATOMIC_RELAXED);
	} else {
		ha_rail_retire(r, wc->wr_id);
		if (kind == HA_WR_MARKER)
			r->loss.marker = HA_MARKER_BACK;
	}
	ha_rail_failed(b, r, wc, -EIO);
}

static inline __attribute__((always_inline)) void on_completion(struct ha_bundle *b,
								struct ha_rail *r,
								const struct ibv_wc *wc,
								bool is_send)
{
	unsigned kind;

	if (unlikely(wc->status != IBV_WC_SUCCESS)) {
		on_failure(b, r, wc);
		return;
	}
	if (wc->opcode & IBV_WC_RECV) {
		if (likely(!is_send))
			on_immediate((struct ha_recv *)b, r, wc);
		else
			broken_immediate(b, ntohl(wc->imm_data));
		return;
	}
	ha_rail_retire(r, wc->wr_id);
	kind = wc->wr_id >> 16 & 0xffff;
	if (is_send && likely(kind == HA_WR_DATA))
		on_stripe_sent((struct ha_send *)b, wc->wr_id);
	else if (unlikely(kind >= HA_WR_TIMED))
		on_other(b, r, wc->wr_id);
}

static void poll_flushes(struct ha_recv *c, struct ha_rail *r)
{
	struct ibv_wc wc[4];
	int n = r->hot->poll_cq(ha_rail_flush_cq(r), 4, wc);

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

/* Ask a rail until it has nothing more, but for `most` completions at most; returns how many there
 * were. */
static __attribute__((noinline)) int poll_rail(struct ha_bundle *b, struct ha_rail *r, int most)
{
	struct ibv_wc wc[HA_POLL_BATCH_MAX];
	int n, total = 0, want = b->poll.batch < most ? b->poll.batch : most;

	do {
		n = r->hot->poll_cq(r->cq, want, wc);
		for (int k = 0; k < n; k++)
			on_completion(b, r, &wc[k], b->is_send);
		if (unlikely(n < 0))
			ha_rail_failed(b, r, NULL, -EIO);
		else
			total += n;
		if (unlikely(want > most - total))
			want = most - total;
	} while (unlikely(n == b->poll.batch && want > 0));
	if (unlikely(ha_rail_flush_cq(r) != NULL))
		poll_flushes((struct ha_recv *)b, r);
	return total;
}

int ha_rail_poll(struct ha_bundle *b, struct ha_rail *r)
{
	return r->cq ? poll_rail(b, r, b->poll.most) : 0;
}

/* Of a rail that is polled: another one may be opened anew at this moment. */
static inline void count_poll(struct ha_bundle *b)
{
	const struct ha_rail *r = b->poll.list[0];

	if (r)
		atomic_fetch_add_explicit(&r->dev->polls, 1, memory_order_relaxed);
}

/* A rail had as many completions as were asked for, or cannot be asked. How many that are with what
 * it has now. */
static __attribute__((noinline)) int poll_again(struct ha_bundle *b, struct ha_rail *r, int n)
{
	if (n >= 0)
		return n < b->poll.quota ? n + poll_rail(b, r, b->poll.quota - n) : n;
	ha_rail_failed(b, r, NULL, -EIO);
	return 0;
}

/* The list may change below it, when a completion says that a rail has failed: what is read then is
 * an entry of the new one or of the old one, and no rail goes while the owner is inside. */
static inline __attribute__((always_inline)) int poll_rails(struct ha_bundle *b, bool is_send)
{
	struct ibv_wc wc[HA_POLL_BATCH_MAX];
	struct ha_rail *r;
	int total = 0;

	if (unlikely(b->poll.always))
		count_poll(b);
	for (struct ha_rail *const *at = b->poll.list; (r = *at) != NULL; at++) {
		int n = r->hot->poll_cq(r->cq, b->poll.want, wc);
		const struct ibv_wc *next = wc;

		for (int left = n; left > 0; left--)
			on_completion(b, r, next++, is_send);
		if (unlikely(n < 0 || n >= b->poll.want))
			n = poll_again(b, r, n);
		total += n;
		if (!is_send && unlikely(ha_rail_flush_cq(r) != NULL))
			poll_flushes((struct ha_recv *)b, r);
	}
	return total;
}

int ha_bundle_poll(struct ha_bundle *b)
{
	return b->is_send ? poll_rails(b, true) : poll_rails(b, false);
}

static void finish_sizes(const struct ha_recv *c, const struct ha_recv_slot *slot, int *sizes)
{
	const struct ha_sizes *record = (const struct ha_sizes *)c->b.ring + slot->req.entry;

	if (likely(!slot->sized)) {
		sizes[0] = slot->bytes > INT_MAX ? INT_MAX : (int)slot->bytes;
		for (unsigned m = 1; m < slot->n; m++)
			/* an optional receive that NCCL completes before its data is here */
			sizes[m] = 0;
		return;
	}
	for (unsigned m = 0; m < slot->n; m++)
		sizes[m] = record->size[m] > INT_MAX ? INT_MAX : (int)record->size[m];
}

/* The request is done: hand out its sizes and take it back. */
static inline void finish_send(const struct ha_request *req, int *sizes)
{
	((struct ha_send *)req->bundle)->slot[req->entry].held &= (uint8_t) ~(1u << req->member);
	if (sizes)
		sizes[0] = req->size > INT_MAX ? INT_MAX : (int)req->size;
}

static inline void finish_receive(const struct ha_request *req, int *sizes)
{
	struct ha_recv *c = (struct ha_recv *)req->bundle;
	struct ha_recv_slot *slot = &c->slot[req->entry];

	if (unlikely(req->kind != HA_REQ_RECV)) {
		c->flush_busy &= ~(1u << req->entry);
		return;
	}
	if (sizes)
		finish_sizes(c, slot, sizes);
	slot->busy &= (uint8_t)~HA_SLOT_HELD;
}

__attribute__((noinline)) bool ha_bundle_look_around(struct ha_bundle *b)
{
	b->poll.idle = 0;
	for (unsigned rails = b->active & ~(unsigned)b->poll.rails; rails; rails &= rails - 1) {
		struct ha_rail *r = &b->rail[__builtin_ctz(rails)];
		unsigned bit = rails & -rails;
		uint32_t consumed = r->rq_consumed;

		poll_rail(b, r, b->poll.most);
		/* The peer has its own idea of who carries data: ask this one each time, until the
		 * roles change; not if it has failed with what it brought. */
		if (r->rq_consumed != consumed && b->active & bit)
			ha_policy_poll(b, b->poll.rails | bit);
	}
	if (ha_board_has_message(b))
		ha_bundle_drive_soon(b);
	return !b->ctx->loop.threaded;
}

void ha_bundle_count_idle(struct ha_bundle *b)
{
	if (++b->poll.idle >= b->poll.idle_limit && ha_bundle_look_around(b))
		ha_bundle_drive_soon(b);
}

static void finish_request(const struct ha_request *req, int *done, int *sizes)
{
	if (req->kind == HA_REQ_SEND)
		finish_send(req, sizes);
	else
		finish_receive(req, sizes);
	*done = 1;
}

/* A read behind received data goes over every rail that may have brought some; those that carry
 * nothing now are not polled. */
static void poll_for_flush(const struct ha_request *req)
{
	struct ha_recv *c = (struct ha_recv *)req->bundle;

	for (unsigned rails = req->pending & ~(unsigned)c->b.poll.rails; rails;
	     rails &= rails - 1) {
		struct ha_rail *r = &c->b.rail[__builtin_ctz(rails)];

		if (r->state == HA_RAIL_UP && ha_rail_flush_cq(r))
			poll_flushes(c, r);
	}
}

/* Inside, polled without a result. What the caller returns. */
static __attribute__((noinline)) int test_in_vain(struct ha_request *req, int *done, int *sizes)
{
	struct ha_bundle *b = req->bundle;
	bool round;
	int err;

	if (req->kind == HA_REQ_FLUSH)
		poll_for_flush(req);
	round = unlikely(++b->poll.idle >= b->poll.idle_limit) && ha_bundle_look_around(b);
	err = req->done ? 0 : b->error;
	if (req->done)
		finish_request(req, done, sizes);
	ha_bundle_leave(b);
	if (unlikely(round))
		b->ctx->progress(b->ctx);
	return err;
}

/* Something asks for attention. */
static __attribute__((noinline)) int test_attentively(struct ha_request *req, int *done, int *sizes)
{
	struct ha_bundle *b = req->bundle;

	if (ha_bundle_enter_slow(b) == HA_NOT_NOW)
		return 0;
	if (!req->done) {
		ha_bundle_poll(b);
		ha_bundle_delivery(b);
	}
	if (!req->done)
		return test_in_vain(req, done, sizes);
	finish_request(req, done, sizes);
	ha_bundle_leave(b);
	return 0;
}

static inline __attribute__((always_inline)) int test_request(struct ha_request *req, int *done,
							      int *sizes, bool is_send)
{
	struct ha_bundle *b = req->bundle;

	*done = 0;
	if (unlikely(!ha_bundle_enter_fast(b)))
		return test_attentively(req, done, sizes);
	if (!req->done) {
		poll_rails(b, is_send);
		if (unlikely(!req->done))
			return test_in_vain(req, done, sizes);
	}
	if (is_send)
		finish_send(req, sizes);
	else
		finish_receive(req, sizes);
	*done = 1;
	ha_bundle_leave(b);
	return 0;
}

/* Two functions, so that neither saves registers for what only the other one needs. */
static __attribute__((noinline)) int test_send(struct ha_request *req, int *done, int *sizes)
{
	return test_request(req, done, sizes, true);
}

static __attribute__((noinline)) int test_receive(struct ha_request *req, int *done, int *sizes)
{
	return test_request(req, done, sizes, false);
}

int ha_test(struct ha_request *req, int *done, int *sizes)
{
	return req->kind == HA_REQ_SEND ? test_send(req, done, sizes)
					: test_receive(req, done, sizes);
}
