/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/balance/policy.h"

/* The rail for what stays on one: the heaviest; SOUT's where the gate sends small messages there. */
static unsigned find_first(const struct ha_bundle *b)
{
	unsigned first = b->active ? (unsigned)__builtin_ctz(b->active) : 0;

	if (b->balance.advised.on && b->balance.advised.gated && first < b->balance.ndata && !b->balance.lead[first])
		return first;
	for (unsigned i = 0; i < b->nrails; i++)
		if (b->active >> i & 1 && b->balance.weight[i] > b->balance.weight[first])
			first = i;
	return first;
}

void ha_policy_update(struct ha_bundle *b)
{
	unsigned weighted = 0;

	b->balance.first = (uint8_t)find_first(b);
	b->poll.rails = 0;
	for (unsigned i = 0; i < b->nrails; i++) {
		if (!(b->active >> i & 1))
			continue;
		/* What moves may have had weight a moment ago, and may have some for the next message. */
		if (b->balance.weight[i] || (b->balance.moves && i < b->balance.ndata)) {
			weighted++;
			b->poll.rails |= (uint8_t)(1u << i);
		}
	}
	b->poll.rails |= b->active & (uint8_t)(1u << b->balance.first);
	b->balance.stripe_min = weighted > 1 ? 0 : UINT64_MAX;
	ha_gate_forget(b);
	ha_gate_apply(b);
}

bool ha_policy_one_device(const struct ha_bundle *b, unsigned rails)
{
	const struct ha_device *first = rails ? b->rail[__builtin_ctz(rails)].dev : NULL;

	for (; rails; rails &= rails - 1)
		if (b->rail[__builtin_ctz(rails)].dev != first)
			return false;
	return true;
}

void ha_policy_turns(struct ha_bundle *b, bool split)
{
	b->balance.turns = false;
	for (unsigned i = 0; i < HA_MAX_RAILS; i++) {
		unsigned lead = 0;

		while (lead < i && (i >= b->balance.ndata || b->rail[lead].dev != b->rail[i].dev))
			lead++;
		b->balance.lead[i] = (uint8_t)lead;
		b->balance.turns |= lead < i && !split;
	}
}

/* Of rails that share a device, the one whose turn it is. */
static unsigned take_turns(const struct ha_bundle *b, unsigned mask, uint64_t idx)
{
	unsigned chosen = 0;

	for (unsigned lead = 0; lead < b->nrails; lead++) {
		unsigned group = 0;

		for (unsigned i = lead; i < b->nrails; i++)
			group |= b->balance.lead[i] == lead ? mask & 1u << i : 0;
		if (!group)
			continue;
		for (unsigned skip = (unsigned)(idx % (unsigned)__builtin_popcount(group)); skip; skip--)
			group &= group - 1;
		chosen |= group & -group;
	}
	return chosen;
}

/* The active rails on the device of b->balance.first. */
static unsigned beside_first(const struct ha_bundle *b)
{
	unsigned mask = 1u << b->balance.first;

	for (unsigned i = 0; i < b->balance.ndata && b->balance.first < b->balance.ndata; i++)
		if (b->active >> i & 1 && b->balance.lead[i] == b->balance.lead[b->balance.first])
			mask |= 1u << i;
	return mask;
}

unsigned ha_policy_mask(const struct ha_bundle *b, uint64_t idx, uint64_t size)
{
	unsigned mask = 0;
	struct ha_range range;

	if (size < b->balance.stripe_min)
		return 1u << b->balance.first;
	if (size < ha_gate_bytes(b))
		return b->balance.turns ? take_turns(b, beside_first(b), idx) : 1u << b->balance.first;
	for (unsigned i = 0; i < b->nrails; i++)
		if (b->active >> i & 1 && b->balance.weight[i])
			mask |= 1u << i;
	if (b->balance.turns)
		mask = take_turns(b, mask, idx);
	/* A share that rounds to nothing would be an empty write: leave that rail out. */
	for (unsigned i = b->nrails; i-- > 0 && mask & (mask - 1);) {
		range = mask >> i & 1 ? ha_policy_range(b->balance.weight, mask, i, size) : (struct ha_range){ 0, 1 };
		if (!range.length)
			mask &= ~(1u << i);
	}
	return mask;
}

/* Where the stripes of the rails below `rail` end: the running share of the size, rounded up to the alignment, so that what is too
 * small to be cut is the first rail's: of SUP's part MPIB's document rounds down. */
static uint64_t boundary(const uint16_t *weight, unsigned mask, unsigned rail, uint64_t size)
{
	uint64_t below = 0, all = 0, end;

	for (unsigned i = 0; i < HA_MAX_RAILS; i++) {
		if (!(mask >> i & 1))
			continue;
		all += weight[i];
		if (i < rail)
			below += weight[i];
	}
	if (below == all)
		return size;
	end = (size / all * below + size % all * below / all + HA_STRIPE_ALIGN - 1) & ~(uint64_t)(HA_STRIPE_ALIGN - 1);
	return end < size ? end : size;
}

struct ha_range ha_policy_range(const uint16_t *weight, unsigned mask, unsigned rail, uint64_t size)
{
	uint64_t start, end;

	if (!(mask & (mask - 1)))
		return (struct ha_range){ 0, size };
	start = boundary(weight, mask, rail, size);
	end = mask >> (rail + 1) ? boundary(weight, mask, rail + 1, size) : size;
	return (struct ha_range){ start, end - start };
}

uint64_t ha_policy_stripe_bytes(const struct ha_send_slot *slot, unsigned stripe)
{
	uint64_t bytes = 0;

	for (unsigned m = 0; m < slot->n; m++)
		bytes += ha_policy_range(slot->weight, slot->mask, stripe, slot->req[m].size).length;
	return bytes;
}
