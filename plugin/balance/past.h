/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * past.h - how long messages on a path take, compared with how long they used to
 *
 * Arithmetic alone. What a message takes depends on how much stands in the queue with it, so it is
 * compared with those that had as much in front of them: by powers of two.
 */
#ifndef HA_BALANCE_PAST_H
#define HA_BALANCE_PAST_H

#include <stdbool.h>
#include <stdint.h>

#define HA_PAST_CLASSES 18 /* below 4 KiB in the queue, below 8 KiB, ... */
#define HA_PAST_UNIT 16    /* ratios are in sixteenths: as long as ever */
/* what is longer by less than this is as long as ever: a busy processor does that */
#define HA_PAST_LEAST_NS UINT64_C(200000)
#define HA_PAST_SAMPLES 32

struct ha_past {
	uint64_t ns[HA_PAST_CLASSES]; /* the usual time, near the shortest; 0: not known */
};

/* Ratios of the last messages. */
struct ha_past_window {
	uint32_t n;
	uint32_t ratio[HA_PAST_SAMPLES];
};

/* Have messages with about so much in the queue been seen? */
bool ha_past_knows(const struct ha_past *p, uint64_t queued);
/* ns that `queued` bytes should take, by what is known of this or another amount; 0: unknown. What
 * is known only of more or less is taken so that it is rather too short. */
uint64_t ha_past_expect(const struct ha_past *p, uint64_t queued);
/* How long it took, in sixteenths of what it should. Of what nothing is known: HA_PAST_UNIT. */
uint32_t ha_past_ratio(const struct ha_past *p, uint64_t queued, uint64_t ns);
/* One more message of a path that is as it should be. Down quickly, up slowly. */
void ha_past_learn(struct ha_past *p, uint64_t queued, uint64_t ns);
/* It takes so many sixteenths from now on, and nothing is wrong with that. */
void ha_past_accept(struct ha_past *p, uint32_t ratio);

/* A full window stays as it is. */
void ha_past_add(struct ha_past_window *w, uint32_t ratio);
uint32_t ha_past_median(const struct ha_past_window *w);
/* Of the last `last`. */
uint32_t ha_past_least(const struct ha_past_window *w, uint32_t last);
uint32_t ha_past_most(const struct ha_past_window *w);

#endif
