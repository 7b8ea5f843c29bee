/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/failover/protection.h"

#include "plugin/device/device.h"

uint64_t ha_peer_device(const struct ha_wire_rail *end)
{
	uint64_t mark = end->guid;

	for (unsigned i = 0; i < sizeof(end->name) && end->name[i]; i++)
		mark = (mark ^ (uint8_t)end->name[i]) * UINT64_C(0x100000001b3);
	return mark | 1;
}

uint32_t ha_peer_place(const struct ha_bundle *b, const struct ha_wire_rail *end)
{
	return b->terms.flags & HA_FLAG_PAIRS ? ha_wire_place(end->keys) : 0;
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

/* One of the rails has no end there. */
static bool survives_place(const struct ha_bundle *b, unsigned rails, uint32_t place)
{
	for (; rails; rails &= rails - 1) {
		const struct ha_rail *r = &b->rail[__builtin_ctz(rails)];

		if (ha_device_place(r->dev) != place && ha_peer_place(b, &r->setup.peer) != place)
			return true;
	}
	return false;
}

static bool places_known(const struct ha_bundle *b, unsigned rails)
{
	for (; rails; rails &= rails - 1) {
		const struct ha_rail *r = &b->rail[__builtin_ctz(rails)];

		if (!ha_device_place(r->dev) || !ha_peer_place(b, &r->setup.peer))
			return false;
	}
	return true;
}

uint32_t ha_protection_shared_place(const struct ha_bundle *b, unsigned rails)
{
	for (unsigned left = places_known(b, rails) ? rails : 0; left; left &= left - 1) {
		const struct ha_rail *r = &b->rail[__builtin_ctz(left)];
		uint32_t here = ha_device_place(r->dev), there = ha_peer_place(b, &r->setup.peer);

		if (!survives_place(b, rails, here))
			return here;
		if (!survives_place(b, rails, there))
			return there;
	}
	return 0;
}

static bool survives_switch(const struct ha_bundle *b, unsigned rails)
{
	return places_known(b, rails) && !ha_protection_shared_place(b, rails);
}

enum ha_status_against ha_protection(const struct ha_bundle *b, unsigned rails)
{
	bool here, there;

	if (!rails)
		return HA_AGAINST_NOTHING;
	here = has_several_devices(b, rails, true);
	there = has_several_devices(b, rails, false);
	if (here && there)
		return survives_switch(b, rails) ? HA_AGAINST_SWITCH : HA_AGAINST_NIC;
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
