/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/policy.h"

void ha_policy_update(struct ha_bundle *b)
{
	unsigned weighted = 0;

	b->first = b->active ? (uint8_t)__builtin_ctz(b->active) : 0;
	for (unsigned i = 0; i < b->nrails; i++) {
		if (!(b->active >> i & 1))
			continue;
		weighted += b->rail[i].weight > 0;
		if (b->rail[i].weight > b->rail[b->first].weight)
			b->first = (uint8_t)i;
	}
	b->stripe_min = weighted > 1 ? HA_STRIPE_MIN : UINT64_MAX;
}

unsigned ha_policy_mask(const struct ha_bundle *b, uint64_t size)
{
	unsigned mask = 0;
	struct ha_range range;

	if (size < b->stripe_min)
		return 1u << b->first;
	for (unsigned i = 0; i < b->nrails; i++)
		if (b->active >> i & 1 && b->rail[i].weight)
			mask |= 1u << i;
	/* A share that rounds to nothing would be an empty write: leave that rail out. */
	for (unsigned i = 0; i < b->nrails; i++) {
		range = mask >> i & 1 ? ha_policy_range(b, mask, i, size) : (struct ha_range){ 0, 1 };
		if (!range.length)
			mask &= ~(1u << i);
	}
	return mask;
}

/* Where the stripes of the rails below `rail` end: the running share of the size, rounded down to the alignment. */
static uint64_t boundary(const struct ha_bundle *b, unsigned mask, unsigned rail, uint64_t size)
{
	uint64_t below = 0, all = 0;

	for (unsigned i = 0; i < b->nrails; i++) {
		if (!(mask >> i & 1))
			continue;
		all += b->rail[i].weight;
		if (i < rail)
			below += b->rail[i].weight;
	}
	if (below == all)
		return size;
	return (size / all * below + size % all * below / all) & ~(uint64_t)(HA_STRIPE_ALIGN - 1);
}

struct ha_range ha_policy_range(const struct ha_bundle *b, unsigned mask, unsigned rail, uint64_t size)
{
	uint64_t start, end;

	if (!(mask & (mask - 1)))
		return (struct ha_range){ 0, size };
	start = boundary(b, mask, rail, size);
	end = mask >> (rail + 1) ? boundary(b, mask, rail + 1, size) : size;
	return (struct ha_range){ start, end - start };
}
