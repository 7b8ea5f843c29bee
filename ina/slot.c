/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/slot.h"

#include "ina/bytes.h"
#include "ina/mutation.h"

void ina_slots_open(struct ina_slot *first, uint32_t len, uint32_t first_psn)
{
	memset(first, 0, len * sizeof(*first));
	for (uint32_t i = 0; i < len; i++)
		first[i].psn = first_psn + ((i - first_psn) & (len - 1));
}

enum ina_age ina_slot_age(const struct ina_slot *s, uint32_t psn, uint32_t len)
{
	int32_t ahead = (int32_t)(psn - s->psn);

	if (!ahead)
		return INA_CURRENT;
	if (INA_MUTATION(NO_AGE))
		return INA_NEXT;
	if (ahead < 0)
		return INA_STALE;
	return (uint32_t)ahead == len && s->done ? INA_NEXT : INA_EARLY;
}

void ina_slot_take(struct ina_slot *s, const struct ina_frame *f)
{
	s->psn = f->psn;
	s->seen = 0;
	s->coll = f->coll;
	s->root = f->root;
	s->flags = s->exponent = 0;
	s->done = s->filled = s->marked = false;
}

static void set_words(struct ina_slot *s, const uint8_t *words)
{
	for (unsigned i = 0; i < INA_WORDS; i++)
		s->word[i] = (int32_t)ina_get32(words + 4 * i);
}

static uint32_t add_words(struct ina_slot *s, const uint8_t *words)
{
	uint32_t over = 0;

	for (unsigned i = 0; i < INA_WORDS; i++)
		s->word[i] = ina_word_add(s->word[i], (int32_t)ina_get32(words + 4 * i), &over);
	return over;
}

/* The block of the smaller exponent is brought to the larger one. */
static uint32_t add_aligned(struct ina_slot *s, const uint8_t *words, uint8_t exponent)
{
	unsigned here = exponent > s->exponent ? exponent - s->exponent : 0;
	unsigned there = s->exponent > exponent ? s->exponent - exponent : 0;
	uint32_t over = 0;

	for (unsigned i = 0; i < INA_WORDS; i++)
		s->word[i] = ina_word_add(ina_word_shift(s->word[i], here),
					  ina_word_shift((int32_t)ina_get32(words + 4 * i), there), &over);
	if (here)
		s->exponent = exponent;
	return over;
}

/* Every word but those at an end is off by one. */
static void spoil_rest(struct ina_slot *s)
{
	for (unsigned i = 0; i < INA_WORDS; i++)
		if (s->word[i] != INT32_MAX && s->word[i] != INT32_MIN)
			s->word[i] ^= 1;
}

static void take_words(struct ina_slot *s, const struct ina_frame *f)
{
	uint32_t over = 0;

	if (!s->filled) {
		set_words(s, f->words);
		s->exponent = f->exponent;
		s->filled = true;
	} else if (f->exponent == s->exponent) {
		over = add_words(s, f->words);
	} else {
		over = add_aligned(s, f->words, f->exponent);
	}
	s->flags |= f->flags & (INA_F_OVERFLOW | INA_F_NONFINITE);
	if (over >> 31)
		s->flags |= INA_F_OVERFLOW;
	if (INA_MUTATION(SPOIL_REST) && over >> 31)
		spoil_rest(s);
}

bool ina_slot_add(struct ina_slot *s, const struct ina_frame *f, unsigned ranks)
{
	uint32_t all = UINT32_MAX >> (32 - ranks);

	if (f->words)
		take_words(s, f);
	s->marked |= f->ecn == INA_CE;
	s->seen |= 1u << f->rank;
	if (s->seen != all)
		return false;
	s->done = true;
	for (unsigned i = 0; i < INA_WORDS; i++)
		s->word[i] = (int32_t)__builtin_bswap32((uint32_t)s->word[i]);
	return true;
}
