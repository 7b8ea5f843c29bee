/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * carried.c - which queue pairs carry a request now, for whoever profiles; nothing of it is on the
 * path of a message
 */
#include <errno.h>

#include "plugin/balance/policy.h"
#include "plugin/device/device.h"
#include "plugin/transfer/guard.h"

static struct ha_carried on_rail(const struct ha_rail *r)
{
	return (struct ha_carried) {
		.dev = r->dev->index,
		.qp_num = r->setup.qp_num,
		.epoch = r->epoch,
		.rail = r->index,
		.lost = r->state != HA_RAIL_UP,
	};
}

static uint64_t stripe_bytes(const struct ha_send_slot *slot, const struct ha_request *req,
			     unsigned stripe)
{
	if (!(slot->mask & (slot->mask - 1)))
		return req->size;
	return ha_policy_range(slot->weight, slot->mask, stripe, req->size).length;
}

static int send_carried(const struct ha_send *s, const struct ha_request *req,
			struct ha_carried *list)
{
	const struct ha_send_slot *slot = &s->slot[req->entry];
	int n = 0;

	if (slot->open || !slot->mask)
		return -EAGAIN;
	for (unsigned left = slot->mask; left; left &= left - 1) {
		unsigned stripe = (unsigned)__builtin_ctz(left), bit = 1u << stripe;
		const struct ha_rail *r =
			&s->b.rail[slot->moved & bit ? slot->carrier[stripe] : stripe];
		struct ha_carried *c = &list[n++];

		*c = on_rail(r);
		c->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
		c->wr_id = ha_wr_id(HA_WR_DATA, ha_wr_data_entry(req->entry, stripe), r->sq_posted);
		c->bytes = stripe_bytes(slot, req, stripe);
		c->over = req->done || !(slot->pending & bit) || slot->settled & bit;
		c->lost = c->lost || slot->parked & bit;
	}
	return n;
}

/* The path of the clear-to-send: which ones the data takes is the sender's choice. */
static int receive_carried(const struct ha_recv *c, const struct ha_request *req, unsigned buffer,
			   struct ha_carried *list)
{
	const struct ha_recv_slot *slot = &c->slot[req->entry];
	const struct ha_rail *r = &c->b.rail[slot->cts_rail];

	*list = on_rail(r);
	list->opcode = IBV_WR_RDMA_WRITE;
	list->wr_id = ha_wr_id(HA_WR_CTS, req->entry, r->sq_posted);
	list->bytes = buffer < slot->n ? ha_recv_buffer(slot, buffer)->size : 0;
	list->over = !(slot->busy & HA_SLOT_WIRE);
	list->lost = list->lost || slot->cts_parked;
	return 1;
}

int ha_carried(struct ha_request *req, unsigned buffer, struct ha_carried *list)
{
	int n = -EAGAIN;

	if (req->kind == HA_REQ_FLUSH || ha_bundle_enter(req->bundle) == HA_NOT_NOW)
		return n;
	if (!req->bundle->error)
		n = req->kind == HA_REQ_SEND
			    ? send_carried((struct ha_send *)req->bundle, req, list)
			    : receive_carried((struct ha_recv *)req->bundle, req, buffer, list);
	ha_bundle_leave(req->bundle);
	return n;
}
