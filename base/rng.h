/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rng.h - a small seeded random generator (splitmix64, Steele et al., OOPSLA 2014): one word of
 * state, any seed is good, the same seed gives the same faults, keys and queue-pair numbers on
 * every machine. Not for secrets.
 */
#ifndef SOFTROCE_RNG_H
#define SOFTROCE_RNG_H

#include <stdint.h>

struct sr_rng {
	uint64_t state;
};

static inline uint64_t sr_rng_next(struct sr_rng *rng)
{
	uint64_t z = (rng->state += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

/* Uniform in [0, n); n = 0 gives 0. */
static inline uint64_t sr_rng_below(struct sr_rng *rng, uint64_t n)
{
	return (uint64_t)(((unsigned __int128)sr_rng_next(rng) * n) >> 64);
}

#endif
