/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mark.h - congestion by the depth of a queue: WRED with ECN (Floyd and Jacobson 1993; RFC 3168)
 *
 * The depth is averaged: each packet counts 1/16. Below `min` packets nothing is marked, from `max`
 * on everything, between them with a probability that rises from 0 to `probability`. What can be
 * marked is marked (CE); IPv4 that cannot is dropped with the same probability.
 */
#ifndef INA_SWITCHD_MARK_H
#define INA_SWITCHD_MARK_H

#include <stdbool.h>
#include <stdint.h>

struct ina_mark_config {
	bool off;
	unsigned min, max; /* packets */
	double probability;
};

/* Of one queue, one thread. */
struct ina_mark {
	const struct ina_mark_config *config;
	uint32_t average; /* packets, times 16 */
	uint64_t dice;
};

void ina_mark_open(struct ina_mark *m, const struct ina_mark_config *config, uint64_t seed);
bool ina_mark_decide(struct ina_mark *m); /* above min */

/* A packet meets a queue of that depth: shall it be marked? */
static inline bool ina_mark_packet(struct ina_mark *m, uint32_t depth)
{
	m->average = m->average - m->average / 16 + depth;
	if (__builtin_expect(m->average / 16 < m->config->min, 1))
		return false;
	return ina_mark_decide(m);
}

#endif
