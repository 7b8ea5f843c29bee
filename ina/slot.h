/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slot.h - one slot: the blocks that have come for one psn, and what is left of them
 *
 * A slot is open (waits for its psn, has nothing), live (has some ranks' contributions) or done (has all, keeps the sum for
 * those whose answer gets lost). A range of l slots serves psn p in slot p mod l; the ranks keep at most l/2 packets in flight.
 * Whoever sends p + l/2 or later has its answer to p, for p is behind its window; and all ranks had contributed to p + l/2 before
 * anybody may send p + l. So one half of the range is live while the other holds what may still be asked for: the two pools. The
 * only psn that may take a slot from p is p + l, and only when p is done; everything else is late, or a lie.
 */
#ifndef INA_SLOT_H
#define INA_SLOT_H

#include "ina/frame.h"

struct ina_slot {
	uint32_t psn;  /* that it serves or, while it is open, waits for */
	uint32_t seen; /* ranks whose contribution is in */
	uint8_t coll, root;
	uint8_t flags;	  /* INA_F_OVERFLOW, INA_F_NONFINITE */
	uint8_t exponent; /* of words */
	bool done;
	bool filled; /* words has somebody's */
	bool marked; /* a contribution met congestion */
	int32_t word[INA_WORDS]; /* done: big-endian, as they are sent */
};

enum ina_age {
	INA_CURRENT, /* the slot's psn */
	INA_NEXT,    /* may take the slot over */
	INA_STALE,   /* older: a delayed duplicate */
	INA_EARLY    /* newer than the window allows */
};

/* The slots first .. first + len of one worker's range, all open; first_psn is the first that will come. */
void ina_slots_open(struct ina_slot *first, uint32_t len, uint32_t first_psn);
enum ina_age ina_slot_age(const struct ina_slot *s, uint32_t psn, uint32_t len);
/* The slot is this frame's from now on, and has nothing. */
void ina_slot_take(struct ina_slot *s, const struct ina_frame *f);
/* A rank's contribution; the rank must be below 32 and not in it yet. True: now all of `ranks` are in, and the slot is done. */
bool ina_slot_add(struct ina_slot *s, const struct ina_frame *f, unsigned ranks);

/* m * 2^-shift, halves rounded up; 0 from 32 on. */
static inline int32_t ina_word_shift(int32_t m, unsigned shift)
{
	if (!shift)
		return m;
	return shift > 31 ? 0 : (m >> shift) + (m >> (shift - 1) & 1);
}

/* a + b, held at the ends of int32; the sign bit of *over is set where it was. */
static inline int32_t ina_word_add(int32_t a, int32_t b, uint32_t *over)
{
	uint32_t sum = (uint32_t)a + (uint32_t)b;
	uint32_t past = ~((uint32_t)a ^ (uint32_t)b) & ((uint32_t)a ^ sum);
	int32_t end = a < 0 ? INT32_MIN : INT32_MAX;

	*over |= past;
	return past >> 31 ? end : (int32_t)sum;
}

#endif
