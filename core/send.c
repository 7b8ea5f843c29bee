/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * send.c - the sending half of the data path
 *
 * isend serves the receive at the head of the clear-to-send ring. A group is posted when all its sends are there. One buffer
 * on one rail is one work request, prebuilt in the rail; everything else (groups, stripes, more bytes than one work request
 * carries) goes through post_sized(), which writes the data first and then a sizes record with the immediate.
 */
#include "core/ctx.h"
#include "core/mr.h"
#include "core/policy.h"

#include "base/config.h"
#include "base/log.h"

#include <arpa/inet.h>
#include <errno.h>

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/*
 * With adaptive routing the packets of a write may overtake each other, and a NIC then holds a write with immediate back
 * until all of it is there: large payloads go first, as plain writes, and the immediate follows apart.
 */
static uint32_t single_max(const struct ha_config *config, const struct ha_rail *r)
{
	int adaptive = config->ib_adaptive_routing;

	if (adaptive < 0)
		adaptive = r->peer.qp.link_layer == IBV_LINK_LAYER_INFINIBAND;
	return adaptive && config->ib_ar_threshold < r->max_msg ? (uint32_t)config->ib_ar_threshold : r->max_msg;
}

void ha_send_prepare(struct ha_send *s)
{
	for (unsigned e = 0; e < HA_SLOTS; e++)
		for (unsigned m = 0; m < HA_MAX_RECVS; m++)
			s->slot[e].req[m] = (struct ha_request){
				.kind = HA_REQ_SEND, .member = (uint8_t)m, .entry = (uint8_t)e, .bundle = &s->b
			};
	for (unsigned i = 0; i < s->b.nrails; i++) {
		struct ha_rail *r = &s->b.rail[i];

		r->single_max = single_max(&s->b.ctx->config, r);
		r->imm_whole = ha_imm_alone(r->index);
		r->wr = (struct ibv_send_wr){ .sg_list = &r->sge,
					      .num_sge = 1,
					      .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
					      .send_flags = IBV_SEND_SIGNALED };
	}
	ha_policy_update(&s->b);
}

static struct ha_sizes *staged_sizes(const struct ha_send *s, unsigned entry)
{
	return (struct ha_sizes *)((char *)s->b.ring + HA_CTS_RING_SIZE) + entry;
}

static uint32_t sq_room(const struct ha_rail *r)
{
	return r->sq_depth - (r->sq_posted - r->sq_retired);
}

/* One buffer, one rail, one work request: the case that nearly every message is. */
static int post_single(struct ha_send *s, struct ha_rail *r, struct ha_send_slot *slot, const struct ha_cts *cts)
{
	const struct ha_request *req = &slot->req[0];
	struct ibv_send_wr *bad;

	r->sge.addr = (uintptr_t)req->data;
	r->sge.length = (uint32_t)req->size;
	r->sge.lkey = likely(req->size) ? req->mr->lkey[r->index] : 0; /* an empty message may have no registration */
	r->wr.num_sge = req->size != 0;
	r->wr.wr.rdma.remote_addr = cts->addr;
	r->wr.wr.rdma.rkey = cts->rkey[r->index];
	r->wr.imm_data = htonl(ha_imm_identity(slot->idx) | r->imm_whole);
	r->wr.wr_id = ha_wr_id(HA_WR_DATA, req->entry, ++r->sq_posted);
	slot->pending = (uint8_t)(1u << r->index);
	return r->hot->post_send(r->qp, &r->wr, &bad);
}

#define BATCH 16
struct batch {
	struct ha_rail *rail;
	unsigned n;
	int err;
	struct ibv_send_wr wr[BATCH];
	struct ibv_sge sge[BATCH];
};

static void batch_flush(struct batch *batch)
{
	struct ibv_send_wr *bad;

	if (!batch->n || batch->err)
		return;
	batch->wr[batch->n - 1].next = NULL;
	batch->err = batch->rail->hot->post_send(batch->rail->qp, batch->wr, &bad);
	batch->n = 0;
}

static struct ibv_send_wr *batch_add(struct batch *batch, uint64_t addr, uint32_t length, uint32_t lkey)
{
	unsigned i;

	if (batch->n == BATCH)
		batch_flush(batch);
	i = batch->n++;
	batch->sge[i] = (struct ibv_sge){ .addr = addr, .length = length, .lkey = lkey };
	batch->wr[i] = (struct ibv_send_wr){
		.next = &batch->wr[i + 1 < BATCH ? i + 1 : 0],
		.sg_list = &batch->sge[i],
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
	};
	batch->rail->sq_posted++;
	return &batch->wr[i];
}

/* Work requests that one rail needs for its stripes of a slot. */
static uint64_t sized_cost(const struct ha_send *s, const struct ha_send_slot *slot, const struct ha_rail *r, unsigned mask)
{
	uint64_t n = 1;

	for (unsigned m = 0; m < slot->n; m++)
		n += (ha_policy_range(&s->b, mask, r->index, slot->req[m].size).length + r->max_msg - 1) / r->max_msg;
	return n;
}

/* This rail's stripe of every buffer, in pieces that fit a work request, then the sizes record with the immediate. */
static int post_sized(struct ha_send *s, struct ha_rail *r, const struct ha_send_slot *slot, const struct ha_cts *cts,
		      unsigned mask)
{
	unsigned entry = slot->req[0].entry;
	struct batch batch = { .rail = r };
	struct ibv_send_wr *wr;

	for (unsigned m = 0; m < slot->n; m++) {
		const struct ha_request *req = &slot->req[m];
		struct ha_range range = ha_policy_range(&s->b, mask, r->index, req->size);

		for (uint64_t at = 0; at < range.length; at += r->max_msg) {
			uint64_t left = range.length - at, piece = left < r->max_msg ? left : r->max_msg;

			wr = batch_add(&batch, (uintptr_t)req->data + range.offset + at, (uint32_t)piece,
				       req->mr->lkey[r->index]);
			wr->wr.rdma.remote_addr = cts[m].addr + range.offset + at;
			wr->wr.rdma.rkey = cts[m].rkey[r->index];
		}
	}
	wr = batch_add(&batch, (uintptr_t)staged_sizes(s, entry), sizeof(struct ha_sizes), r->ring_lkey);
	wr->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	wr->send_flags = IBV_SEND_SIGNALED | (r->max_inline >= sizeof(struct ha_sizes) ? IBV_SEND_INLINE : 0);
	wr->imm_data = htonl(ha_imm_make(slot->idx, r->index, mask, true));
	wr->wr.rdma.remote_addr = s->b.peer_ring + entry * sizeof(struct ha_sizes);
	wr->wr.rdma.rkey = r->ring_rkey;
	wr->wr_id = ha_wr_id(HA_WR_DATA, entry, r->sq_posted);
	batch_flush(&batch);
	return batch.err;
}

static uint64_t largest(const struct ha_send_slot *slot)
{
	uint64_t max = 0;

	for (unsigned m = 0; m < slot->n; m++)
		if (slot->req[m].size > max)
			max = slot->req[m].size;
	return max;
}

/* Everything that is not one buffer in one work request. -EAGAIN = not enough room in a send queue. */
static __attribute__((noinline)) int post_slot_sized(struct ha_send *s, struct ha_send_slot *slot, const struct ha_cts *cts)
{
	struct ha_sizes *sizes = staged_sizes(s, slot->req[0].entry);
	unsigned mask = ha_policy_mask(&s->b, largest(slot));
	int err = 0;

	for (unsigned i = 0; i < s->b.nrails; i++)
		if (mask >> i & 1 && sized_cost(s, slot, &s->b.rail[i], mask) > sq_room(&s->b.rail[i]))
			return -EAGAIN;
	for (unsigned m = 0; m < slot->n; m++)
		sizes->size[m] = slot->req[m].size;
	slot->pending = (uint8_t)mask;
	for (unsigned i = 0; i < s->b.nrails && !err; i++)
		if (mask >> i & 1) {
			err = post_sized(s, &s->b.rail[i], slot, cts, mask);
			if (err)
				ha_rail_failed(&s->b, &s->b.rail[i], NULL, -err);
		}
	return s->b.error;
}

static __attribute__((noinline, cold)) int post_refused(struct ha_send *s, struct ha_rail *r, int err)
{
	ha_rail_failed(&s->b, r, NULL, -err);
	return ha_bundle_attend(&s->b);
}

/* All sends of the slot are there. */
static inline int post_slot(struct ha_send *s, struct ha_send_slot *slot, const struct ha_cts *cts)
{
	struct ha_rail *r = &s->b.rail[s->b.first];
	uint64_t size = slot->req[0].size;
	int err;

	if (unlikely(!s->b.active))
		return ha_bundle_attend(&s->b) ? s->b.error : -EAGAIN;
	if (unlikely(slot->n > 1 || size >= s->b.stripe_min || size > r->single_max))
		return post_slot_sized(s, slot, cts);
	if (unlikely(!sq_room(r)))
		return -EAGAIN;
	err = post_single(s, r, slot, cts);
	return likely(!err) ? 0 : post_refused(s, r, err);
}

/* Which buffer of the receive takes a send with this tag; -1 = none that is free. */
static __attribute__((noinline)) int match(const struct ha_send *s, const struct ha_send_slot *slot, const struct ha_cts *cts,
					   uint32_t tag)
{
	for (unsigned m = 0; m < slot->n; m++) {
		if (slot->have >> m & 1)
			continue;
		/* Each buffer is a cache line of its own and may become visible later than the first, so nothing of it,
		 * the tag neither, is read before its idx: pairs with the order in which the NIC writes. */
		if (__atomic_load_n(&cts[m].idx, __ATOMIC_ACQUIRE) != s->head + 1)
			return -1;
		if (cts[m].tag == tag)
			return (int)m;
	}
	return -1;
}

/* The receive at the head has been announced; is its slot free, and does it look as it should? */
static __attribute__((noinline)) int open_group(struct ha_send *s, struct ha_send_slot *slot, const struct ha_cts *cts)
{
	if (slot->held || slot->pending)
		return -EAGAIN; /* requests of 256 receives ago have not been tested to their end */
	if (unlikely(cts->n == 0 || cts->n > HA_MAX_RECVS)) {
		HA_WARN(s->b.name,
			"the peer announced a receive of %u buffers, 1 to %u are possible; its memory or its plugin is damaged",
			cts->n, HA_MAX_RECVS);
		return s->b.error = -EPROTO;
	}
	slot->idx = s->head;
	slot->n = cts->n;
	slot->have = 0;
	slot->open = 1;
	return 0;
}

static inline void fill_request(struct ha_request *q, const struct ha_cts *cts, void *data, uint64_t size, struct ha_mr *mr)
{
	q->done = 0;
	q->data = data;
	q->size = size < cts->size ? size : cts->size;
	q->mr = mr;
}

/* No room: completions make some. An error stays one. */
static __attribute__((noinline)) int not_now(struct ha_send *s, int err)
{
	if (err != -EAGAIN)
		return err;
	ha_bundle_poll(&s->b);
	return s->b.error;
}

/* One send of a group, in any order; the last one posts them all. */
static __attribute__((noinline)) int isend_group(struct ha_send *s, void *data, size_t size, int tag, struct ha_mr *mr,
						 struct ha_request **req)
{
	struct ha_send_slot *slot = &s->slot[s->head % HA_SLOTS];
	const struct ha_cts *cts = ha_send_cts(s, s->head);
	int m, err;

	if (!slot->open && (err = open_group(s, slot, cts)) != 0)
		return not_now(s, err);
	m = match(s, slot, cts, (uint32_t)tag);
	if (m < 0)
		return 0;
	fill_request(&slot->req[m], &cts[m], data, size, mr);
	slot->have |= (uint8_t)(1u << m);
	if (slot->have == (1u << slot->n) - 1) {
		err = post_slot(s, slot, cts);
		if (err) {
			slot->have &= (uint8_t)~(1u << m);
			return not_now(s, err);
		}
		slot->open = 0;
		s->head++;
	}
	slot->held |= (uint8_t)(1u << m);
	*req = &slot->req[m];
	return 0;
}

int ha_isend(struct ha_send *s, void *data, size_t size, int tag, struct ha_mr *mr, struct ha_request **req)
{
	struct ha_send_slot *slot = &s->slot[s->head % HA_SLOTS];
	const struct ha_cts *cts = ha_send_cts(s, s->head);
	int err;

	*req = NULL;
	if (unlikely(s->b.error || atomic_load_explicit(&s->b.attention, memory_order_relaxed)) && ha_bundle_attend(&s->b))
		return s->b.error;
	/* Acquire: pairs with the peer's NIC, which writes idx last of its cache line. */
	if (__atomic_load_n(&cts->idx, __ATOMIC_ACQUIRE) != s->head + 1)
		return 0;
	if (unlikely(cts->n != 1))
		return isend_group(s, data, size, tag, mr, req);
	if (unlikely(cts->tag != (uint32_t)tag))
		return 0;
	if (unlikely(slot->held | slot->pending))
		return not_now(s, -EAGAIN);
	slot->idx = s->head;
	slot->n = 1;
	fill_request(&slot->req[0], cts, data, size, mr);
	err = post_slot(s, slot, cts);
	if (unlikely(err))
		return not_now(s, err);
	s->head++;
	slot->held = 1;
	*req = &slot->req[0];
	return 0;
}
