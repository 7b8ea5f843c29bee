/* SPDX-License-Identifier: BSD-3-Clause */
/* test_slot.c - the slot core: each collective, and each thing that NetCCL's switch gets wrong */
#include "softroce/rng.h"
#include "tests/ina/named.h"
#include "tests/ina/ranks.h"

#include <errno.h>
#include <math.h>

static struct ranks r;

/* A rank's contribution of one value in all words, plus the word's number. */
static enum ina_reason give(uint8_t rank, uint32_t psn, int32_t value)
{
	struct ina_frame f = ranks_frame(&r, INA_ALL_REDUCE, 0, rank, psn);
	int32_t word[INA_WORDS];

	for (int i = 0; i < INA_WORDS; i++)
		word[i] = value + i;
	ranks_words(&f, word);
	return ranks_send(&r, &f);
}

/* All ranks' contributions of psn; every answer is right. */
static void whole(uint32_t psn)
{
	int32_t sum = 0;

	for (uint8_t rank = 0; rank < r.config.ranks; rank++) {
		int32_t value = (int32_t)(psn % 1000 + rank * 10u);

		CHECK_INT(give(rank, psn, value), rank + 1 == r.config.ranks ? INA_REASON_COMPLETE : INA_REASON_TAKEN);
		sum += value;
	}
	CHECK_INT(r.answers, r.config.ranks);
	for (uint8_t rank = 0; rank < r.config.ranks; rank++) {
		CHECK(r.answer[rank].psn == psn);
		for (int i = 0; i < INA_WORDS; i++)
			CHECK_INT(ranks_word(&r.answer[rank], (unsigned)i), sum + i * r.config.ranks);
	}
}

/* ---- the collectives ---- */

static int32_t expected(uint8_t coll, unsigned ranks, uint8_t root, const int32_t value[INA_RANKS_MAX])
{
	int32_t sum = 0;

	if (coll == INA_BROADCAST || coll == INA_ALL_GATHER)
		return value[root];
	for (unsigned i = 0; i < ranks; i++)
		sum += value[i];
	return sum;
}

static void one_packet(uint8_t coll, uint8_t root, uint32_t psn, struct sr_rng *rng)
{
	unsigned ranks = r.config.ranks, start = (unsigned)sr_rng_below(rng, ranks);
	int32_t value[INA_RANKS_MAX], word[INA_WORDS];

	for (unsigned i = 0; i < ranks; i++)
		value[i] = (int32_t)sr_rng_below(rng, 1u << 25) - (1 << 24);
	for (unsigned n = 0; n < ranks; n++) {
		uint8_t rank = (uint8_t)((start + n) % ranks);
		struct ina_frame f = ranks_frame(&r, coll, root, rank, psn);

		for (int i = 0; i < INA_WORDS; i++)
			word[i] = value[rank] - i;
		if (ina_coll_brings(coll, root, rank))
			ranks_words(&f, word);
		CHECK_INT(ranks_send(&r, &f), n + 1 == ranks ? INA_REASON_COMPLETE : INA_REASON_TAKEN);
	}
	CHECK_INT(r.answers, ranks);
	for (uint8_t rank = 0; rank < ranks; rank++) {
		const struct ina_frame *a = &r.answer[rank];
		bool sum = coll != INA_BROADCAST && coll != INA_ALL_GATHER;

		CHECK_INT(a->words != NULL, ina_coll_gets(coll, root, rank));
		CHECK(a->coll == coll && a->root == root && a->psn == psn);
		for (int i = 0; a->words && i < INA_WORDS; i++)
			CHECK_INT(ranks_word(a, (unsigned)i), expected(coll, ranks, root, value) - i * (sum ? (int)ranks : 1));
	}
}

static void collective(uint8_t coll)
{
	struct sr_rng rng = { coll };

	for (int extended = 0; extended < 2; extended++)
		for (unsigned ranks = 2; ranks <= INA_RANKS_MAX; ranks++) {
			ranks_open(&r, extended, ranks, 8, 0);
			for (uint32_t psn = 0; psn < 50; psn++)
				one_packet(coll, (uint8_t)sr_rng_below(&rng, ranks), psn, &rng);
		}
}

static void all_reduce(void)
{
	collective(INA_ALL_REDUCE);
}

static void reduce(void)
{
	collective(INA_REDUCE);
}

static void broadcast(void)
{
	collective(INA_BROADCAST);
}

static void reduce_scatter(void)
{
	collective(INA_REDUCE_SCATTER);
}

static void all_gather(void)
{
	collective(INA_ALL_GATHER);
}

/* A broadcast hands words through that are no numbers: every bit pattern, and the exponent, stays. */
static void broadcast_bits(void)
{
	struct ina_frame f;
	int32_t word[INA_WORDS];

	ranks_open(&r, true, 3, 8, 0);
	for (int i = 0; i < INA_WORDS; i++)
		word[i] = i % 2 ? INT32_MIN + i : -i;
	f = ranks_frame(&r, INA_BROADCAST, 1, 1, 0);
	f.exponent = 200;
	ranks_words(&f, word);
	ranks_send(&r, &f);
	f = ranks_frame(&r, INA_BROADCAST, 1, 0, 0);
	ranks_send(&r, &f);
	f = ranks_frame(&r, INA_BROADCAST, 1, 2, 0);
	CHECK_INT(ranks_send(&r, &f), INA_REASON_COMPLETE);
	for (unsigned i = 0; i < INA_WORDS; i++)
		CHECK_INT(ranks_word(&r.answer[2], i), word[i]);
	CHECK_INT(r.answer[2].exponent, 200);
	CHECK_INT(r.answer[2].flags, INA_F_ANSWER);
}

/* ---- what NetCCL gets wrong ---- */

/* A delayed duplicate resets a live slot, and a rank hangs: here it changes nothing. */
static void stale_duplicate(void)
{
	for (int extended = 0; extended < 2; extended++)
		for (uint32_t rounds = 1; rounds < 6; rounds++) {
			uint32_t psn = 3 + 8 * rounds;

			ranks_open(&r, extended, 3, 8, 0);
			for (uint32_t p = 0; p < psn; p++)
				whole(p);
			CHECK_INT(give(0, psn, 100), INA_REASON_TAKEN);
			CHECK_INT(give(1, psn, 20), INA_REASON_TAKEN);
			for (uint32_t old = 3; old < psn; old += 8) /* every earlier psn of the same slot */
				for (uint8_t rank = 0; rank < 3; rank++)
					CHECK_INT(give(rank, old, 9999), INA_REASON_STALE);
			CHECK_INT(give(2, psn, 3), INA_REASON_COMPLETE);
			CHECK_INT(ranks_word(&r.answer[0], 0), 123);
		}
}

/* Also one that lies in a done slot: nobody has use for it any more, and it opens nothing. */
static void stale_on_done(void)
{
	ranks_open(&r, true, 2, 4, 0);
	for (uint32_t p = 0; p < 8; p++)
		whole(p);
	CHECK_INT(give(0, 1, 5), INA_REASON_STALE);
	CHECK_INT(give(1, 5, 5), INA_REASON_AGAIN);
	CHECK_INT(ranks_word(&r.answer[1], 0), 20);
}

/* A rank the group has not, or a rank's number from another's address. */
static void stray_rank(void)
{
	struct ina_frame f;
	int32_t word[INA_WORDS] = { 1000 };

	for (int extended = 0; extended < 2; extended++) {
		ranks_open(&r, extended, 3, 8, 0);
		give(0, 0, 1);
		give(1, 0, 2);
		for (uint8_t rank = 3; rank < INA_RANKS_MAX; rank++) {
			f = ranks_frame(&r, INA_ALL_REDUCE, 0, rank, 0);
			ranks_words(&f, word);
			CHECK_INT(ranks_send(&r, &f), INA_REASON_NO_RANK);
		}
		f = ranks_frame(&r, INA_ALL_REDUCE, 3, 2, 0);
		ranks_words(&f, word);
		CHECK_INT(ranks_send(&r, &f), INA_REASON_NO_RANK); /* root */
		f = ranks_frame(&r, INA_ALL_REDUCE, 0, 2, 0);
		f.worker = 1;
		ranks_words(&f, word);
		CHECK_INT(ranks_send(&r, &f), INA_REASON_NO_RANK); /* worker */
		f = ranks_frame(&r, INA_ALL_REDUCE, 0, 2, 0);
		f.src = RANK_ADDR + 1;
		ranks_words(&f, word);
		CHECK_INT(ranks_send(&r, &f), INA_REASON_STRANGER);
		f.src = 0xc0a80001;
		CHECK_INT(ranks_send(&r, &f), INA_REASON_STRANGER);
		CHECK_INT(r.answers, 0); /* strangers hear nothing: nobody can make the switch send to a third party */
		CHECK_INT(give(2, 0, 3), INA_REASON_COMPLETE);
		CHECK_INT(ranks_word(&r.answer[1], 0), 6);
	}
}

/* A foreign group's slot, or any but the psn's. */
static void foreign_slot(void)
{
	struct ina_group_config other;
	struct ina_frame f;
	int32_t word[INA_WORDS] = { 1000 };
	const char *why;

	ranks_open(&r, false, 3, 8, 0);
	other = r.config;
	other.id = 8;
	other.base = 72;
	CHECK_INT(ina_switch_install(&r.sw, &other, &why), 0);
	give(0, 0, 1);
	for (unsigned at = 0; at < RANKS_SLOTS; at++) {
		f = ranks_frame(&r, INA_ALL_REDUCE, 0, 1, 0);
		f.group = 8;
		f.agg_addr = (uint16_t)at;
		ranks_words(&f, word);
		if (at != 72)
			CHECK_INT(ranks_send(&r, &f), INA_REASON_WRONG_SLOT);
		f.group = 7;
		if (at != 64)
			CHECK_INT(ranks_send(&r, &f), INA_REASON_WRONG_SLOT);
	}
	f.group = 9;
	f.agg_addr = 64;
	CHECK_INT(ranks_send(&r, &f), INA_REASON_NO_GROUP);
	f.group = 7;
	f.dst = SWITCH_ADDR + 1;
	CHECK_INT(ranks_send(&r, &f), INA_REASON_NOT_HERE);
	give(1, 0, 2);
	CHECK_INT(give(2, 0, 3), INA_REASON_COMPLETE);
	CHECK_INT(ranks_word(&r.answer[0], 0), 6);
}

/* psn mod len jumps where psn wraps, unless len is a power of two: every such len walks over 2^32; no other is installed. */
static void wrap(void)
{
	const char *why;

	for (uint32_t len = 2; len <= 512; len *= 2) {
		ranks_open(&r, len & 4, 2, len, 0u - 3 * len + 1);
		for (uint32_t n = 0; n < 6 * len; n++)
			whole(r.config.first_psn + n);
		/* Stale stays stale across the wrap. */
		CHECK_INT(give(0, r.config.first_psn + 4 * len, 1), INA_REASON_STALE);
		CHECK_INT(give(0, r.config.first_psn + len, 1), INA_REASON_STALE);
	}
	for (uint32_t len = 0; len < 70; len++) {
		struct ina_group_config c = r.config;

		c.epoch++;
		c.len = len;
		if (len & (len - 1) || len < 2)
			CHECK_INT(ina_switch_install(&r.sw, &c, &why), -EINVAL);
	}
}

/* One loss makes all ranks send again: who asks learns whose packet is missing, and only that one sends. */
static void one_loss(void)
{
	struct ina_frame f;

	ranks_open(&r, true, 4, 8, 0);
	give(0, 0, 1);
	give(1, 0, 2);
	give(3, 0, 4); /* rank 2's was lost */
	for (uint8_t rank = 0; rank < 4; rank++) {
		f = ranks_frame(&r, INA_ALL_REDUCE, 0, rank, 0);
		f.flags = INA_F_PROBE;
		CHECK_INT(ranks_send(&r, &f), rank == 2 ? INA_REASON_NEED : INA_REASON_HELD);
		CHECK_INT(r.answers, 1);
		CHECK_INT(r.answer[rank].flags, INA_F_ANSWER | (rank == 2 ? INA_F_NEED : INA_F_HELD));
		CHECK(!r.answer[rank].words && r.answer[rank].psn == 0);
	}
	CHECK_INT(give(2, 0, 3), INA_REASON_COMPLETE);
	/* An answer was lost: a probe brings it again, to the one. */
	f = ranks_frame(&r, INA_ALL_REDUCE, 0, 1, 0);
	f.flags = INA_F_PROBE;
	CHECK_INT(ranks_send(&r, &f), INA_REASON_AGAIN);
	CHECK_INT(r.answers, 1);
	CHECK_INT(ranks_word(&r.answer[1], 0), 10);
	/* A probe for what nobody has sent changes nothing. */
	f = ranks_frame(&r, INA_ALL_REDUCE, 0, 1, 8);
	f.flags = INA_F_PROBE;
	CHECK_INT(ranks_send(&r, &f), INA_REASON_NEED);
	CHECK_INT(give(1, 0, 3), INA_REASON_AGAIN);
	f = ranks_frame(&r, INA_BROADCAST, 0, 1, 1);
	f.flags = INA_F_PROBE;
	CHECK_INT(ranks_send(&r, &f), INA_REASON_NEED);
	whole(1);
}

/* A contribution that comes twice is added once, in either kind, before and after the sum is whole. */
static void duplicate(void)
{
	for (int extended = 0; extended < 2; extended++) {
		ranks_open(&r, extended, 3, 8, 0);
		give(0, 0, 1);
		for (int n = 0; n < 5; n++) {
			CHECK_INT(give(0, 0, 1), INA_REASON_HELD);
			CHECK_INT(r.answers, extended);
		}
		give(1, 0, 2);
		CHECK_INT(give(2, 0, 3), INA_REASON_COMPLETE);
		for (uint8_t rank = 0; rank < 3; rank++) {
			CHECK_INT(give(rank, 0, 77), INA_REASON_AGAIN);
			CHECK_INT(r.answers, 1);
			CHECK_INT(ranks_word(&r.answer[rank], 5), 6 + 15);
		}
	}
}

/* The two pools: a rank that lost its answers gets them while all others are as far ahead as a window lets them. */
static void two_pools(void)
{
	for (uint32_t len = 2; len <= 64; len *= 2) {
		uint32_t half = len / 2;

		ranks_open(&r, len & 4, 3, len, 0);
		for (uint32_t first = 0; first < 10 * len; first += half) {
			for (uint32_t p = first; p < first + half; p++)
				CHECK_INT(give(0, p, (int32_t)p), first ? INA_REASON_COMPLETE : INA_REASON_TAKEN);
			for (uint32_t p = first; p < first + half && !first; p++) {
				CHECK_INT(give(1, p, 10), INA_REASON_TAKEN);
				CHECK_INT(give(2, p, 100), INA_REASON_COMPLETE);
			}
			/* Rank 0 got none of it; the others did, and fill their windows. */
			for (uint32_t p = first + half; p < first + len; p++) {
				CHECK_INT(give(1, p, 10), INA_REASON_TAKEN);
				CHECK_INT(give(2, p, 100), INA_REASON_TAKEN);
			}
			for (uint32_t p = first; p < first + half; p++) {
				CHECK_INT(give(0, p, 0), INA_REASON_AGAIN);
				CHECK_INT(ranks_word(&r.answer[0], 0), (int32_t)p + 110);
			}
		}
	}
}

/* Further ahead than a window may be: a live slot is nobody's to take. */
static void early(void)
{
	ranks_open(&r, false, 2, 8, 0);
	give(0, 0, 1);
	CHECK_INT(give(1, 8, 1), INA_REASON_EARLY); /* psn 0 is not done */
	CHECK_INT(give(1, 16, 1), INA_REASON_EARLY);
	CHECK_INT(give(1, 0x80000000u, 1), INA_REASON_STALE);
	CHECK_INT(give(1, 0x7ffffff8u, 1), INA_REASON_EARLY);
	CHECK_INT(give(1, 0, 2), INA_REASON_COMPLETE);
	CHECK_INT(ranks_word(&r.answer[0], 0), 3);
	CHECK_INT(give(1, 16, 1), INA_REASON_EARLY); /* done, and still only 8 may follow */
	CHECK_INT(give(1, 8, 1), INA_REASON_TAKEN);
	/* A slot that has not been used waits for its first psn, not for any. */
	CHECK_INT(give(0, 9, 1), INA_REASON_EARLY);
	CHECK_INT(give(0, 1, 1), INA_REASON_TAKEN);
}

/* ---- sums ---- */

/* The seed's factor lets sums pass 2^31 - 1: they stay at the end, and say so; what is exact does not. */
static void saturate(void)
{
	static const struct {
		int32_t a, b, sum;
		bool over;
	} is[] = {
		{ INT32_MAX - 63, 0, INT32_MAX - 63, false }, { INT32_MAX, 1, INT32_MAX, true },
		{ INT32_MAX, INT32_MAX, INT32_MAX, true },    { INT32_MIN, -1, INT32_MIN, true },
		{ INT32_MIN, INT32_MIN, INT32_MIN, true },    { INT32_MIN, INT32_MAX, -1, false },
		{ 0x40000000, 0x3fffffff, INT32_MAX, false }, { 0x40000000, 0x40000000, INT32_MAX, true },
		{ -0x40000000, -0x40000000, INT32_MIN, false },
	};
	int32_t word[INA_WORDS];

	for (unsigned n = 0; n < sizeof(is) / sizeof(is[0]); n++)
		for (unsigned at = 0; at < INA_WORDS; at += 21)
			for (int extended = 0; extended < 2; extended++) {
				ranks_open(&r, extended, 2, 8, 0);
				for (uint8_t rank = 0; rank < 2; rank++) {
					struct ina_frame f = ranks_frame(&r, INA_REDUCE, 1, rank, 0);

					memset(word, 0, sizeof(word));
					word[at] = rank ? is[n].b : is[n].a;
					ranks_words(&f, word);
					ranks_send(&r, &f);
				}
				for (unsigned i = 0; i < INA_WORDS; i++)
					CHECK_INT(ranks_word(&r.answer[1], i), i == at ? is[n].sum : 0);
				CHECK_INT(!!(r.answer[1].flags & INA_F_OVERFLOW), extended && is[n].over);
				CHECK_INT(!!(r.slot[64].flags & INA_F_OVERFLOW), is[n].over); /* the switch's counters know */
				CHECK(!r.answer[0].words && !(r.answer[0].flags & INA_F_OVERFLOW));
			}
}

/* What a rank says of its own block stands in the sum: it was clipped, or held something that is no number. */
static void flags_stay(void)
{
	int32_t word[INA_WORDS] = { 1 };

	for (uint8_t flag = INA_F_OVERFLOW; flag <= INA_F_NONFINITE; flag <<= 1)
		for (uint8_t who = 0; who < 3; who++) {
			ranks_open(&r, true, 3, 8, 0);
			for (uint8_t rank = 0; rank < 3; rank++) {
				struct ina_frame f = ranks_frame(&r, INA_ALL_REDUCE, 0, rank, 0);

				ranks_words(&f, word);
				f.flags = rank == who ? flag : 0;
				ranks_send(&r, &f);
			}
			CHECK_INT(r.answer[1].flags, INA_F_ANSWER | flag);
			/* The next psn of the slot begins clean. */
			for (uint32_t p = 1; p <= 8; p++)
				whole(p);
			CHECK_INT(r.answer[1].flags, INA_F_ANSWER);
		}
}

static void give_block(uint8_t rank, uint32_t psn, uint8_t exponent, const int32_t *word)
{
	struct ina_frame f = ranks_frame(&r, INA_ALL_REDUCE, 0, rank, psn);

	f.exponent = exponent;
	ranks_words(&f, word);
	ranks_send(&r, &f);
}

/* Blocks of different exponents: the smaller one is shifted, halves upwards. */
static void align(void)
{
	static const int32_t big[5] = { 100, -100, 0, INT32_MAX, INT32_MIN }, small[5] = { 5, -5, 7, 4, -4 };
	static const int32_t by_2[5] = { 101, -101, 2, INT32_MAX, INT32_MIN };
	int32_t a[INA_WORDS] = { 0 }, b[INA_WORDS] = { 0 };

	memcpy(a, big, sizeof(big));
	memcpy(b, small, sizeof(small));
	for (int turned = 0; turned < 2; turned++) {
		ranks_open(&r, true, 2, 8, 0);
		give_block(turned ? 1 : 0, 0, 150, a);
		give_block(turned ? 0 : 1, 0, 148, b);
		CHECK_INT(r.answer[0].exponent, 150);
		CHECK_INT(r.answer[0].flags, INA_F_ANSWER | INA_F_OVERFLOW);
		for (unsigned i = 0; i < 5; i++)
			CHECK_INT(ranks_word(&r.answer[0], i), by_2[i]);
		/* 31 and more: nothing is left, and nothing undefined happens. */
		for (unsigned d = 31; d < 256 - 1; d++) {
			ranks_open(&r, true, 2, 8, 0);
			give_block(turned ? 1 : 0, 0, (uint8_t)d, a);
			give_block(turned ? 0 : 1, 0, 0, b);
			for (unsigned i = 0; i < 5; i++)
				CHECK_INT(ranks_word(&r.answer[1], i), a[i]);
		}
	}
}

/* Shifts by hand: -5/4 = -1.25, -6/4 = -1.5 goes up, 6/4 = 1.5 goes up. */
static void shift(void)
{
	CHECK_INT(ina_word_shift(-5, 2), -1);
	CHECK_INT(ina_word_shift(-6, 2), -1);
	CHECK_INT(ina_word_shift(-7, 2), -2);
	CHECK_INT(ina_word_shift(6, 2), 2);
	CHECK_INT(ina_word_shift(INT32_MIN, 31), -1);
	CHECK_INT(ina_word_shift(INT32_MAX, 31), 1);
	CHECK_INT(ina_word_shift(INT32_MIN, 32), 0);
	CHECK_INT(ina_word_shift(INT32_MIN, 255), 0);
	CHECK_INT(ina_word_shift(INT32_MIN, 0), INT32_MIN);
	for (int32_t m = -70000; m < 70000; m += 13)
		for (unsigned s = 1; s < 20; s++)
			CHECK_INT(ina_word_shift(m, s), (int32_t)floor(ldexp(m, -(int)s) + 0.5));
}

/* Against float64: half a unit of the last exponent for each block that was shifted, and for the sum each time it was. */
static void exponents(void)
{
	struct sr_rng rng = { 11 };

	for (int n = 0; n < 3000; n++) {
		unsigned ranks = 2 + (unsigned)sr_rng_below(&rng, 31);
		double sum[INA_WORDS] = { 0 };
		uint8_t most = 0;

		ranks_open(&r, true, ranks, 8, 0);
		for (uint8_t rank = 0; rank < ranks; rank++) {
			uint8_t exponent = (uint8_t)(100 + sr_rng_below(&rng, 12));
			int32_t word[INA_WORDS];

			for (unsigned i = 0; i < INA_WORDS; i++) {
				word[i] = (int32_t)sr_rng_below(&rng, 1u << 26) - (1 << 25);
				sum[i] += ldexp(word[i], exponent);
			}
			most = exponent > most ? exponent : most;
			give_block(rank, 0, exponent, word);
		}
		CHECK_INT(r.answer[0].exponent, most);
		CHECK_INT(r.answer[0].flags, INA_F_ANSWER); /* 32 * 2^25 fits */
		for (unsigned i = 0; i < INA_WORDS; i++)
			CHECK(fabs(ldexp(ranks_word(&r.answer[0], i), most) - sum[i]) <= ldexp(0.5 * ranks, most));
	}
}

/* A contribution that met congestion marks the answer, for all, and only this one. */
static void marked(void)
{
	struct ina_frame f;
	int32_t word[INA_WORDS] = { 0 };

	ranks_open(&r, false, 3, 8, 0);
	give(0, 0, 1);
	f = ranks_frame(&r, INA_ALL_REDUCE, 0, 1, 0);
	ranks_words(&f, word);
	f.ecn = INA_CE;
	ranks_send(&r, &f);
	CHECK_INT(give(2, 0, 1), INA_REASON_COMPLETE);
	for (int i = 0; i < 3; i++)
		CHECK_INT(r.answer[i].ecn, INA_CE);
	for (uint32_t p = 1; p <= 8; p++) {
		whole(p);
		CHECK_INT(r.answer[2].ecn, INA_ECT1);
	}
}

/* Another collective, root, kind of frame, or words where none belong. */
static void mismatch(void)
{
	struct ina_frame f;
	int32_t word[INA_WORDS] = { 50 };

	for (int extended = 0; extended < 2; extended++) {
		ranks_open(&r, extended, 3, 8, 0);
		give(0, 0, 1);
		f = ranks_frame(&r, INA_REDUCE, 0, 1, 0);
		ranks_words(&f, word);
		CHECK_INT(ranks_send(&r, &f), INA_REASON_OTHER);
		f = ranks_frame(&r, INA_ALL_REDUCE, 1, 1, 0);
		ranks_words(&f, word);
		CHECK_INT(ranks_send(&r, &f), INA_REASON_OTHER);
		f = ranks_frame(&r, INA_ALL_REDUCE, 0, 1, 0);
		CHECK_INT(ranks_send(&r, &f), INA_REASON_WORDS);
		f = ranks_frame(&r, INA_BROADCAST, 0, 1, 1);
		ranks_words(&f, word);
		CHECK_INT(ranks_send(&r, &f), INA_REASON_WORDS);
		f = ranks_frame(&r, INA_ALL_GATHER, 1, 1, 1);
		CHECK_INT(ranks_send(&r, &f), INA_REASON_WORDS);
		f = ranks_frame(&r, INA_ALL_REDUCE, 0, 1, 0);
		ranks_words(&f, word);
		f.extended = !extended;
		CHECK_INT(ranks_send(&r, &f), INA_REASON_KIND);
		if (extended) {
			f.extended = true;
			f.flags = INA_F_ANSWER;
			CHECK_INT(ranks_send(&r, &f), INA_REASON_ANSWER);
		}
		give(1, 0, 2);
		CHECK_INT(give(2, 0, 3), INA_REASON_COMPLETE);
		CHECK_INT(ranks_word(&r.answer[0], 0), 6);
		f = ranks_frame(&r, INA_REDUCE, 0, 1, 0); /* and once it is done */
		ranks_words(&f, word);
		f.epoch = r.config.extended ? r.config.epoch : 0;
		CHECK_INT(ranks_send(&r, &f), INA_REASON_OTHER);
	}
}

/* ---- lives ---- */

/* A past life's packets are told that it is over; those of one that the switch does not know yet wait. */
static void epoch(void)
{
	struct ina_frame f;
	int32_t word[INA_WORDS] = { 7 };
	struct ina_group_config c;
	const char *why;

	ranks_open(&r, true, 2, 8, 0);
	give(0, 0, 1);
	f = ranks_frame(&r, INA_ALL_REDUCE, 0, 1, 0);
	ranks_words(&f, word);
	f.epoch = 4;
	CHECK_INT(ranks_send(&r, &f), INA_REASON_OLD_EPOCH);
	CHECK_INT(r.answer[1].flags, INA_F_ANSWER | INA_F_ABORT);
	CHECK_INT(r.answer[1].epoch, 4);
	f.epoch = 6;
	CHECK_INT(ranks_send(&r, &f), INA_REASON_NEW_EPOCH);
	CHECK_INT(r.answers, 0);
	CHECK_INT(give(1, 0, 2), INA_REASON_COMPLETE);
	CHECK_INT(ranks_word(&r.answer[0], 0), 3);
	/* The next life begins with nothing of the last one. */
	give(0, 1, 1000);
	c = r.config;
	CHECK_INT(ina_switch_install(&r.sw, &c, &why), -ESTALE);
	c.epoch = 4;
	CHECK_INT(ina_switch_install(&r.sw, &c, &why), -ESTALE);
	c.epoch = 0x80000004;
	CHECK_INT(ina_switch_install(&r.sw, &c, &why), 0);
	c.epoch = 3; /* epochs wrap as psns do */
	CHECK_INT(ina_switch_install(&r.sw, &c, &why), 0);
	CHECK_INT(give(1, 1, 5), INA_REASON_NEW_EPOCH); /* 5 is ahead of 3 */
	r.config = c;
	whole(0);
	whole(1);
	CHECK_INT(ina_switch_remove(&r.sw, 7, 5), -ESTALE);
	CHECK_INT(ina_switch_remove(&r.sw, 7, 3), 0);
	CHECK_INT(ina_switch_remove(&r.sw, 7, 3), -ENOENT);
	CHECK_INT(give(0, 2, 1), INA_REASON_NO_GROUP);
	CHECK_INT(ina_switch_install(&r.sw, &c, &why), -ESTALE); /* also after it was removed */
}

/* A packet of the last life comes late: the answer names that life, so that nobody takes it for the end of this one. */
static void straggler(void)
{
	struct ina_group_config c;
	struct ina_frame late;
	int32_t word[INA_WORDS] = { 7 };
	const char *why;

	ranks_open(&r, true, 2, 8, 0);
	late = ranks_frame(&r, INA_ALL_REDUCE, 0, 1, 0);
	ranks_words(&late, word);
	c = r.config;
	c.epoch = 6;
	CHECK_INT(ina_switch_install(&r.sw, &c, &why), 0);
	r.config = c;
	give(0, 0, 1);
	CHECK_INT(ranks_send(&r, &late), INA_REASON_OLD_EPOCH);
	CHECK_INT(r.answer[1].flags, INA_F_ANSWER | INA_F_ABORT);
	CHECK_INT(r.answer[1].epoch, 5);
	CHECK_INT(give(1, 0, 2), INA_REASON_COMPLETE);
}

/*
 * The frame does not say which process of a rank speaks. One that starts again at the first psn of an epoch in which its rank has sent gets the
 * old sums (docs/ina.md has the rule that forbids it). When it ends that epoch, everybody hears it, and in the next one only new words count.
 */
static void restarted_rank(void)
{
	struct ina_frame f;
	const char *why;

	ranks_open(&r, true, 2, 8, 0);
	whole(0);
	CHECK_INT(give(1, 0, 50), INA_REASON_AGAIN);
	CHECK_INT(ranks_word(&r.answer[1], 0), 10); /* 0 + 10, not 50 + anything */
	f = ranks_frame(&r, INA_ALL_REDUCE, 0, 1, 0);
	f.flags = INA_F_ABORT;
	CHECK_INT(ranks_send(&r, &f), INA_REASON_ABORT);
	CHECK_INT(r.answers, 2);
	CHECK_INT(give(1, 0, 50), INA_REASON_OVER);
	CHECK(!r.answer[1].words);
	r.config.epoch++;
	CHECK_INT(ina_switch_install(&r.sw, &r.config, &why), 0);
	CHECK_INT(give(1, 0, 50), INA_REASON_TAKEN);
	CHECK_INT(give(0, 0, 1), INA_REASON_COMPLETE);
	CHECK_INT(ranks_word(&r.answer[1], 0), 51);
}

/* A dead rank holds its group until the lease ends; then everybody who asks is told, and nothing is summed any more. */
static void lease(void)
{
	ranks_open(&r, true, 3, 8, 0);
	give(0, 0, 1);
	r.now = 999999;
	CHECK_INT(give(1, 0, 1), INA_REASON_TAKEN);
	CHECK_INT(ina_switch_renew(&r.sw, 7, 5, 2000000), 0);
	r.now = 1999999;
	CHECK_INT(give(1, 0, 1), INA_REASON_HELD);
	r.now = 2000000;
	CHECK_INT(give(1, 0, 1), INA_REASON_OVER);
	CHECK_INT(r.answer[1].flags, INA_F_ANSWER | INA_F_ABORT);
	CHECK_INT(give(2, 0, 1), INA_REASON_OVER);
	CHECK_INT(ina_switch_renew(&r.sw, 7, 5, 3000000), -ETIME);
	CHECK_INT(ina_switch_renew(&r.sw, 7, 4, 3000000), -ESTALE);
	CHECK_INT(ina_switch_renew(&r.sw, 9, 5, 3000000), -ENOENT);
	/* The old frame has no word for it: silence. */
	ranks_open(&r, false, 3, 8, 0);
	r.now = 1000000;
	CHECK_INT(give(1, 0, 1), INA_REASON_OVER);
	CHECK_INT(r.answers, 0);
}

/* One rank ends the group: all are told at once, later ones when they ask. */
static void abort_all(void)
{
	struct ina_frame f;
	struct ina_group_config c;
	const char *why;

	ranks_open(&r, true, 4, 8, 0);
	give(0, 0, 1);
	f = ranks_frame(&r, INA_ALL_REDUCE, 0, 2, 0);
	f.flags = INA_F_ABORT;
	f.src = RANK_ADDR + 9;
	CHECK_INT(ranks_send(&r, &f), INA_REASON_STRANGER);
	f.src = RANK_ADDR + 2;
	f.epoch = 4;
	CHECK_INT(ranks_send(&r, &f), INA_REASON_OLD_EPOCH);
	f.epoch = 5;
	CHECK_INT(ranks_send(&r, &f), INA_REASON_ABORT);
	CHECK_INT(r.answers, 4);
	for (int i = 0; i < 4; i++)
		CHECK_INT(r.answer[i].flags, INA_F_ANSWER | INA_F_ABORT);
	CHECK_INT(give(1, 0, 1), INA_REASON_OVER);
	CHECK_INT(ranks_send(&r, &f), INA_REASON_OVER);
	CHECK_INT(r.answers, 1);
	c = r.config;
	c.epoch = 6;
	CHECK_INT(ina_switch_install(&r.sw, &c, &why), 0);
	r.config = c;
	whole(0);
}

/* ---- the controller's words ---- */

static int install(struct ina_group_config c)
{
	const char *why = "unset";
	int err = ina_switch_install(&r.sw, &c, &why);

	CHECK(!err || (why && strlen(why) > 20));
	return err;
}

static void installed(void)
{
	struct ina_group_config c;

	ranks_open(&r, true, 2, 16, 0); /* 64 to 79 */
	c = r.config;
	c.id = 0;
	CHECK_INT(install(c), -EINVAL);
	c.id = 8;
	CHECK_INT(install(c), -EEXIST);
	c.base = 79;
	CHECK_INT(install(c), -EEXIST);
	c.base = 49;
	CHECK_INT(install(c), -EEXIST);
	c.base = 48;
	CHECK_INT(install(c), 0);
	c.id = 9;
	c.base = 80;
	c.ranks = 1;
	CHECK_INT(install(c), -EINVAL);
	c.ranks = 33;
	CHECK_INT(install(c), -EINVAL);
	c.ranks = 32;
	c.workers = 0;
	CHECK_INT(install(c), -EINVAL);
	c.workers = 3;
	CHECK_INT(install(c), -EINVAL);
	c.workers = 128;
	CHECK_INT(install(c), -EINVAL);
	c.workers = 16;
	CHECK_INT(install(c), -EINVAL); /* one slot each */
	c.workers = 8;
	c.base = RANKS_SLOTS - 15;
	CHECK_INT(install(c), -ENOSPC);
	c.base = RANKS_SLOTS - 16;
	CHECK_INT(install(c), 0);
	c.id = 10;
	c.base = 0;
	c.len = 2048;
	CHECK_INT(install(c), -ENOSPC);
	/* A new life may lie where the last one was. */
	c = r.config;
	c.epoch++;
	c.base = 70;
	CHECK_INT(install(c), -0);
	for (int i = 0; i < INA_REASONS; i++)
		CHECK(strcmp(ina_reason_name((enum ina_reason)i, NULL), "?"));
}

/* Each worker of a rank has a part of the range, and psns of its own. */
static void workers(void)
{
	struct ina_group_config c;
	struct ina_frame f;
	const char *why;
	int32_t word[INA_WORDS] = { 0 };

	ranks_open(&r, true, 2, 8, 0);
	c = r.config;
	c.epoch++;
	c.len = 64;
	c.workers = 4;
	CHECK_INT(ina_switch_install(&r.sw, &c, &why), 0);
	r.config = c;
	for (uint32_t psn = 0; psn < 100; psn++)
		for (uint8_t w = 0; w < 4; w++)
			for (uint8_t rank = 0; rank < 2; rank++) {
				f = ranks_frame(&r, INA_ALL_REDUCE, 0, rank, psn);
				f.worker = w;
				word[0] = (int32_t)psn * 10 + w;
				ranks_words(&f, word);
				f.agg_addr = (uint16_t)(64 + ((w + 1) % 4) * 16 + psn % 16);
				CHECK_INT(ranks_send(&r, &f), INA_REASON_WRONG_SLOT);
				f.agg_addr = (uint16_t)(64 + w * 16 + psn % 16);
				CHECK_INT(ranks_send(&r, &f), rank ? INA_REASON_COMPLETE : INA_REASON_TAKEN);
				if (rank) {
					CHECK_INT(ranks_word(&r.answer[0], 0), 2 * word[0]);
					CHECK_INT(r.answer[0].worker, w);
				}
			}
}

/* ---- at random ---- */

#define PSNS 400u

/* What each rank has sent and has an answer to, and what the switch must make of any packet. */
struct model {
	uint32_t seen[PSNS + 64];
	int64_t sum[PSNS + 64];
	bool answered[INA_RANKS_MAX][PSNS + 64];
	uint32_t left[INA_RANKS_MAX]; /* first without an answer */
};

static enum ina_reason predict(const struct model *m, uint8_t rank, uint32_t psn, uint32_t len)
{
	uint32_t all = UINT32_MAX >> (32 - r.config.ranks);

	for (uint32_t later = psn + len; later < PSNS; later += len)
		if (m->seen[later])
			return INA_REASON_STALE;
	for (uint32_t before = psn; before >= len;) {
		before -= len;
		if (m->seen[before] != all)
			return INA_REASON_EARLY;
	}
	if (m->seen[psn] == all)
		return INA_REASON_AGAIN;
	if (m->seen[psn] >> rank & 1)
		return INA_REASON_HELD;
	return (m->seen[psn] | 1u << rank) == all ? INA_REASON_COMPLETE : INA_REASON_TAKEN;
}

static void random_packet(struct model *m, struct sr_rng *rng)
{
	uint8_t rank = (uint8_t)sr_rng_below(rng, r.config.ranks);
	uint32_t len = r.config.len, left = m->left[rank], psn = left + (uint32_t)sr_rng_below(rng, len / 2);
	int32_t value = (int32_t)(psn * 3 + rank * 1000u);
	enum ina_reason expect, is;

	if (psn && sr_rng_below(rng, 3) == 0)
		psn = (uint32_t)sr_rng_below(rng, psn + 1); /* a duplicate, however late, of something sent before */
	if (psn >= PSNS)
		return;
	if (psn > left && !(m->seen[psn] >> rank & 1) && sr_rng_below(rng, 2))
		psn = left;
	value = (int32_t)(psn * 3 + rank * 1000u);
	expect = predict(m, rank, psn, len);
	is = give(rank, psn, value);
	CHECK_INT(is, expect);
	if (is == INA_REASON_TAKEN || is == INA_REASON_COMPLETE) {
		m->seen[psn] |= 1u << rank;
		m->sum[psn] += value;
	}
	for (uint8_t i = 0; i < r.config.ranks; i++) {
		if (!r.answer[i].group || !r.answer[i].words || sr_rng_below(rng, 4) == 0) /* it gets lost */
			continue;
		CHECK(r.answer[i].psn == psn);
		CHECK_INT(ranks_word(&r.answer[i], 0), m->sum[psn]);
		m->answered[i][psn] = true;
		while (m->answered[i][m->left[i]])
			m->left[i]++;
	}
}

/* Ranks that keep to their windows, losses, duplicates of any age: every verdict is what a switch with endless memory would say. */
static void random_traffic(void)
{
	static struct model m;
	struct sr_rng rng = { 5 };

	for (int n = 0; n < 60; n++) {
		unsigned ranks = 2 + (unsigned)sr_rng_below(&rng, 7), finished = 0;
		uint32_t packets = 0;

		memset(&m, 0, sizeof(m));
		ranks_open(&r, n & 1, ranks, 2u << sr_rng_below(&rng, 5), 0);
		while (finished < ranks) {
			random_packet(&m, &rng);
			finished = 0;
			for (unsigned i = 0; i < ranks; i++)
				finished += m.left[i] == PSNS;
			CHECK(++packets < 3000000);
		}
	}
}

int main(int argc, char **argv)
{
	static const struct named_test tests[] = {
		{ "all_reduce", all_reduce },
		{ "reduce", reduce },
		{ "broadcast", broadcast },
		{ "reduce_scatter", reduce_scatter },
		{ "all_gather", all_gather },
		{ "broadcast_bits", broadcast_bits },
		{ "stale_duplicate", stale_duplicate },
		{ "stale_on_done", stale_on_done },
		{ "stray_rank", stray_rank },
		{ "foreign_slot", foreign_slot },
		{ "wrap", wrap },
		{ "one_loss", one_loss },
		{ "duplicate", duplicate },
		{ "two_pools", two_pools },
		{ "early", early },
		{ "saturate", saturate },
		{ "flags_stay", flags_stay },
		{ "align", align },
		{ "shift", shift },
		{ "exponents", exponents },
		{ "marked", marked },
		{ "mismatch", mismatch },
		{ "epoch", epoch },
		{ "straggler", straggler },
		{ "restarted_rank", restarted_rank },
		{ "lease", lease },
		{ "abort_all", abort_all },
		{ "installed", installed },
		{ "workers", workers },
		{ "random_traffic", random_traffic },
	};

	return NAMED_TESTS_RUN(tests, argc, argv);
}
