/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dice.h - random numbers that cost nothing (xorshift64*, Vigna 2016), one sequence for each state
 */
#ifndef INA_SWITCHD_DICE_H
#define INA_SWITCHD_DICE_H

#include <stdbool.h>
#include <stdint.h>

/* state: never 0. */
static inline uint64_t ina_dice_roll(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1dull;
}

static inline bool ina_dice_below(uint64_t *state, double probability)
{
	return (double)(ina_dice_roll(state) >> 11) * 0x1p-53 < probability;
}

#endif
