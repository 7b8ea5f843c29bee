/* SPDX-License-Identifier: BSD-3-Clause */
/* test_slot.c - the slot core: each collective, and each thing that NetCCL's switch gets wrong */
#include "base/rng.h"
#include "ina/switch/enter.h"
#include "tests/ina/switch/named.h"
#include "tests/ina/switch/ranks.h"

#include <errno.h>
#include <math.h>

static struct ranks r;

/* ---- the collectives ---- */

static int32_t compute_expected(uint8_t coll, unsigned ranks, uint8_t root,
				const int32_t value[INA_RANKS_MAX])
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
		CHECK_INT(ranks_send(&r, &f),
			  n + 1 == ranks ? INA_REASON_COMPLETE : INA_REASON_TAKEN);
	}
	CHECK_INT(r.answers, ranks);
	for (uint8_t rank = 0; rank < ranks; rank++) {
		const struct ina_frame *a = &r.answer[rank];
		bool sum = coll != INA_BROADCAST && coll != INA_ALL_GATHER;

		CHECK_INT(a->words != NULL, ina_coll_gets(coll, root, rank));
		CHECK(a->coll == coll && a->root == root && a->psn == psn);
		for (int i = 0; a->words && i < INA_WORDS; i++)
			CHECK_INT(ranks_word(a, (unsigned)i),
				  compute_expected(coll, ranks, root, value) -
					  i * (sum ? (int)ranks : 1));
	}
}

static void check_collective(uint8_t coll)
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
	check_collective(INA_ALL_REDUCE);
}

static void reduce_is_exact(void)
{
	check_collective(INA_REDUCE);
}

static void broadcast_is_exact(void)
{
	check_collective(INA_BROADCAST);
}

static void reduce_scatter(void)
{
	check_collective(INA_REDUCE_SCATTER);
}

static void all_gather(void)
{
	check_collective(INA_ALL_GATHER);
}

/* A broadcast hands words through that are no numbers: every bit pattern, and the exponent,
 * stays. */
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
				ranks_whole(&r, p);
			CHECK_INT(ranks_give(&r, 0, psn, 100), INA_REASON_TAKEN);
			CHECK_INT(ranks_give(&r, 1, psn, 20), INA_REASON_TAKEN);
			for (uint32_t old = 3; old < psn;
			     old += 8) /* every earlier psn of the same slot */
				for (uint8_t rank = 0; rank < 3; rank++)
					CHECK_INT(ranks_give(&r, rank, old, 9999),
						  INA_REASON_STALE);
			CHECK_INT(ranks_give(&r, 2, psn, 3), INA_REASON_COMPLETE);
			CHECK_INT(ranks_word(&r.answer[0], 0), 123);
		}
}

/* Also one that lies in a done slot: nobody has use for it any more, and it opens nothing. */
static void stale_on_done(void)
{
	ranks_open(&r, true, 2, 4, 0);
	for (uint32_t p = 0; p < 8; p++)
		ranks_whole(&r, p);
	CHECK_INT(ranks_give(&r, 0, 1, 5), INA_REASON_STALE);
	CHECK_INT(ranks_give(&r, 1, 5, 5), INA_REASON_AGAIN);
	CHECK_INT(ranks_word(&r.answer[1], 0), 20);
}

/* A rank the group has not, or a rank's number from another's address. */
static void stray_rank(void)
{
	struct ina_frame f;
	int32_t word[INA_WORDS] = { 1000 };

	for (int extended = 0; extended < 2; extended++) {
		ranks_open(&r, extended, 3, 8, 0);
		ranks_give(&r, 0, 0, 1);
		ranks_give(&r, 1, 0, 2);
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
		CHECK_INT(ranks_send(&r, &f), INA_REASON_WRONG_ADDRESS);
		f.src = 0xc0a80001;
		CHECK_INT(ranks_send(&r, &f), INA_REASON_WRONG_ADDRESS);
		CHECK_INT(r.answers,
			  /* foreign senders receive nothing: nobody can make the switch send
			   * to a third party */
			  0);
		CHECK_INT(ranks_give(&r, 2, 0, 3), INA_REASON_COMPLETE);
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
	ranks_give(&r, 0, 0, 1);
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
	ranks_give(&r, 1, 0, 2);
	CHECK_INT(ranks_give(&r, 2, 0, 3), INA_REASON_COMPLETE);
	CHECK_INT(ranks_word(&r.answer[0], 0), 6);
}

/* psn mod len jumps where psn wraps, unless len is a power of two: every such len walks over 2^32;
 * no other is installed. */
static void psn_wraps(void)
{
	const char *why;

	for (uint32_t len = 2; len <= 512; len *= 2) {
		ranks_open(&r, len & 4, 2, len, 0u - 3 * len + 1);
		for (uint32_t n = 0; n < 6 * len; n++)
			ranks_whole(&r, r.config.first_psn + n);
		/* Stale stays stale across the wrap. */
		CHECK_INT(ranks_give(&r, 0, r.config.first_psn + 4 * len, 1), INA_REASON_STALE);
		CHECK_INT(ranks_give(&r, 0, r.config.first_psn + len, 1), INA_REASON_STALE);
	}
	for (uint32_t len = 0; len < 70; len++) {
		struct ina_group_config c = r.config;

		c.epoch++;
		c.len = len;
		if (len & (len - 1) || len < 2)
			CHECK_INT(ina_switch_install(&r.sw, &c, &why), -EINVAL);
	}
}

/* One loss makes all ranks send again: who asks learns whose packet is missing, and only that one
 * sends. */
static void one_loss(void)
{
	struct ina_frame f;

	ranks_open(&r, true, 4, 8, 0);
	ranks_give(&r, 0, 0, 1);
	ranks_give(&r, 1, 0, 2);
	ranks_give(&r, 3, 0, 4); /* rank 2's was lost */
	for (uint8_t rank = 0; rank < 4; rank++) {
		f = ranks_frame(&r, INA_ALL_REDUCE, 0, rank, 0);
		f.flags = INA_F_PROBE;
		CHECK_INT(ranks_send(&r, &f), rank == 2 ? INA_REASON_NEED : INA_REASON_HELD);
		CHECK_INT(r.answers, 1);
		CHECK_INT(r.answer[rank].flags,
			  INA_F_ANSWER | (rank == 2 ? INA_F_NEED : INA_F_HELD));
		CHECK(!r.answer[rank].words && r.answer[rank].psn == 0);
	}
	CHECK_INT(ranks_give(&r, 2, 0, 3), INA_REASON_COMPLETE);
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
	CHECK_INT(ranks_give(&r, 1, 0, 3), INA_REASON_AGAIN);
	f = ranks_frame(&r, INA_BROADCAST, 0, 1, 1);
	f.flags = INA_F_PROBE;
	CHECK_INT(ranks_send(&r, &f), INA_REASON_NEED);
	ranks_whole(&r, 1);
}

/* A contribution that comes twice is added once, in either kind, before and after the sum is
 * whole. */
static void duplicate_is_added_once(void)
{
	for (int extended = 0; extended < 2; extended++) {
		ranks_open(&r, extended, 3, 8, 0);
		ranks_give(&r, 0, 0, 1);
		for (int n = 0; n < 5; n++) {
			CHECK_INT(ranks_give(&r, 0, 0, 1), INA_REASON_HELD);
			CHECK_INT(r.answers, extended);
		}
		ranks_give(&r, 1, 0, 2);
		CHECK_INT(ranks_give(&r, 2, 0, 3), INA_REASON_COMPLETE);
		for (uint8_t rank = 0; rank < 3; rank++) {
			CHECK_INT(ranks_give(&r, rank, 0, 77), INA_REASON_AGAIN);
			CHECK_INT(r.answers, 1);
			CHECK_INT(ranks_word(&r.answer[rank], 5), 6 + 15);
		}
	}
}

/* The two pools: a rank that lost its answers gets them while all others are as far ahead as a
 * window lets them. */
static void two_pools(void)
{
	for (uint32_t len = 2; len <= 64; len *= 2) {
		uint32_t half = len / 2;

		ranks_open(&r, len & 4, 3, len, 0);
		for (uint32_t first = 0; first < 10 * len; first += half) {
			for (uint32_t p = first; p < first + half; p++)
				CHECK_INT(ranks_give(&r, 0, p, (int32_t)p),
					  first ? INA_REASON_COMPLETE : INA_REASON_TAKEN);
			for (uint32_t p = first; p < first + half && !first; p++) {
				CHECK_INT(ranks_give(&r, 1, p, 10), INA_REASON_TAKEN);
				CHECK_INT(ranks_give(&r, 2, p, 100), INA_REASON_COMPLETE);
			}
			/* Rank 0 got none of it; the others did, and fill their windows. */
			for (uint32_t p = first + half; p < first + len; p++) {
				CHECK_INT(ranks_give(&r, 1, p, 10), INA_REASON_TAKEN);
				CHECK_INT(ranks_give(&r, 2, p, 100), INA_REASON_TAKEN);
			}
			for (uint32_t p = first; p < first + half; p++) {
				CHECK_INT(ranks_give(&r, 0, p, 0), INA_REASON_AGAIN);
				CHECK_INT(ranks_word(&r.answer[0], 0), (int32_t)p + 110);
			}
		}
	}
}

/* Further ahead than a window may be: a live slot is nobody's to take. */
static void early_packets_are_refused(void)
{
	ranks_open(&r, false, 2, 8, 0);
	ranks_give(&r, 0, 0, 1);
	CHECK_INT(ranks_give(&r, 1, 8, 1), INA_REASON_EARLY); /* psn 0 is not done */
	CHECK_INT(ranks_give(&r, 1, 16, 1), INA_REASON_EARLY);
	CHECK_INT(ranks_give(&r, 1, 0x80000000u, 1), INA_REASON_STALE);
	CHECK_INT(ranks_give(&r, 1, 0x7ffffff8u, 1), INA_REASON_EARLY);
	CHECK_INT(ranks_give(&r, 1, 0, 2), INA_REASON_COMPLETE);
	CHECK_INT(ranks_word(&r.answer[0], 0), 3);
	/* done, and still only 8 may follow */
	CHECK_INT(ranks_give(&r, 1, 16, 1), INA_REASON_EARLY);
	CHECK_INT(ranks_give(&r, 1, 8, 1), INA_REASON_TAKEN);
	/* A slot that has not been used waits for its first psn, not for any. */
	CHECK_INT(ranks_give(&r, 0, 9, 1), INA_REASON_EARLY);
	CHECK_INT(ranks_give(&r, 0, 1, 1), INA_REASON_TAKEN);
}

/* ---- sums ---- */

/* The seed's factor lets sums pass 2^31 - 1: they stay at the end, and say so; what is exact does
 * not. */
static void sums_saturate(void)
{
	static const struct {
		int32_t a, b, sum;
		bool over;
	} is[] = {
		{ INT32_MAX - 63, 0, INT32_MAX - 63, false },
		{ INT32_MAX, 1, INT32_MAX, true },
		{ INT32_MAX, INT32_MAX, INT32_MAX, true },
		{ INT32_MIN, -1, INT32_MIN, true },
		{ INT32_MIN, INT32_MIN, INT32_MIN, true },
		{ INT32_MIN, INT32_MAX, -1, false },
		{ 0x40000000, 0x3fffffff, INT32_MAX, false },
		{ 0x40000000, 0x40000000, INT32_MAX, true },
		{ -0x40000000, -0x40000000, INT32_MIN, false },
	};
	int32_t word[INA_WORDS];

	for (unsigned n = 0; n < sizeof(is) / sizeof(is[0]); n++)
		for (unsigned at = 0; at < INA_WORDS; at += 21)
			for (int extended = 0; extended < 2; extended++) {
				ranks_open(&r, extended, 2, 8, 0);
				for (uint8_t rank = 0; rank < 2; rank++) {
					struct ina_frame f =
						ranks_frame(&r, INA_REDUCE, 1, rank, 0);

					memset(word, 0, sizeof(word));
					word[at] = rank ? is[n].b : is[n].a;
					ranks_words(&f, word);
					ranks_send(&r, &f);
				}
				for (unsigned i = 0; i < INA_WORDS; i++)
					CHECK_INT(ranks_word(&r.answer[1], i),
						  i == at ? is[n].sum : 0);
				CHECK_INT(!!(r.answer[1].flags & INA_F_OVERFLOW),
					  extended && is[n].over);
				/* the switch's counters know */
				CHECK_INT(!!(r.slot[64].flags & INA_F_OVERFLOW), is[n].over);
				CHECK(!r.answer[0].words && !(r.answer[0].flags & INA_F_OVERFLOW));
			}
}

/* What a rank says of its own block stands in the sum: it was clipped, or held something that is no
 * number. */
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
				ranks_whole(&r, p);
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
static void exponents_are_aligned(void)
{
	static const int32_t big[5] = { 100, -100, 0, INT32_MAX, INT32_MIN },
			     small[5] = { 5, -5, 7, 4, -4 };
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
static void shifts_round_half_up(void)
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

/* Against float64: half a unit of the last exponent for each block that was shifted, and for the
 * sum each time it was. */
static void sums_are_close_to_float64(void)
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
			CHECK(fabs(ldexp(ranks_word(&r.answer[0], i), most) - sum[i]) <=
			      ldexp(0.5 * ranks, most));
	}
}

/* A contribution that met congestion marks the answer, for all, and only this one. */
static void marks_reach_all_ranks(void)
{
	struct ina_frame f;
	int32_t word[INA_WORDS] = { 0 };

	ranks_open(&r, false, 3, 8, 0);
	ranks_give(&r, 0, 0, 1);
	f = ranks_frame(&r, INA_ALL_REDUCE, 0, 1, 0);
	ranks_words(&f, word);
	f.ecn = INA_CE;
	ranks_send(&r, &f);
	CHECK_INT(ranks_give(&r, 2, 0, 1), INA_REASON_COMPLETE);
	for (int i = 0; i < 3; i++)
		CHECK_INT(r.answer[i].ecn, INA_CE);
	for (uint32_t p = 1; p <= 8; p++) {
		ranks_whole(&r, p);
		CHECK_INT(r.answer[2].ecn, INA_ECT1);
	}
}

/* Another collective, root, kind of frame, or words where none belong. */
static void mismatch_is_refused(void)
{
	struct ina_frame f;
	int32_t word[INA_WORDS] = { 50 };

	for (int extended = 0; extended < 2; extended++) {
		ranks_open(&r, extended, 3, 8, 0);
		ranks_give(&r, 0, 0, 1);
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
		ranks_give(&r, 1, 0, 2);
		CHECK_INT(ranks_give(&r, 2, 0, 3), INA_REASON_COMPLETE);
		CHECK_INT(ranks_word(&r.answer[0], 0), 6);
		f = ranks_frame(&r, INA_REDUCE, 0, 1, 0); /* and once it is done */
		ranks_words(&f, word);
		f.epoch = r.config.extended ? r.config.epoch : 0;
		CHECK_INT(ranks_send(&r, &f), INA_REASON_OTHER);
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

static enum ina_reason predict_reason(const struct model *m, uint8_t rank, uint32_t psn,
				      uint32_t len)
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
	uint32_t len = r.config.len, left = m->left[rank],
		 psn = left + (uint32_t)sr_rng_below(rng, len / 2);
	int32_t value = (int32_t)(psn * 3 + rank * 1000u);
	enum ina_reason expect, is;

	if (psn && sr_rng_below(rng, 3) == 0)
		/* a duplicate, however late, of something sent before */
		psn = (uint32_t)sr_rng_below(rng, psn + 1);
	if (psn >= PSNS)
		return;
	if (psn > left && !(m->seen[psn] >> rank & 1) && sr_rng_below(rng, 2))
		psn = left;
	value = (int32_t)(psn * 3 + rank * 1000u);
	expect = predict_reason(m, rank, psn, len);
	is = ranks_give(&r, rank, psn, value);
	CHECK_INT(is, expect);
	if (is == INA_REASON_TAKEN || is == INA_REASON_COMPLETE) {
		m->seen[psn] |= 1u << rank;
		m->sum[psn] += value;
	}
	for (uint8_t i = 0; i < r.config.ranks; i++) {
		/* it gets lost */
		if (!r.answer[i].group || !r.answer[i].words || sr_rng_below(rng, 4) == 0)
			continue;
		CHECK(r.answer[i].psn == psn);
		CHECK_INT(ranks_word(&r.answer[i], 0), m->sum[psn]);
		m->answered[i][psn] = true;
		while (m->answered[i][m->left[i]])
			m->left[i]++;
	}
}

/* Ranks that keep to their windows, losses, duplicates of any age: every verdict is what a switch
 * with endless memory would say. */
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

/* Every kind of processor does the same to a slot, bit by bit: the plain code beside the fastest
 * that runs here. */
static void processors_agree(void)
{
	static struct ina_slot plain[8], fast[8];
	uint64_t dice = 88172645463325252u;
	uint8_t words[INA_PAYLOAD_BYTES + 3];
	unsigned sums = 0;

	ina_slots_open(plain, 8, 0);
	ina_slots_open(fast, 8, 0);
	for (unsigned n = 0; n < 20000; n++) {
		uint32_t psn = n / 24;
		struct ina_frame f = {
			.coll = 1 + n / 24 % 5, .root = 1, .extended = true, .psn = psn
		};
		enum ina_reason a, b;

		for (unsigned i = 0; i < sizeof(words); i++) {
			dice ^= dice << 13;
			dice ^= dice >> 7;
			dice ^= dice << 17;
			words[i] = (uint8_t)(dice >> 20);
		}
		f.rank = (uint8_t)(n % 3);
		f.ecn = words[0] & 3;
		f.exponent = words[1] % 40;
		f.flags = words[2] & INA_F_NONFINITE;
		f.words = ina_coll_brings(f.coll, f.root, f.rank) ? words + n % 4 : NULL;
		a = ina_enter_plain(&plain[psn % 8], 8, &f, 3);
		b = ina_enter(&fast[psn % 8], 8, &f, 3);
		CHECK_INT(a, b);
		sums += a == INA_REASON_COMPLETE;
		CHECK(!memcmp(plain, fast, sizeof(plain)));
	}
	CHECK_INT(sums, 834);
}

int main(int argc, char **argv)
{
	static const struct named_test tests[] = {
		{ "processors", processors_agree },
		{ "all_reduce", all_reduce },
		{ "reduce", reduce_is_exact },
		{ "broadcast", broadcast_is_exact },
		{ "reduce_scatter", reduce_scatter },
		{ "all_gather", all_gather },
		{ "broadcast_bits", broadcast_bits },
		{ "stale_duplicate", stale_duplicate },
		{ "stale_on_done", stale_on_done },
		{ "stray_rank", stray_rank },
		{ "foreign_slot", foreign_slot },
		{ "wrap", psn_wraps },
		{ "one_loss", one_loss },
		{ "duplicate", duplicate_is_added_once },
		{ "two_pools", two_pools },
		{ "early", early_packets_are_refused },
		{ "saturate", sums_saturate },
		{ "flags_stay", flags_stay },
		{ "align", exponents_are_aligned },
		{ "shift", shifts_round_half_up },
		{ "exponents", sums_are_close_to_float64 },
		{ "marked", marks_reach_all_ranks },
		{ "mismatch", mismatch_is_refused },
		{ "random_traffic", random_traffic },
	};

	return NAMED_TESTS_RUN(tests, argc, argv);
}
