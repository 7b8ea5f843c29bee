/* SPDX-License-Identifier: BSD-3-Clause */
/* Compiled once for each kind of processor; INA_ENTER is the name of this one. */
#include "ina/switch/enter.h"

#include "ina/switch/step.h"

#ifndef INA_ENTER
#define INA_ENTER ina_enter_plain
#endif

enum ina_reason INA_ENTER(struct ina_slot *s, uint32_t each, const struct ina_frame *f,
			  unsigned ranks)
{
	return ina_step_enter(s, each, f, ranks);
}
