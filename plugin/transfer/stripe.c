/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/transfer/stripe.h"

#include "plugin/balance/policy.h"
#include "plugin/channel/schedule.h"
#include "plugin/device/mr.h"
#include "plugin/transfer/one_sided.h"
#include "plugin/transfer/suspect.h"

#include <arpa/inet.h>
#include <string.h>

static struct ha_sizes *staged_sizes(const struct ha_send *s, unsigned entry)
{
	return (struct ha_sizes *)((char *)s->b.ring + HA_SEND_STAGED + sizeof(struct ha_board)) +
	       entry;
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

	if (batch->n && !batch->err) {
		batch->wr[batch->n - 1].next = NULL;
		batch->err = batch->rail->hot->post_send(batch->rail->qp, batch->wr, &bad);
	}
	batch->n = 0; /* of what is behind a refusal, too: its places are used again */
}

static struct ibv_send_wr *batch_add(struct batch *batch, uint64_t addr, uint32_t length,
				     uint32_t lkey)
{
	unsigned i;

	if (batch->n == BATCH)
		batch_flush(batch);
	i = batch->n++;
	batch->sge[i] = (struct ibv_sge) { .addr = addr, .length = length, .lkey = lkey };
	batch->wr[i] = (struct ibv_send_wr) {
		.next = &batch->wr[i + 1 < BATCH ? i + 1 : 0],
		.sg_list = &batch->sge[i],
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
	};
	ha_rail_count_post(batch->rail);
	return &batch->wr[i];
}

/*
 * Bytes of one work request. Each that is done shows that the rail moves (heartbeat.c), so a large
 * stripe goes in steps that even a slow rail takes in less than the soft time-out; in as many as
 * half the send queue takes at most, all buffers of a group together.
 */
static uint64_t piece_size(const struct ha_rail *r, const struct ha_send_slot *slot,
			   uint64_t length)
{
	uint32_t pieces = r->sq_depth / 2 / slot->n;
	uint64_t piece = (length / (pieces ? pieces : 1) + HA_STRIPE_ALIGN) &
			 ~(uint64_t)(HA_STRIPE_ALIGN - 1);

	piece = piece > HA_PIECE_MIN ? piece : HA_PIECE_MIN;
	return piece < r->max_msg ? piece : r->max_msg;
}

/* Work requests that one rail needs for it. */
uint64_t ha_stripe_cost(const struct ha_stripe *st, const struct ha_rail *r)
{
	uint64_t n = 1;

	for (unsigned m = 0; m < st->slot->n; m++) {
		uint64_t length = ha_policy_range(st->weight, st->mask, st->index,
						  ha_send_request(st->slot, m)->size)
					  .length,
			 piece = piece_size(r, st->slot, length);

		n += (length + piece - 1) / piece;
	}
	return n;
}

/* Of a send that was copied, the copy in our ring; the buffer may have been given back. */
static uint64_t data_of(const struct ha_send *s, const struct ha_send_slot *slot, unsigned m)
{
	const struct ha_request *req = ha_send_request(slot, m);

	return (uintptr_t)(slot->copied ? ha_send_copy(s, req->entry) : req->data);
}

static uint32_t lkey_of(const struct ha_send_slot *slot, unsigned m, const struct ha_rail *r)
{
	return slot->copied ? r->ring_lkey : ha_send_request(slot, m)->mr->lkey[r->index];
}

/* Every buffer that is not empty has keys for this rail at both ends. */
static bool has_keys(const struct ha_stripe *st, const struct ha_rail *r)
{
	for (unsigned m = 0; m < st->slot->n; m++)
		if (ha_send_request(st->slot, m)->size &&
		    (!lkey_of(st->slot, m, r) || !st->cts[m].rkey[r->index]))
			return false;
	return true;
}

/* Its 2 KiB are not cleared: batch_add fills what is used. */
static void begin_batch(struct batch *batch, struct ha_rail *r)
{
	batch->rail = r;
	batch->n = 0;
	batch->err = 0;
}

static void post_batch(struct ha_send *s, struct batch *batch)
{
	batch_flush(batch);
	if (batch->err)
		ha_rail_failed(&s->b, batch->rail, NULL, batch->err < 0 ? batch->err : -batch->err);
}

/* The sizes record with the immediate: the stripe is there. */
static void add_record(struct ha_send *s, struct batch *batch, const struct ha_stripe *st)
{
	const struct ha_rail *r = batch->rail;
	unsigned entry = st->slot->req.entry;
	struct ibv_send_wr *wr = batch_add(batch, (uintptr_t)staged_sizes(s, entry),
					   sizeof(struct ha_sizes), r->ring_lkey);

	wr->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	wr->send_flags = IBV_SEND_SIGNALED |
			 (r->max_inline >= sizeof(struct ha_sizes) ? IBV_SEND_INLINE : 0);
	wr->imm_data = htonl(ha_imm_make(st->slot->idx, st->index, st->mask, true));
	wr->wr.rdma.remote_addr = s->b.peer_ring + entry * sizeof(struct ha_sizes);
	wr->wr.rdma.rkey = r->ring_rkey;
	wr->wr_id = ha_wr_id(st->timed ? HA_WR_TIMED : HA_WR_DATA,
			     ha_wr_data_entry(entry, st->index), r->sq_posted);
}

/* This stripe of every buffer, in pieces that fit a work request, then the record. */
void ha_stripe_post(struct ha_send *s, struct ha_rail *r, const struct ha_stripe *st)
{
	unsigned entry = st->slot->req.entry;
	struct batch batch;
	struct ibv_send_wr *wr = NULL;

	begin_batch(&batch, r);
	for (unsigned m = 0; m < st->slot->n; m++) {
		const struct ha_request *req = ha_send_request(st->slot, m);
		struct ha_range range = ha_policy_range(st->weight, st->mask, st->index, req->size);

		uint64_t step = piece_size(r, st->slot, range.length);

		for (uint64_t at = 0; at < range.length; at += step) {
			uint64_t left = range.length - at, piece = left < step ? left : step;

			wr = batch_add(&batch, data_of(s, st->slot, m) + range.offset + at,
				       (uint32_t)piece, lkey_of(st->slot, m, r));
			if (left > step) {
				wr->send_flags = IBV_SEND_SIGNALED;
				wr->wr_id = ha_wr_id(HA_WR_CONTROL, 0, r->sq_posted);
			}
			wr->wr.rdma.remote_addr = st->cts[m].addr + range.offset + at;
			wr->wr.rdma.rkey = st->cts[m].rkey[r->index];
		}
	}
	if (s->b.terms.unordered && batch.n) {
		/* What is posted now might overtake the data (ha_stripe_finish). */
		wr->send_flags = IBV_SEND_SIGNALED;
		wr->wr_id = ha_wr_id(st->timed ? HA_WR_PAYLOAD_TIMED : HA_WR_PAYLOAD,
				     ha_wr_data_entry(entry, st->index), r->sq_posted);
	} else {
		add_record(s, &batch, st);
	}
	post_batch(s, &batch);
}

void ha_stripe_finish(struct ha_send *s, struct ha_rail *r, struct ha_send_slot *slot,
		      unsigned index, bool timed)
{
	struct ha_stripe st = { .slot = slot, .mask = slot->mask, .index = index, .timed = timed };
	struct batch batch;

	begin_batch(&batch, r);
	add_record(s, &batch, &st);
	post_batch(s, &batch);
}

/* What travels with the immediate: the lengths, or the record of a put. */
void ha_stripe_stage_sizes(const struct ha_send *s, const struct ha_send_slot *slot)
{
	struct ha_sizes *sizes = staged_sizes(s, slot->req.entry);

	if (s->puts) {
		memcpy(sizes, s->puts->slot[slot->req.entry].record, sizeof(*sizes));
		return;
	}
	for (unsigned m = 0; m < slot->n; m++)
		sizes->size[m] = ha_send_request(slot, m)->size;
}

/* The rails that have keys for every buffer. */
unsigned ha_stripes_with_keys(const struct ha_send *s, const struct ha_stripe *st, unsigned rails)
{
	unsigned with = 0;

	for (unsigned left = rails; left; left &= left - 1)
		if (has_keys(st, &s->b.rail[__builtin_ctz(left)]))
			with |= left & -left;
	return with;
}

/* Every buffer that is not empty has the peer's key for this rail. */
static bool has_peer_keys(const struct ha_stripe *st, unsigned rail)
{
	for (unsigned m = 0; m < st->slot->n; m++)
		if (ha_send_request(st->slot, m)->size && !st->cts[m].rkey[rail])
			return false;
	return true;
}

/* No rail that is up has keys at both ends. Where spares come up at about the same time, each end
 * may choose another one: the rail that the peer has keys for gets ours, too (failover/keys.c). */
void ha_stripe_want_keys(struct ha_send *s, const struct ha_stripe *st)
{
	for (unsigned left = s->b.active; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctz(left);

		if (!has_peer_keys(st, i))
			continue;
		if (!(s->b.registered.wanted >> i & 1))
			ha_bundle_drive_soon(&s->b);
		s->b.registered.wanted |= (uint8_t)(1u << i);
		return;
	}
}

uint64_t ha_stripe_bytes(const struct ha_send_slot *slot, unsigned stripe)
{
	uint64_t bytes = 0;

	for (unsigned m = 0; m < slot->n; m++)
		bytes += ha_policy_range(slot->weight, slot->mask, stripe,
					 ha_send_request(slot, m)->size)
				 .length;
	return bytes;
}

void ha_stripes_count(struct ha_send *s, const struct ha_send_slot *slot)
{
	uint64_t bytes[HA_MAX_RAILS];

	for (unsigned left = slot->mask; left; left &= left - 1)
		bytes[__builtin_ctz(left)] = ha_stripe_bytes(slot, (unsigned)__builtin_ctz(left));
	ha_adaptive_posted(&s->b, slot->mask, bytes);
}
