/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/switch/switchd/mark.h"

#include "ina/switch/switchd/dice.h"

void ina_mark_open(struct ina_mark *m, const struct ina_mark_config *config, uint64_t seed)
{
	*m = (struct ina_mark) { .config = config, .dice = seed | 1 };
}

bool ina_mark_decide(struct ina_mark *m)
{
	const struct ina_mark_config *c = m->config;
	double depth = m->average / 16.0;

	if (c->off)
		return false;
	if (depth >= c->max)
		return true;
	return ina_dice_below(&m->dice, c->probability * (depth - c->min) / (c->max - c->min));
}
