/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * policy.h - from (connection, size) to rails: which rails carry a message, and which bytes of it
 * each
 *
 * Everything is a weight (parts per 1024 on each rail). A message is cut at 128-byte boundaries
 * into one stripe per device that has a rail which is up and has a weight; below the gate (gate.h)
 * it stays on one. Where a device has several rails (NCCL_IB_QPS_PER_CONNECTION), each has the
 * weight of the device, and they take turns by the message's index, or each carries a stripe of
 * every message (NCCL_IB_SPLIT_DATA_ON_QPS).
 */
#ifndef HA_PLUGIN_POLICY_H
#define HA_PLUGIN_POLICY_H

#include "plugin/core.h"

#define HA_STRIPE_ALIGN 128

struct ha_range {
	uint64_t offset, length;
};

/* The set of active rails or a weight has changed: find b->balance.first, b->poll.rails and
 * b->balance.stripe_min anew. */
void ha_policy_update(struct ha_bundle *b);
/* Every poll asks the rails of this mask from now on. Owner, or driver with the bundle taken. */
void ha_policy_poll(struct ha_bundle *b, unsigned rails);
/* ha_policy_update without the rest: weights have changed, for the next message, among rails that
 * may all have some. */
void ha_policy_weigh(struct ha_bundle *b);

/* How a buffer is cut: the rails that carry a stripe of it, none of them empty, and where each
 * ends. The first begins at 0, each at the end of the one before. */
struct ha_cut {
	unsigned mask;
	uint64_t end[HA_MAX_RAILS];
};
/* Where a stripe ends that has, with those before it, `below` of `all`: rounded up to the
 * alignment, so that what is too small to be cut is the first rail's: of SUP's part MPIB's document
 * rounds down. Sizes are below 2^50. */
static inline uint64_t ha_policy_boundary(uint64_t size, uint64_t below, uint64_t all)
{
	uint64_t end =
		(size * below / all + HA_STRIPE_ALIGN - 1) & ~(uint64_t)(HA_STRIPE_ALIGN - 1);

	return end < size ? end : size;
}

/* For message `idx`, whose largest buffer has `size` bytes. */
void ha_policy_cut(const struct ha_bundle *b, uint64_t idx, uint64_t size, struct ha_cut *cut);
/* Mask of the rails that carry message `idx` of `size` bytes in its largest buffer; a subset of
 * b->active, never empty. active must not be 0. Below b->balance.stripe_min it is b->balance.first
 * alone, and callers in a hurry look there themselves. */
unsigned ha_policy_mask(const struct ha_bundle *b, uint64_t idx, uint64_t size);
/* All rails of the mask are on one device. */
bool ha_policy_one_device(const struct ha_bundle *b, unsigned rails);
/* Which data rails share a device, and take turns unless messages are split over them; once, before
 * the first message. */
void ha_policy_turns(struct ha_bundle *b, bool split);
/* The bytes of a buffer of `size` bytes that stripe `rail` of `mask` has, with
 * weight[HA_MAX_RAILS]. The ranges of a mask cover the buffer exactly once. A stripe that is posted
 * again is cut by the weights that it was first cut by. */
struct ha_range ha_policy_range(const uint16_t *weight, unsigned mask, unsigned rail,
				uint64_t size);

#endif
