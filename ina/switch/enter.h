/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * enter.h - what a frame does to its slot (ina_step_enter()), for two kinds of processor: adding
 * blocks is all of a switch's time
 */
#ifndef INA_ENTER_H
#define INA_ENTER_H

#include "ina/switch/switch.h"

typedef enum ina_reason ina_enter_fn(struct ina_slot *s, uint32_t each, const struct ina_frame *f,
				     unsigned ranks);

ina_enter_fn ina_enter_plain, ina_enter_avx2;

/*
 * The faster one that runs here. AVX-512 is no faster, also where a slot's words have cache lines
 * of their own: a packet waits for memory, not for sums.
 */
static inline enum ina_reason ina_enter(struct ina_slot *s, uint32_t each,
					const struct ina_frame *f, unsigned ranks)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx2"))
		return ina_enter_avx2(s, each, f, ranks);
#endif
	return ina_enter_plain(s, each, f, ranks);
}

#endif
