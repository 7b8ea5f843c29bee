/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/controller/buddy.h"

#include <string.h>

static uint8_t order_of(uint32_t units)
{
	return (uint8_t)(32 - __builtin_clz(units)); /* 1 + log2 */
}

/* The node of the block of `units` units at `base` units. */
static uint32_t node_of(uint32_t base, uint32_t units)
{
	return (HA_BUDDY_UNITS + base) / units;
}

static void update_parents(struct ha_buddy *b, uint32_t node, uint32_t units)
{
	while (node > 1) {
		uint8_t left, right, whole = order_of(units);

		node /= 2;
		left = b->tree[2 * node];
		right = b->tree[2 * node + 1];
		if (left == whole && right == whole)
			b->tree[node] = (uint8_t)(whole + 1);
		else
			b->tree[node] = left > right ? left : right;
		units *= 2;
	}
}

void ha_buddy_open(struct ha_buddy *b, uint32_t slots)
{
	uint32_t units = (slots > HA_BUDDY_SLOTS ? HA_BUDDY_SLOTS : slots) / HA_BUDDY_UNIT;

	memset(b, 0, sizeof(*b));
	b->slots = b->free = units * HA_BUDDY_UNIT;
	for (uint32_t i = 0; i < units; i++)
		b->tree[HA_BUDDY_UNITS + i] = 1;
	for (uint32_t node = HA_BUDDY_UNITS - 1, size = 2; node; node--) {
		uint8_t left = b->tree[2 * node], right = b->tree[2 * node + 1];

		b->tree[node] = left > right ? left : right;
		if (left == right && left == order_of(size / 2))
			b->tree[node] = order_of(size);
		if (!(node & (node - 1)))
			size *= 2;
	}
}

bool ha_buddy_length_valid(uint32_t len)
{
	return len >= HA_BUDDY_UNIT && len <= HA_BUDDY_LONGEST && !(len & (len - 1));
}

/*
 * From a node that has room: down to the block itself, each time where the room is tighter; left if
 * equal.
 */
static uint32_t find_block(const struct ha_buddy *b, uint8_t order)
{
	uint32_t node = 1;

	for (uint32_t units = HA_BUDDY_UNITS; order_of(units) > order; units /= 2) {
		uint8_t left = b->tree[2 * node], right = b->tree[2 * node + 1];

		node = 2 * node + (left < order || (right >= order && right < left));
	}
	return node;
}

int32_t ha_buddy_take(struct ha_buddy *b, uint32_t len)
{
	uint32_t units = len / HA_BUDDY_UNIT, node;
	uint8_t order;

	if (!ha_buddy_length_valid(len))
		return -1;
	order = order_of(units);
	if (b->tree[1] < order)
		return -1;
	node = find_block(b, order);
	b->tree[node] = 0;
	update_parents(b, node, units);
	b->free -= len;
	return (int32_t)((node * units - HA_BUDDY_UNITS) * HA_BUDDY_UNIT);
}

static bool reserve_block(struct ha_buddy *b, uint32_t base, uint32_t len)
{
	uint32_t units = len / HA_BUDDY_UNIT, node = node_of(base / HA_BUDDY_UNIT, units);

	if (b->tree[node] != order_of(units))
		return false;
	/* Below a block that was taken as a whole the tree says nothing. */
	for (uint32_t above = node / 2; above; above /= 2)
		if (!b->tree[above])
			return false;
	b->tree[node] = 0;
	update_parents(b, node, units);
	b->free -= len;
	return true;
}

bool ha_buddy_reserve(struct ha_buddy *b, uint32_t base, uint32_t len)
{
	if (!ha_buddy_length_valid(len) || base % len)
		return false;
	if (base >= b->slots)
		return true;
	if (base + len <= b->slots)
		return reserve_block(b, base, len);
	if (!ha_buddy_reserve(b, base, len / 2))
		return false;
	if (ha_buddy_reserve(b, base + len / 2, len / 2))
		return true;
	ha_buddy_give(b, base, len / 2);
	return false;
}

void ha_buddy_give(struct ha_buddy *b, uint32_t base, uint32_t len)
{
	uint32_t units = len / HA_BUDDY_UNIT, node = node_of(base / HA_BUDDY_UNIT, units);

	if (base >= b->slots)
		return;
	if (base + len > b->slots) {
		ha_buddy_give(b, base, len / 2);
		ha_buddy_give(b, base + len / 2, len / 2);
		return;
	}
	b->tree[node] = order_of(units);
	update_parents(b, node, units);
	b->free += len;
}

uint32_t ha_buddy_longest(const struct ha_buddy *b)
{
	uint32_t longest = b->tree[1] ? (1u << (b->tree[1] - 1)) * HA_BUDDY_UNIT : 0;

	return longest > HA_BUDDY_LONGEST ? HA_BUDDY_LONGEST : longest;
}
