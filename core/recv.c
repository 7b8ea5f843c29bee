/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * recv.c - the receiving half of the data path
 *
 * irecv takes the next slot and writes its clear-to-send entries into the sender's ring. What arrives is told by
 * immediates alone (complete.c). Our copy of the entries stays in the staging ring until the slot is used again, so that they
 * can be written a second time after a fault.
 */
#include "core/device.h"
#include "core/mr.h"
#include "core/policy.h"

#include <errno.h>

#define unlikely(x) __builtin_expect(!!(x), 0)

void ha_recv_prepare(struct ha_recv *c)
{
	for (unsigned e = 0; e < HA_SLOTS; e++)
		c->slot[e].req = (struct ha_request){ .kind = HA_REQ_RECV, .entry = (uint8_t)e, .bundle = &c->b };
	for (unsigned e = 0; e < HA_FLUSHES; e++)
		c->flush[e] = (struct ha_request){ .kind = HA_REQ_FLUSH, .entry = (uint8_t)e, .bundle = &c->b };
	for (unsigned i = 0; i < c->b.nrails; i++) {
		struct ha_rail *r = &c->b.rail[i];

		r->wr = (struct ibv_send_wr){ .sg_list = &r->sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE };
		r->wr.wr.rdma.rkey = r->ring_rkey;
		r->sge.lkey = r->ring_lkey;
		r->imm_whole = ha_imm_alone(r->index);
	}
	ha_policy_update(&c->b);
}

static struct ha_cts *staged_cts(const struct ha_recv *c, unsigned entry)
{
	return (struct ha_cts *)((char *)c->b.ring + HA_SIZES_RING_SIZE + entry * HA_CTS_SLOT_SIZE);
}

/* Write a slot's clear-to-send over rail r. Room for it has been seen. */
static int post_cts(struct ha_recv *c, struct ha_rail *r, const struct ha_recv_slot *slot)
{
	struct ibv_send_wr *bad;
	unsigned entry = slot->req.entry;
	bool signalled = ++c->cts_unsignalled == HA_CTS_SIGNAL;

	r->sge.addr = (uintptr_t)staged_cts(c, entry);
	r->sge.length = slot->n * (uint32_t)sizeof(struct ha_cts);
	r->wr.send_flags = (r->sge.length <= r->max_inline ? IBV_SEND_INLINE : 0) | (signalled ? IBV_SEND_SIGNALED : 0);
	if (signalled)
		c->cts_unsignalled = 0;
	r->wr.wr.rdma.remote_addr = c->b.peer_ring + entry * HA_CTS_SLOT_SIZE;
	r->wr.wr_id = ha_wr_id(HA_WR_CTS, entry, ++r->sq_posted);
	return r->hot->post_send(r->qp, &r->wr, &bad);
}

static void fill_cts(struct ha_recv *c, const struct ha_recv_slot *slot, unsigned m)
{
	struct ha_cts *cts = &staged_cts(c, slot->req.entry)[m];
	const struct ha_mr *mr = slot->buf[m].mr;

	cts->addr = (uintptr_t)slot->buf[m].data;
	cts->size = slot->buf[m].size;
	for (unsigned i = 0; i < c->b.nrails; i++)
		cts->rkey[i] = mr ? mr->rkey[i] : 0;
	cts->tag = slot->buf[m].tag;
	cts->n = slot->n;
	cts->idx = slot->idx + 1;
}

/* A free slot at the head and a rail with room for its CTS; NULL = not now. */
static struct ha_rail *room(struct ha_recv *c, const struct ha_recv_slot *slot)
{
	struct ha_rail *r;

	if (unlikely(slot->busy || !c->b.active))
		return NULL;
	r = &c->b.rail[c->b.first];
	return unlikely(r->sq_posted - r->sq_retired >= r->sq_depth) ? NULL : r;
}

int ha_irecv(struct ha_recv *c, int n, void *const *data, const size_t *sizes, const int *tags, struct ha_mr *const *mrs,
	     bool optional, struct ha_request **req)
{
	struct ha_recv_slot *slot = &c->slot[c->head % HA_SLOTS];
	struct ha_rail *r;
	int err;

	*req = NULL;
	if (unlikely(c->b.error || atomic_load_explicit(&c->b.attention, memory_order_relaxed)) && ha_bundle_attend(&c->b))
		return c->b.error;
	if (unlikely(n < 1 || n > HA_MAX_RECVS))
		return -EINVAL;
	/* Optional receives are never tested for their data: somebody must take their completions, and give the device's
	 * receives back before they run out. */
	if (unlikely(c->head - c->done > HA_REFILL))
		ha_bundle_poll(&c->b);
	r = room(c, slot);
	if (unlikely(!r)) {
		ha_bundle_poll(&c->b);
		r = room(c, slot);
		if (!r)
			return c->b.error;
	}
	slot->idx = c->head;
	slot->imm = ha_imm_identity(c->head);
	slot->busy = HA_SLOT_WIRE | HA_SLOT_HELD;
	slot->n = (uint8_t)n;
	slot->seen = slot->mask = slot->sized = 0;
	slot->bytes = 0;
	slot->req.done = optional;
	for (int m = 0; m < n; m++) {
		slot->buf[m].data = data[m];
		slot->buf[m].size = sizes[m];
		slot->buf[m].mr = mrs[m];
		slot->buf[m].tag = (uint32_t)tags[m];
		fill_cts(c, slot, (unsigned)m);
	}
	c->head++;
	err = post_cts(c, r, slot);
	if (unlikely(err)) {
		ha_rail_failed(&c->b, r, NULL, -err);
		return c->b.error;
	}
	*req = &slot->req;
	return 0;
}
