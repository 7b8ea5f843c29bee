/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * buddy.h - power-of-two ranges of a switch's aggregators
 *
 * A range of 2^k slots begins at a multiple of 2^k. The smallest free block that suffices is cut;
 * what comes back is joined with its neighbour. In units of HA_BUDDY_UNIT slots, so that a switch's
 * tree stays small.
 */
#ifndef HA_INA_BUDDY_H
#define HA_INA_BUDDY_H

#include <stdbool.h>
#include <stdint.h>

#define HA_BUDDY_UNIT 16u     /* slots; the shortest range */
#define HA_BUDDY_SLOTS 65536u /* agg_addr has 16 bits */
#define HA_BUDDY_UNITS (HA_BUDDY_SLOTS / HA_BUDDY_UNIT)
/* the longest range: a length fits into 16 bits, as NetCCL keeps it */
#define HA_BUDDY_LONGEST 32768u

struct ha_buddy {
	uint32_t slots, free;
	/*
	 * A complete binary tree, root at 1: 1 + log2(units) of the largest free block below, 0 =
	 * none.
	 */
	uint8_t tree[2 * HA_BUDDY_UNITS];
};

/* slots: at most HA_BUDDY_SLOTS; the part of a unit at the end is not used. */
void ha_buddy_open(struct ha_buddy *buddy, uint32_t slots);
/*
 * len: a power of two, HA_BUDDY_UNIT to HA_BUDDY_LONGEST. The first slot, or -1: there is no such
 * block.
 */
int32_t ha_buddy_take(struct ha_buddy *buddy, uint32_t len);
/*
 * This very range, or the part of it that lies before the end. false: some of it is taken, or it is
 * no such range.
 */
bool ha_buddy_reserve(struct ha_buddy *buddy, uint32_t base, uint32_t len);
/* What was taken or reserved. */
void ha_buddy_give(struct ha_buddy *buddy, uint32_t base, uint32_t len);
/* Slots of the longest range that can be taken; 0 = none. */
uint32_t ha_buddy_longest(const struct ha_buddy *buddy);
bool ha_buddy_length_valid(uint32_t len);

#endif
