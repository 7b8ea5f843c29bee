/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * recv.c - the receiving half of the data path
 *
 * irecv takes the next slot and writes its clear-to-send entries into the sender's ring. What
 * arrives is reported by immediates alone (complete.c). A receive whose completion NCCL leaves open
 * is complete at once, unless its owner must keep polling for the NIC's sake (b->poll.always). The
 * slot remembers what was posted until it is used again, so that the entries can be written a
 * second time after a fault, with the keys of that time.
 */
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "plugin/device/mr.h"
#include "plugin/transfer/guard.h"
#include "plugin/transfer/one_sided.h"
#include "plugin/transfer/suspect.h"

#include <errno.h>
#include <string.h>

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

void ha_recv_prepare(struct ha_recv *c)
{
	c->cts_signal = c->b.ctx->mpib.on ? (uint32_t)c->b.ctx->config.mpib_cts_signal_interval
					  : HA_CTS_SIGNAL;
	for (unsigned e = 0; e < HA_SLOTS; e++) {
		c->slot[e].more = c->more[e];
		c->slot[e].imm = ha_imm_spoiled(e); /* before the first receive, too */
		c->slot[e].req = (struct ha_request) { .kind = HA_REQ_RECV,
						       .entry = (uint8_t)e,
						       .bundle = &c->b };
	}
	for (unsigned e = 0; e < HA_FLUSHES; e++)
		c->flush[e] = (struct ha_request) { .kind = HA_REQ_FLUSH,
						    .entry = (uint8_t)e,
						    .bundle = &c->b };
	if (c->takes)
		ha_takes_prepare(c);
}

void ha_recv_prepare_rail(struct ha_recv *c, struct ha_rail *r)
{
	r->wr = (struct ibv_send_wr) { .sg_list = &r->sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_RDMA_WRITE };
	r->wr.wr.rdma.rkey = r->ring_rkey;
	r->sge.lkey = r->ring_lkey;
	r->imm_whole = ha_imm_alone(r->index);
}

/* Where the entries of a slot are written from, over rail r. What goes inline is copied as it is
 * posted, so one place serves all. */
static inline struct ha_cts *staged_cts(const struct ha_recv *c, const struct ha_rail *r,
					unsigned entry, unsigned n)
{
	unsigned place = n * sizeof(struct ha_cts) <= r->max_inline ? 0 : 1u + entry;

	return (struct ha_cts *)((char *)c->b.ring + HA_RECV_CTS + place * HA_CTS_SLOT_SIZE);
}

/* Write a slot's clear-to-send over rail r. Room for it has been seen. A rail that takes no work is
 * suspect, and its fence finds out that this one did not arrive. */
static inline __attribute__((always_inline)) void post_cts(struct ha_recv *c, struct ha_rail *r,
							   struct ha_recv_slot *slot,
							   struct ha_cts *cts, unsigned n)
{
	unsigned entry = slot->req.entry;
	struct ibv_send_wr *bad;
	bool signalled = ++c->cts_unsignalled == c->cts_signal;
	int err;

	r->sge.addr = (uintptr_t)cts;
	r->sge.length = n * (uint32_t)sizeof(struct ha_cts);
	r->wr.send_flags = (r->sge.length <= r->max_inline ? IBV_SEND_INLINE : 0) |
			   (signalled ? IBV_SEND_SIGNALED : 0);
	if (signalled)
		c->cts_unsignalled = 0;
	r->wr.wr.rdma.remote_addr = c->b.peer_ring + entry * HA_CTS_SLOT_SIZE;
	r->wr.wr_id = ha_wr_id(HA_WR_CTS, entry, ha_rail_count_post(r));
	slot->cts_rail = r->index;
	err = r->hot->post_send(r->qp, &r->wr, &bad);
	if (unlikely(err))
		ha_rail_failed(&c->b, r, NULL, err < 0 ? err : -err);
}

/* One buffer: kept in the slot, and its clear-to-send entry. Every word from the caller's hands:
 * neither memory is read. */
static inline __attribute__((always_inline)) void fill_cts(struct ha_cts *cts,
							   const struct ha_recv_buffer *buf,
							   unsigned n, uint64_t idx)
{
	cts->addr = (uintptr_t)buf->data;
	cts->size = buf->size;
	if (unlikely(!buf->mr))
		memset(cts->rkey, 0, sizeof(cts->rkey));
	else
		memcpy(cts->rkey, buf->mr->rkey, sizeof(cts->rkey));
	cts->tag = buf->tag;
	cts->n = (uint8_t)n;
	cts->idx = idx + 1;
}

/* A free slot at the head and a rail with room for its CTS; NULL = not now. */
static struct ha_rail *find_cts_rail(struct ha_recv *c, const struct ha_recv_slot *slot)
{
	struct ha_rail *r;

	if (unlikely(slot->busy || !c->b.active))
		return NULL;
	r = HA_KEEP(&c->b.rail[c->b.balance.first]);
	return unlikely(r->sq_posted - r->sq_retired >= r->sq_depth) ? NULL : r;
}

int ha_recv_replay(struct ha_recv *c, struct ha_recv_slot *slot)
{
	struct ha_rail *r = &c->b.rail[c->b.balance.first];

	if (!c->b.active || !ha_rail_room(r))
		return -EAGAIN;
	/* a buffer that is given back meanwhile is either not known or not gone */
	pthread_mutex_lock(&c->b.registered.list_lock);
	for (unsigned m = 0; m < slot->n; m++) {
		struct ha_recv_buffer *buf = ha_recv_buffer(slot, m);

		if (!ha_mr_known(&c->b, buf->mr))
			buf->mr = NULL;
		fill_cts(&staged_cts(c, r, slot->req.entry, slot->n)[m], buf, slot->n, slot->idx);
	}
	pthread_mutex_unlock(&c->b.registered.list_lock);
	slot->cts_parked = false;
	post_cts(c, r, slot, staged_cts(c, r, slot->req.entry, slot->n), slot->n);
	return 0;
}

/*
 * After a fence, a receive whose data the application may already have used (optional) can get part
 * of it once more. Its buffer must not be posted again before all of it is here: the late copy
 * would land on newer data.
 */
static __attribute__((noinline, cold)) bool in_doubt(struct ha_recv *c, int n, void *const *data,
						     const size_t *sizes)
{
	bool any = false, hit = false;

	for (unsigned e = 0; e < HA_SLOTS; e++) {
		const struct ha_recv_slot *slot = &c->slot[e];

		if (!(slot->busy & HA_SLOT_DOUBT))
			continue;
		any = true;
		for (int m = 0; m < n; m++)
			for (unsigned k = 0; k < slot->n; k++)
				hit |= ha_recv_overlaps(ha_recv_buffer(slot, k), data[m], sizes[m]);
	}
	if (!any)
		atomic_fetch_and_explicit(&c->b.attention, ~(uint32_t)HA_ATTN_DOUBT,
					  memory_order_relaxed);
	return hit;
}

/* As isend_ended (send.c). */
static __attribute__((noinline, cold)) int irecv_ended(struct ha_recv *c, struct ha_request **req)
{
	for (uint64_t idx = c->head; ha_bundle_closed(&c->b) && idx < c->head + HA_SLOTS; idx++) {
		struct ha_recv_slot *slot = &c->slot[idx % HA_SLOTS];

		if (slot->busy)
			continue;
		slot->busy = HA_SLOT_HELD;
		slot->req.done = 0;
		*req = &slot->req;
		return 0;
	}
	return c->b.error;
}

/* Something asks for attention. True: no receive can be posted now, or ever (c->b.error). */
static __attribute__((noinline, cold)) bool poll_before_receive(struct ha_recv *c, int n,
								void *const *data,
								const size_t *sizes)
{
	ha_bundle_poll(&c->b);
	ha_bundle_delivery(&c->b);
	return c->b.error || in_doubt(c, n, data, sizes);
}

static inline __attribute__((always_inline)) int post_receive(
	struct ha_recv *c, unsigned n, void *const *data, const size_t *sizes, const int *tags,
	struct ha_mr *const *mrs, bool optional, struct ha_request **req)
{
	uint64_t idx = c->head;
	unsigned entry = (unsigned)(idx % HA_SLOTS);
	struct ha_recv_slot *slot = HA_KEEP(&c->slot[entry]);
	struct ha_cts *cts;
	struct ha_rail *r;

	/* Optional receives are never tested for their data: somebody must take their completions,
	 * and give the device's receives back before they run out. */
	if (unlikely(idx - c->done > HA_REFILL))
		ha_bundle_poll(&c->b);
	r = find_cts_rail(c, slot);
	if (unlikely(!r)) {
		ha_bundle_poll(&c->b);
		r = find_cts_rail(c, slot);
		if (!r) {
			ha_bundle_count_idle(&c->b);
			return 0;
		}
	}
	slot->idx = idx;
	slot->imm = slot->common = ha_imm_identity(idx);
	slot->busy = optional ? HA_SLOT_WIRE | HA_SLOT_HELD | HA_SLOT_OPTIONAL
			      : HA_SLOT_WIRE | HA_SLOT_HELD;
	slot->n = (uint8_t)n;
	slot->seen = slot->missing = slot->sized = 0;
	slot->cts_parked = false;
	slot->bytes = 0;
	slot->req.done = optional;
	cts = HA_KEEP(staged_cts(c, r, entry, n));
	for (unsigned m = 0; m < n; m++) {
		struct ha_recv_buffer buf = { data[m], sizes[m], mrs[m], (uint32_t)tags[m] };

		*ha_recv_buffer(slot, m) = buf;
		fill_cts(&cts[m], &buf, n, idx);
	}
	c->head = idx + 1;
	post_cts(c, r, slot, cts, n);
	*req = &slot->req;
	return 0;
}

static __attribute__((noinline)) int irecv_group(struct ha_recv *c, unsigned n, void *const *data,
						 const size_t *sizes, const int *tags,
						 struct ha_mr *const *mrs, bool optional,
						 struct ha_request **req)
{
	return post_receive(c, n, data, sizes, tags, mrs, optional, req);
}

int ha_irecv(struct ha_recv *c, int n, void *const *data, const size_t *sizes, const int *tags,
	     struct ha_mr *const *mrs, bool optional, struct ha_request **req)
{
	enum ha_entry entry;
	int err = 0;

	*req = NULL;
	if (unlikely(n < 1 || n > HA_MAX_RECVS))
		return -EINVAL;
	entry = ha_bundle_enter(&c->b);
	if (unlikely(entry == HA_NOT_NOW))
		return ha_bundle_shut(&c->b);
	optional = optional && !c->b.poll.always;
	if (unlikely(entry == HA_ENTERED_LOOK && poll_before_receive(c, n, data, sizes)))
		err = c->b.error ? irecv_ended(c, req) : 0;
	else if (likely(n == 1))
		err = post_receive(c, 1, data, sizes, tags, mrs, optional, req);
	else
		err = irecv_group(c, (unsigned)n, data, sizes, tags, mrs, optional, req);
	ha_bundle_leave(&c->b);
	return err;
}
