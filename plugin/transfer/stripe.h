/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stripe.h - one rail's part of a message that is more than one prebuilt work request: what it
 * costs, whose keys it needs, and how it is posted in pieces, with the record of sizes behind them
 */
#ifndef HA_TRANSFER_STRIPE_H
#define HA_TRANSFER_STRIPE_H

#include "plugin/bundle.h"

#define HA_PIECE_MIN (8u << 20) /* bytes of a work request, unless the stripe is shorter */

/* A stripe of a slot, and the rail that is to carry it. */
struct ha_stripe {
	struct ha_send_slot *slot;
	const struct ha_cts *cts;
	unsigned mask, index; /* of all stripes; of this one */
	bool timed;           /* its completion is measured */
	const uint16_t *weight;
};

/* Work requests that one rail needs for it. */
uint64_t ha_stripe_cost(const struct ha_stripe *st, const struct ha_rail *r);
/* Of these rails, those that have keys for every buffer, at both ends. */
unsigned ha_stripes_with_keys(const struct ha_send *s, const struct ha_stripe *st, unsigned rails);
/* None has: the one that the peer has keys for gets ours. */
void ha_stripe_want_keys(struct ha_send *s, const struct ha_stripe *st);
/* What travels with the immediate: the lengths, or the record of a put. */
void ha_stripe_stage_sizes(const struct ha_send *s, const struct ha_send_slot *slot);
/* Every buffer's part, then the record that was staged, with the immediate. Where messages may
 * overtake each other (terms.unordered), the record waits until the data has been acknowledged:
 * complete.c calls ha_stripe_finish(). */
void ha_stripe_post(struct ha_send *s, struct ha_rail *r, const struct ha_stripe *st);
/* The record of a stripe whose data is there. There is room for it: its data has just left the send
 * queue. */
void ha_stripe_finish(struct ha_send *s, struct ha_rail *r, struct ha_send_slot *slot,
		      unsigned index, bool timed);
/* What a stripe has of all buffers of its message. */
uint64_t ha_stripe_bytes(const struct ha_send_slot *slot, unsigned stripe);
/* HA_NCCL_POLICY=adaptive counts what is posted: all stripes of this slot. */
void ha_stripes_count(struct ha_send *s, const struct ha_send_slot *slot);

#endif
