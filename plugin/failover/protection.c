/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/failover/protection.h"

#include "base/hash.h"
#include "plugin/device/device.h"
#include "rdma/topo/leaf.h"

/* Never 0. */
static uint64_t hash_name(uint64_t mark, const char *name, size_t size)
{
	return ha_hash_bytes(mark, name, strnlen(name, size)) | 1;
}

uint64_t ha_peer_device(const struct ha_wire_rail *end)
{
	return hash_name(end->guid, end->name, sizeof(end->name));
}

/* A switch is one to both ends, or to neither. */
static uint32_t common_place(const struct ha_bundle *b, uint32_t place)
{
	return place & HA_LEAF_SWITCH && !(b->terms.flags & HA_FLAG_SWITCHES) ? 0 : place;
}

uint32_t ha_peer_place(const struct ha_bundle *b, const struct ha_wire_rail *end)
{
	return b->terms.flags & HA_FLAG_PAIRS ? common_place(b, ha_wire_place(end->keys)) : 0;
}

uint32_t ha_sent_place(const struct ha_bundle *b, const struct ha_device *dev)
{
	return common_place(b, ha_device_place(dev));
}

/* Are there two rails on different devices, here or there? */
static bool has_several_devices(const struct ha_bundle *b, unsigned rails, bool here)
{
	const struct ha_rail *first = &b->rail[__builtin_ctz(rails)];

	for (; rails; rails &= rails - 1) {
		const struct ha_rail *r = &b->rail[__builtin_ctz(rails)];

		if (here ? r->dev != first->dev
			 : ha_peer_device(&r->setup.peer) != ha_peer_device(&first->setup.peer))
			return true;
	}
	return false;
}

/* All of one kind: else nothing is known of which ends are on one switch. */
static bool places_known(const struct ha_bundle *b, unsigned rails)
{
	uint32_t first = rails ? ha_device_place(b->rail[__builtin_ctz(rails)].dev) : 0;

	for (; rails; rails &= rails - 1) {
		const struct ha_rail *r = &b->rail[__builtin_ctz(rails)];

		if (!ha_leaf_comparable(first, ha_device_place(r->dev)) ||
		    !ha_leaf_comparable(first, ha_peer_place(b, &r->setup.peer)))
			return false;
	}
	return true;
}

/* Of a rail's end: its leaf switch, by place, or presumed by the NIC's name. */
static uint64_t switch_of(const struct ha_bundle *b, const struct ha_rail *r, bool here,
			  bool by_place)
{
	const char *name = here ? ha_device_name(r->dev) : r->setup.peer.name;

	if (by_place)
		return here ? ha_device_place(r->dev) : ha_peer_place(b, &r->setup.peer);
	return hash_name(0, name, sizeof(r->setup.peer.name));
}

/* One of the rails has no end there. */
static bool survives_switch(const struct ha_bundle *b, unsigned rails, uint64_t mark, bool by_place)
{
	for (; rails; rails &= rails - 1) {
		const struct ha_rail *r = &b->rail[__builtin_ctz(rails)];

		if (switch_of(b, r, true, by_place) != mark &&
		    switch_of(b, r, false, by_place) != mark)
			return true;
	}
	return false;
}

struct ha_presumed_switch ha_protection_presumed_switch(const struct ha_bundle *b, unsigned rails)
{
	struct ha_presumed_switch shared = { .by_place = places_known(b, rails) };

	for (unsigned left = rails; left; left &= left - 1) {
		const struct ha_rail *r = &b->rail[__builtin_ctz(left)];

		for (unsigned here = 0; here < 2; here++) {
			uint64_t mark = switch_of(b, r, here, shared.by_place);

			if (!survives_switch(b, rails, mark, shared.by_place) &&
			    (!shared.mark || mark < shared.mark))
				shared.mark = mark;
		}
	}
	return shared;
}

uint32_t ha_protection_shared_place(const struct ha_bundle *b, unsigned rails)
{
	struct ha_presumed_switch shared = ha_protection_presumed_switch(b, rails);

	return shared.by_place ? (uint32_t)shared.mark : 0;
}

/* Any one: that of every end is known. */
static bool survives_any_switch(const struct ha_bundle *b, unsigned rails)
{
	struct ha_presumed_switch shared = ha_protection_presumed_switch(b, rails);

	return shared.by_place && !shared.mark;
}

bool ha_protection_crosses(const struct ha_bundle *b, unsigned rails)
{
	bool by_place = places_known(b, rails);

	for (; rails; rails &= rails - 1) {
		const struct ha_rail *r = &b->rail[__builtin_ctz(rails)];

		if (switch_of(b, r, true, by_place) != switch_of(b, r, false, by_place))
			return true;
	}
	return false;
}

bool ha_protection_is_on(const struct ha_presumed_switch *s, const struct ha_device *dev)
{
	if (!s->mark)
		return false;
	if (s->by_place)
		return ha_device_place(dev) == s->mark;
	return hash_name(0, ha_device_name(dev), sizeof(((struct ha_wire_rail *)0)->name)) ==
	       s->mark;
}

/* ---- what is promised ---- */

enum ha_status_against ha_protection(const struct ha_bundle *b, unsigned rails)
{
	bool here, there;

	if (!rails)
		return HA_AGAINST_NOTHING;
	here = has_several_devices(b, rails, true);
	there = has_several_devices(b, rails, false);
	if (here && there)
		return survives_any_switch(b, rails) ? HA_AGAINST_SWITCH : HA_AGAINST_NIC;
	if (here)
		return HA_AGAINST_NIC_HERE;
	return there ? HA_AGAINST_NIC_THERE : HA_AGAINST_NOTHING;
}

unsigned ha_protection_rank(enum ha_status_against against)
{
	switch (against) {
	case HA_AGAINST_NIC_HERE:
	case HA_AGAINST_NIC_THERE:
		return 1;
	case HA_AGAINST_NIC:
		return 2;
	case HA_AGAINST_SWITCH:
		return 3;
	default:
		return 0;
	}
}

const char *ha_protection_text(enum ha_status_against against)
{
	static const char *const texts[] = {
		[HA_AGAINST_NOTHING] = "nothing",
		[HA_AGAINST_NIC_HERE] = "the loss of a NIC here, not there",
		[HA_AGAINST_NIC_THERE] = "the loss of a NIC there, not here",
		[HA_AGAINST_NIC] = "the loss of a NIC",
		[HA_AGAINST_SWITCH] = "the loss of a NIC or a leaf switch",
	};

	return texts[against];
}
