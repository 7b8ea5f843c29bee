/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/switch/slot.h"

#include "ina/switch/step.h"

void ina_slots_open(struct ina_slot *first, uint32_t len, uint32_t first_psn)
{
	memset(first, 0, len * sizeof(*first));
	for (uint32_t i = 0; i < len; i++)
		first[i].psn = first_psn + ((i - first_psn) & (len - 1));
}

void ina_slot_take(struct ina_slot *s, const struct ina_frame *f)
{
	ina_step_take(s, f);
}

bool ina_slot_add(struct ina_slot *s, const struct ina_frame *f, unsigned ranks)
{
	return ina_step_add(s, f, ranks);
}
