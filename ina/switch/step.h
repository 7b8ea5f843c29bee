/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * step.h - the slot core itself, function by function: what switch.c, the XDP program
 * (ina/switch/xdp/) and ha-switch (ina/switch/switchd/aggregate.c) are made of
 *
 * Inline and without a library, so that a compiler for the kernel's virtual machine takes the same
 * lines. Nothing else includes it, but for the tests' adding_backend.c.
 */
#ifndef INA_STEP_H
#define INA_STEP_H

#include "ina/frame/bytes.h"
#include "ina/switch/switch.h"

#define INA_STEP static inline __attribute__((always_inline))

/* ---- one slot (slot.h) ---- */

INA_STEP enum ina_age ina_step_age(const struct ina_slot *s, uint32_t psn, uint32_t len)
{
	int32_t ahead = (int32_t)(psn - s->psn);

	if (!ahead)
		return INA_CURRENT;
	if (ahead < 0)
		return INA_STALE;
	return (uint32_t)ahead == len && s->done ? INA_NEXT : INA_EARLY;
}

/* The slot is this frame's from now on, and has nothing. */
INA_STEP void ina_step_take(struct ina_slot *s, const struct ina_frame *f)
{
	s->psn = f->psn;
	s->seen = 0;
	s->coll = f->coll;
	s->root = f->root;
	s->flags = s->exponent = 0;
	s->done = s->filled = s->marked = false;
}

/*
 * A word as a slot keeps it: in the processor's order, but the sum in the order of the wire. done:
 * a constant, for the loops below have no branches.
 */
INA_STEP int32_t ina_step_keep(int32_t word, bool done)
{
	return done ? (int32_t)__builtin_bswap32((uint32_t)word) : word;
}

INA_STEP void ina_step_set_words(struct ina_slot *s, const uint8_t *words, bool done)
{
	for (unsigned i = 0; i < INA_WORDS; i++)
		s->word[i] = ina_step_keep((int32_t)ina_get32(words + 4 * i), done);
}

INA_STEP uint32_t ina_step_add_words(struct ina_slot *s, const uint8_t *words, bool done)
{
	uint32_t over = 0;

	for (unsigned i = 0; i < INA_WORDS; i++)
		s->word[i] = ina_step_keep(
			ina_word_add(s->word[i], (int32_t)ina_get32(words + 4 * i), &over), done);
	return over;
}

/* The block of the smaller exponent is brought to the larger one. */
INA_STEP uint32_t ina_step_add_aligned(struct ina_slot *s, const uint8_t *words, uint8_t exponent)
{
	unsigned here = exponent > s->exponent ? exponent - s->exponent : 0;
	unsigned there = s->exponent > exponent ? s->exponent - exponent : 0;
	uint32_t over = 0;

	for (unsigned i = 0; i < INA_WORDS; i++)
		s->word[i] = ina_word_add(ina_word_shift(s->word[i], here),
					  ina_word_shift((int32_t)ina_get32(words + 4 * i), there),
					  &over);
	if (here)
		s->exponent = exponent;
	return over;
}

INA_STEP void ina_step_turn_words(struct ina_slot *s)
{
	for (unsigned i = 0; i < INA_WORDS; i++)
		s->word[i] = ina_step_keep(s->word[i], true);
}

/*
 * One pass over the words where that does: done says that they are the last, and leaves the sum as
 * it is sent.
 */
INA_STEP void ina_step_take_words(struct ina_slot *s, const struct ina_frame *f, bool done)
{
	uint32_t over = 0;
	bool turned = done;

	if (!s->filled) {
		ina_step_set_words(s, f->words, done);
		s->exponent = f->exponent;
		s->filled = true;
	} else if (f->exponent == s->exponent) {
		over = ina_step_add_words(s, f->words, done);
	} else {
		over = ina_step_add_aligned(s, f->words, f->exponent);
		turned = false;
	}
	s->flags |= f->flags & (INA_F_OVERFLOW | INA_F_NONFINITE);
	if (over >> 31)
		s->flags |= INA_F_OVERFLOW;
	if (done && !turned)
		ina_step_turn_words(s);
}

/*
 * A rank's contribution; the rank must be below 32 and not in it yet. True: now all of `ranks` are
 * in, and the slot is done.
 */
INA_STEP bool ina_step_add(struct ina_slot *s, const struct ina_frame *f, unsigned ranks)
{
	uint32_t all = UINT32_MAX >> (32 - ranks);
	bool done;

	s->seen |= 1u << f->rank;
	done = s->seen == all;
	if (f->words && done)
		ina_step_take_words(s, f, true);
	else if (f->words)
		ina_step_take_words(s, f, false);
	else if (done)
		ina_step_turn_words(s);
	s->marked |= f->ecn == INA_CE;
	s->done |= done;
	return done;
}

/* ---- one packet (switch.h) ---- */

/* Is the sender one of this group's ranks, with this group's kind of frame? addr: the switch's. */
INA_STEP enum ina_reason ina_step_sender(uint32_t addr, const struct ina_group *g,
					 const struct ina_frame *f)
{
	const struct ina_group_config *c = &g->config;
	uint32_t rank = f->rank;

	if (f->dst != addr)
		return INA_REASON_NOT_HERE;
	if (!g->installed)
		return INA_REASON_NO_GROUP;
	if (f->extended != c->extended)
		return INA_REASON_KIND;
	if (f->flags & INA_F_ANSWER)
		return INA_REASON_ANSWER;
	if (f->rank >= c->ranks || f->root >= c->ranks || f->worker >= c->workers)
		return INA_REASON_NO_RANK;
	INA_OPAQUE(rank); /* the verifier must see its bound here */
	if (f->src != c->member[rank % INA_RANKS_MAX].addr)
		return INA_REASON_WRONG_ADDRESS;
	return INA_REASON_TAKEN;
}

/* The incarnation that it belongs to. */
INA_STEP enum ina_reason ina_step_incarnation(struct ina_group *g, uint64_t now,
					      const struct ina_frame *f)
{
	int32_t ahead = (int32_t)(f->epoch - g->config.epoch);

	if (f->extended && ahead)
		return ahead < 0 ? INA_REASON_OLD_EPOCH : INA_REASON_NEW_EPOCH;
	if (now >= g->config.lease_until)
		g->over = true;
	if (g->over)
		return INA_REASON_OVER;
	if (f->flags & INA_F_ABORT) {
		g->over = true;
		return INA_REASON_ABORT;
	}
	return INA_REASON_TAKEN;
}

/* Both are powers of two, and a division is what a packet would wait for longest. */
INA_STEP uint32_t ina_step_each(const struct ina_group_config *c)
{
#ifdef __bpf__ /* has no instruction for the other way */
	return c->len / c->workers;
#else
	return c->len >> __builtin_ctz(c->workers);
#endif
}

/*
 * The one slot that this psn has, and how many its worker has. INA_NO_SLOT: the frame names
 * another.
 */
#define INA_NO_SLOT UINT32_MAX
INA_STEP uint32_t ina_step_slot(const struct ina_group_config *c, const struct ina_frame *f,
				uint32_t *each)
{
	uint32_t first, at;

	*each = ina_step_each(c);
	first = c->base + f->worker * *each;
	at = first + (f->psn & (*each - 1));
	if (at != f->agg_addr)
		return INA_NO_SLOT;
	return at;
}

/*
 * Up to its slot: INA_REASON_TAKEN, and the slot, and how many its worker has; or why it has none.
 */
INA_STEP enum ina_reason ina_step_find(struct ina_switch *sw, uint64_t now,
				       const struct ina_frame *f, struct ina_slot **s,
				       uint32_t *each)
{
	struct ina_group *g = &sw->group[f->group];
	enum ina_reason reason = ina_step_sender(sw->addr, g, f);
	uint32_t at;

	if (reason == INA_REASON_TAKEN)
		reason = ina_step_incarnation(g, now, f);
	if (reason != INA_REASON_TAKEN)
		return reason;
	at = ina_step_slot(&g->config, f, each);
	if (at == INA_NO_SLOT)
		return INA_REASON_WRONG_SLOT;
	*s = &sw->slot[at];
	return INA_REASON_TAKEN;
}

/* A frame for the slot as it is: what it says, and what that changes. */
INA_STEP enum ina_reason ina_step_contribute(struct ina_slot *s, enum ina_age age,
					     const struct ina_frame *f, unsigned ranks)
{
	bool probe = f->flags & INA_F_PROBE;
	bool fresh = age == INA_NEXT || !s->seen;

	if (!probe && !f->words == ina_coll_brings(f->coll, f->root, f->rank))
		return INA_REASON_WORDS;
	if (!fresh && (f->coll != s->coll || f->root != s->root))
		return INA_REASON_OTHER;
	if (!fresh && s->done)
		return INA_REASON_AGAIN;
	if (!fresh && s->seen >> f->rank & 1)
		return INA_REASON_HELD;
	if (probe)
		return INA_REASON_NEED;
	if (fresh)
		ina_step_take(s, f);
	return ina_step_add(s, f, ranks) ? INA_REASON_COMPLETE : INA_REASON_TAKEN;
}

/* each: the slots of the worker's range. */
INA_STEP enum ina_reason ina_step_enter(struct ina_slot *s, uint32_t each,
					const struct ina_frame *f, unsigned ranks)
{
	enum ina_age age = ina_step_age(s, f->psn, each);

	if (age == INA_STALE)
		return INA_REASON_STALE;
	if (age == INA_EARLY)
		return INA_REASON_EARLY;
	return ina_step_contribute(s, age, f, ranks);
}

/*
 * Who receives something, and with which flags but those of the sum. The old frame has words for a
 * sum only: else silence, and the rank's own time limit. The epoch stays the packet's: an abort
 * names the incarnation that is over, so that the answer to a straggler from the last incarnation
 * does not end the present one.
 */
INA_STEP enum ina_action ina_step_action(enum ina_reason reason, bool extended, uint8_t *flags)
{
	*flags = extended ? INA_F_ANSWER : 0;
	if (reason == INA_REASON_COMPLETE)
		return INA_ANSWER_ALL;
	if (reason == INA_REASON_AGAIN)
		return INA_ANSWER_ONE;
	if (!extended)
		return INA_DROP;
	switch (reason) {
	case INA_REASON_HELD:
		*flags |= INA_F_HELD;
		return INA_ANSWER_ONE;
	case INA_REASON_NEED:
		*flags |= INA_F_NEED;
		return INA_ANSWER_ONE;
	case INA_REASON_OVER:
	case INA_REASON_OLD_EPOCH:
		*flags |= INA_F_ABORT;
		return INA_ANSWER_ONE;
	case INA_REASON_ABORT:
		*flags |= INA_F_ABORT;
		return INA_ANSWER_ALL;
	default:
		return INA_DROP;
	}
}

/* ---- answers (switch.h) ---- */

/* What all answers have in common: the frame turned round. */
INA_STEP void ina_step_turn_round(const struct ina_switch *sw, const struct ina_frame *f,
				  uint8_t flags, struct ina_frame *answer)
{
	*answer = *f;
	answer->src = sw->addr;
	ina_copy_mac(answer->src_mac, sw->mac);
	answer->ecn = f->ecn == INA_CE ? INA_CE : INA_ECT1;
	answer->flags = flags;
	answer->exponent = 0;
	answer->words = NULL;
}

INA_STEP void ina_step_put_sum(const struct ina_slot *s, struct ina_frame *answer)
{
	if (s->marked)
		answer->ecn = INA_CE;
	answer->flags |= s->flags;
	answer->exponent = s->exponent;
	answer->words = (const uint8_t *)s->word;
}

/* From the answer with words to the one of a rank that gets none. */
INA_STEP void ina_step_leave_out(struct ina_frame *answer)
{
	answer->words = NULL;
	answer->exponent = 0;
	answer->flags &= (uint8_t) ~(INA_F_OVERFLOW | INA_F_NONFINITE);
}

#endif
