/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdma/topo/leaf.h"

#include <stdio.h>

#include "base/hash.h"
#include "rdma/topo/device.h"

uint32_t ha_leaf_of_switch(const char *id)
{
	uint64_t hash = ha_hash_text(HA_HASH_START, id);
	uint32_t leaf = (uint32_t)(hash ^ hash >> 20 ^ hash >> 40) & HA_LEAF_HASH;

	return HA_LEAF_SWITCH | (leaf ? leaf : 1);
}

uint32_t ha_leaf(const struct ha_topo_device *dev)
{
	int rail = dev->place.rail_id, plane = dev->place.plane_id;

	if (rail < 0)
		return *dev->place.at.id ? ha_leaf_of_switch(dev->place.at.id) : 0;
	if ((unsigned)rail >= HA_LEAF_MAX || (plane >= 0 && (unsigned)plane >= HA_LEAF_MAX))
		return 0;
	return (uint32_t)(rail + 1) << 12 | (uint32_t)(plane < 0 ? 0 : plane + 1);
}

const char *ha_leaf_switch_text(const struct ha_topo_switch *at, char *buf, size_t len)
{
	if (*at->name)
		snprintf(buf, len, "%s (%s)", at->name, at->id);
	else
		snprintf(buf, len, "%s", at->id);
	return buf;
}

const char *ha_leaf_text(const struct ha_topo *topo, uint32_t leaf, char *buf, size_t len)
{
	unsigned rail = (leaf >> 12) - 1, plane = (leaf & 0xfff) - 1;

	if (!(leaf & HA_LEAF_SWITCH)) {
		snprintf(buf, len, leaf & 0xfff ? "of rail %u, plane %u" : "of rail %u", rail,
			 plane);
		return buf;
	}
	for (int i = 0; i < topo->nports; i++)
		if (ha_leaf(&topo->devices[i]) == leaf)
			return ha_leaf_switch_text(&topo->devices[i].place.at, buf, len);
	snprintf(buf, len, "of the peer's NICs");
	return buf;
}
