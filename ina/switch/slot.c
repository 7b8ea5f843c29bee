/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/switch/slot.h"

#include <string.h>

void ina_slots_open(struct ina_slot *first, uint32_t len, uint32_t first_psn)
{
	memset(first, 0, len * sizeof(*first));
	for (uint32_t i = 0; i < len; i++)
		first[i].psn = first_psn + ((i - first_psn) & (len - 1));
}
