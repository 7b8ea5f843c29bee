/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slot.h - one slot: the blocks that have come for one psn, and what is left of them
 *
 * A slot is open (waits for its psn, has nothing), live (has some ranks' contributions) or done
 * (has all, keeps the sum for those whose answer gets lost). A range of l slots serves psn p in
 * slot p mod l; the ranks keep at most l/2 packets in flight.
 * Whoever sends p + l/2 or later has its answer to p, for p is behind its window; and all ranks had
 * contributed to p + l/2 before anybody may send p + l. So one half of the range is live while the
 * other holds what may still be asked for: the two pools. The only psn that may take a slot from p
 * is p + l, and only when p is done; everything else is late, or a lie.
 */
#ifndef INA_SLOT_H
#define INA_SLOT_H

#include "ina/frame/frame.h"

/* Five cache lines of 64 bytes, the words on the first four where the slots begin at a line. */
#define INA_SLOT_BYTES 320

struct ina_slot {
	int32_t word[INA_WORDS]; /* done: big-endian, as they are sent */
	uint32_t psn;            /* that it serves or, while it is open, waits for */
	uint32_t seen;           /* ranks whose contribution is in */
	uint8_t coll, root;
	uint8_t flags;    /* INA_F_OVERFLOW, INA_F_NONFINITE */
	uint8_t exponent; /* of words */
	bool done;
	bool filled; /* words has somebody's */
	bool marked; /* a contribution met congestion */
	uint8_t unused[INA_SLOT_BYTES - INA_PAYLOAD_BYTES - 15];
};
_Static_assert(sizeof(struct ina_slot) == INA_SLOT_BYTES, "whole lines");

enum ina_age {
	INA_CURRENT, /* the slot's psn */
	INA_NEXT,    /* may take the slot over */
	INA_STALE,   /* older: a delayed duplicate */
	INA_EARLY    /* newer than the window allows */
};

/*
 * The slots first .. first + len of one worker's range, all open; first_psn is the first that will
 * come.
 */
void ina_slots_open(struct ina_slot *first, uint32_t len, uint32_t first_psn);

/*
 * The kernel's verifier follows both ways of every branch: its compiler must not make one out of a
 * mask.
 */
#ifdef __bpf__
#define INA_OPAQUE(x) __asm__ volatile("" : "+r"(x))
#else
#define INA_OPAQUE(x) ((void)0)
#endif

/* m * 2^-shift, halves rounded up; 0 from 32 on. */
static inline int32_t ina_word_shift(int32_t m, unsigned shift)
{
#ifdef __bpf__ /* the same in 64 bits, without a branch */
	int64_t doubled = (int64_t)((uint64_t)(uint32_t)m << 32) >> 31;

	shift = shift > 63 ? 63 : shift;
	INA_OPAQUE(shift);
	return (int32_t)(((doubled >> shift) + 1) >> 1);
#else
	if (!shift)
		return m;
	return shift > 31 ? 0 : (m >> shift) + (m >> (shift - 1) & 1);
#endif
}

/* a + b, held at the ends of int32; the sign bit of *over is set where it was. */
static inline int32_t ina_word_add(int32_t a, int32_t b, uint32_t *over)
{
	uint32_t sum = (uint32_t)a + (uint32_t)b;
	uint32_t past = ((uint32_t)a ^ sum) & ((uint32_t)b ^ sum);
	uint32_t end = (uint32_t)INT32_MAX + ((uint32_t)a >> 31);
#ifdef __bpf__
	uint32_t held = (uint32_t)((int32_t)past >> 31);

	*over |= past;
	INA_OPAQUE(held);
	return (int32_t)((sum & ~held) | (end & held));
#else
	*over |= past;
	/* vectors have an instruction for it */
	return (int32_t)past < 0 ? (int32_t)end : (int32_t)sum;
#endif
}

#endif
