/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * delivery.c - the receiver's count: HA_NCCL_ACK=memory, and how far the sender of a one-sided
 * connection may run ahead
 *
 * With ACK=memory a send is complete when the receiver says that the data is in its memory.
 *
 * The receiver writes the number of receives that are complete, from the first, into the sender's
 * board: one word per rail, each of which only grows, so that a late word of one rail covers no
 * newer one of another. The sender takes the largest. A stripe's own completion is waited for as
 * well: until then the NIC may still read the buffer.
 */
#include "plugin/channel/board.h"
#include "plugin/transfer/one_sided.h"
#include "plugin/transfer/suspect.h"

#include <errno.h>

/* Where writes may overtake each other, an older count would cover this one. */
static bool count_under_way(const struct ha_bundle *b, const struct ha_rail *r)
{
	return b->terms.unordered && (int32_t)(r->sq_retired - r->count_mark) < 0;
}

static void send_delivered(struct ha_recv *c)
{
	struct ha_rail *r = &c->b.rail[c->b.balance.first];
	uint64_t count = c->takes ? c->takes->taken : c->done;
	uint64_t step = c->b.terms.flags & HA_FLAG_ACK_MEMORY ? 1 : HA_ROOM_STEP;
	int err;

	if (count - c->b.delivered_sent < step || !c->b.active || count_under_way(&c->b, r))
		return;
	err = ha_board_write(&c->b, r, &ha_bundle_staged_board(&c->b)->heartbeat[r->index].count,
			     count);
	r->count_mark = r->sq_posted;
	if (!err)
		c->b.delivered_sent = count;
	else if (err != -EAGAIN) /* no room: the next call, or the driver, writes it */
		ha_rail_failed(&c->b, r, NULL, err);
}

uint64_t ha_delivery_count(const struct ha_send *s)
{
	const struct ha_board *board = ha_bundle_board(&s->b);
	uint64_t count = 0;

	for (unsigned i = 0; i < s->b.nrails; i++) {
		uint64_t value = __atomic_load_n(&board->heartbeat[i].count, __ATOMIC_ACQUIRE);

		count = value > count ? value : count;
	}
	return count;
}

void ha_delivery_take(struct ha_send *s, uint64_t count)
{
	for (; s->b.delivered_sent < count && s->b.delivered_sent < s->head;
	     s->b.delivered_sent++) {
		struct ha_send_slot *slot = &s->slot[s->b.delivered_sent % HA_SLOTS];

		if (slot->idx != s->b.delivered_sent || !(slot->pending & HA_AWAIT_DELIVERY))
			continue;
		slot->pending &= (uint16_t)~HA_AWAIT_DELIVERY;
		if (!slot->pending)
			ha_send_settled(slot);
	}
}

void ha_bundle_delivery(struct ha_bundle *b)
{
	if (!(b->terms.flags & (HA_FLAG_ACK_MEMORY | HA_FLAG_ONE_SIDED)))
		return;
	if (b->is_send)
		ha_delivery_take((struct ha_send *)b, ha_delivery_count((struct ha_send *)b));
	else
		send_delivered((struct ha_recv *)b);
}
