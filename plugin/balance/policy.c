/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/balance/policy.h"

#include "plugin/balance/lag.h"
#include "plugin/bundle.h"

static uint64_t sum_weights(const uint16_t *weight, unsigned mask)
{
	uint64_t all = 0;

	for (; mask; mask &= mask - 1)
		all += weight[__builtin_ctz(mask)];
	return all;
}

/* The rail for what stays on one: the heaviest; SOUT's where the gate sends small messages
 * there. */
static unsigned find_first(const struct ha_bundle *b)
{
	unsigned first = b->active ? (unsigned)__builtin_ctz(b->active) : 0;

	if (b->balance.advised.on && b->balance.advised.gated && first < b->balance.ndata &&
	    !b->balance.lead[first])
		return first;
	for (unsigned i = 0; i < b->nrails; i++)
		if (b->active >> i & 1 && b->balance.weight[i] > b->balance.weight[first])
			first = i;
	return first;
}

void ha_policy_poll(struct ha_bundle *b, unsigned rails)
{
	unsigned n = 0, most = b->poll.most;

	b->poll.rails = (uint8_t)rails;
	for (; rails; rails &= rails - 1)
		b->poll.list[n++] = &b->rail[__builtin_ctz(rails)];
	b->poll.list[n] = NULL;
	b->poll.quota = (uint16_t)(n && most / n ? most / n : 1);
	b->poll.want = b->poll.batch < b->poll.quota ? b->poll.batch : b->poll.quota;
}

void ha_policy_update(struct ha_bundle *b)
{
	unsigned weighted = 0, polled = 0;

	b->balance.first = (uint8_t)find_first(b);
	for (unsigned i = 0; i < b->nrails; i++) {
		if (!(b->active >> i & 1))
			continue;
		/* What moves may have had weight a moment ago, and may have some for the next
		 * message. */
		if (b->balance.weight[i] || (b->balance.moves && i < b->balance.ndata)) {
			weighted++;
			polled |= 1u << i;
		}
	}
	b->balance.stripe_min = weighted > 1 ? 0 : UINT64_MAX;
	ha_policy_weigh(b);
	ha_gate_forget(b);
	ha_gate_apply(b);
	ha_lag_roles(b);
	ha_policy_poll(b, polled | ha_lag_polled(b) | (b->active & 1u << b->balance.first));
}

void ha_policy_weigh(struct ha_bundle *b)
{
	unsigned mask = 0;

	for (unsigned i = 0; i < b->nrails; i++)
		if (b->active >> i & 1 && b->balance.weight[i])
			mask |= 1u << i;
	b->balance.carriers = (uint8_t)mask;
	b->balance.carried = (uint16_t)sum_weights(b->balance.weight, mask);
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
		b->balance.beside[i] = 0;
		b->balance.turns |= lead < i && !split;
	}
	for (unsigned i = 0; i < HA_MAX_RAILS; i++)
		for (unsigned k = 0; k < HA_MAX_RAILS; k++)
			b->balance.beside[i] |=
				b->balance.lead[k] == b->balance.lead[i] ? (uint8_t)(1u << k) : 0;
}

/* Of rails that share a device, the one whose turn it is. */
static unsigned take_turns(const struct ha_bundle *b, unsigned mask, uint64_t idx)
{
	unsigned chosen = 0;

	while (mask) {
		unsigned group = mask & (b->balance.beside[__builtin_ctz(mask)] | (mask & -mask));

		mask &= ~group;
		for (unsigned skip = (unsigned)idx % (unsigned)__builtin_popcount(group); skip;
		     skip--)
			group &= group - 1;
		chosen |= group & -group;
	}
	return chosen;
}

/* The rails that a message may go over. */
static unsigned find_candidates(const struct ha_bundle *b, uint64_t idx, uint64_t size)
{
	unsigned first = 1u << b->balance.first, mask = b->balance.carriers;

	if (size < b->balance.stripe_min)
		return first;
	if (size < b->balance.floor)
		mask = b->balance.turns ? (b->active & b->balance.beside[b->balance.first]) | first
					: first;
	return b->balance.turns ? take_turns(b, mask, idx) : mask;
}

/* Fills `end`; returns the rails whose stripe would be empty. */
static unsigned cut_by_weight(const uint16_t *weight, unsigned mask, uint64_t size, uint64_t *end)
{
	uint64_t all = sum_weights(weight, mask), below = 0, at = 0;
	unsigned empty = 0;

	for (; mask & (mask - 1); mask &= mask - 1) {
		unsigned i = (unsigned)__builtin_ctz(mask);

		below += weight[i];
		end[i] = ha_policy_boundary(size, below, all);
		empty |= end[i] == at ? mask & -mask : 0;
		at = end[i];
	}
	end[__builtin_ctz(mask)] = size;
	return at == size ? empty | mask : empty;
}

void ha_policy_cut(const struct ha_bundle *b, uint64_t idx, uint64_t size, struct ha_cut *cut)
{
	unsigned empty;

	cut->mask = find_candidates(b, idx, size);
	if (!size)
		cut->mask &= -cut->mask;
	empty = cut_by_weight(b->balance.weight, cut->mask, size, cut->end);
	/* A share that rounds to nothing would be an empty write: leave that rail out. */
	while (empty && size) {
		cut->mask &= ~empty;
		empty = cut_by_weight(b->balance.weight, cut->mask, size, cut->end);
	}
}

unsigned ha_policy_mask(const struct ha_bundle *b, uint64_t idx, uint64_t size)
{
	struct ha_cut cut;

	ha_policy_cut(b, idx, size, &cut);
	return cut.mask;
}

struct ha_range ha_policy_range(const uint16_t *weight, unsigned mask, unsigned rail, uint64_t size)
{
	uint64_t all = sum_weights(weight, mask),
		 below = sum_weights(weight, mask & ((1u << rail) - 1));
	uint64_t start = below ? ha_policy_boundary(size, below, all) : 0;
	bool last = !(mask >> (rail + 1));

	return (struct ha_range) {
		start, (last ? size : ha_policy_boundary(size, below + weight[rail], all)) - start
	};
}
