/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * psn.h - arithmetic on 24-bit packet sequence numbers (IBTA vol. 1, 9.7.1): a window of 2^23
 * counts as ahead
 */
#ifndef SOFTROCE_ENGINE_PSN_H
#define SOFTROCE_ENGINE_PSN_H

#include <stdint.h>

#define SR_PSN_MASK 0xffffffu

static inline uint32_t sr_psn_add(uint32_t psn, uint32_t n)
{
	return (psn + n) & SR_PSN_MASK;
}

/* a - b as a signed distance in [-2^23, 2^23). */
static inline int32_t sr_psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

#endif
