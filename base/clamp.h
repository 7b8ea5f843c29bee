/* SPDX-License-Identifier: BSD-3-Clause */
/* clamp.h - a value held between two ends */
#ifndef HA_BASE_CLAMP_H
#define HA_BASE_CLAMP_H

#include <stdint.h>

/* `value`, but not below `least` and not above `most`; least <= most. */
static inline int64_t ha_clamp(int64_t value, int64_t least, int64_t most)
{
	if (value < least)
		return least;
	return value < most ? value : most;
}

#endif
