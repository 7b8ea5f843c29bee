/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rng.h - a small seeded random generator (splitmix64, Steele et al., OOPSLA 2014): one word of
 * state, any seed is good, the same seed gives the same faults, keys and queue-pair numbers on
 * every machine. Not for secrets.
 */
#ifndef SOFTROCE_RNG_H
#define SOFTROCE_RNG_H

#include <stdint.h>

/* splitmix64's last step: every bit of x changes about half of the result's. */
static inline uint64_t ha_mix64(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/* What a generator with the seed x gives first. */
static inline uint64_t ha_splitmix64(uint64_t x)
{
	return ha_mix64(x + 0x9e3779b97f4a7c15ull);
}

/* ha_mix64 for words of 32 bits (lowbias32, Wellons 2018). */
static inline uint32_t ha_mix32(uint32_t x)
{
	x = (x ^ x >> 16) * 0x7feb352du;
	x = (x ^ x >> 15) * 0x846ca68bu;
	return x ^ x >> 16;
}

struct sr_rng {
	uint64_t state;
};

static inline uint64_t sr_rng_next(struct sr_rng *rng)
{
	return ha_mix64(rng->state += 0x9e3779b97f4a7c15ull);
}

/* Uniform in [0, n); n = 0 gives 0. */
static inline uint64_t sr_rng_below(struct sr_rng *rng, uint64_t n)
{
	return (uint64_t)(((unsigned __int128)sr_rng_next(rng) * n) >> 64);
}

#endif
