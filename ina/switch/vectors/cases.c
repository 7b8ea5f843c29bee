/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/switch/vectors/cases.h"

#include "ina/frame/bytes.h"

const uint8_t ina_case_mac[6] = { 2, 0, 0, 0, 0, 0xfe };

/* A case under way. */
struct play {
	const struct ina_case_sink *sink;
	struct ina_group_config group;
};

static struct play begin_workers(const struct ina_case_sink *sink, bool extended, unsigned ranks,
				 uint8_t workers, uint32_t len, uint32_t first_psn)
{
	struct play p = { .sink = sink };

	p.group = (struct ina_group_config) { .id = 7,
					      .ranks = (uint8_t)ranks,
					      .workers = workers,
					      .extended = extended,
					      .base = 16,
					      .len = len,
					      .epoch = 5,
					      .first_psn = first_psn,
					      .lease_until = UINT64_MAX };
	for (unsigned i = 0; i < ranks; i++)
		p.group.member[i] = (struct ina_member) { INA_CASE_RANK + i,
							  { 2, 0, 0, 0, 0, (uint8_t)(i + 1) } };
	sink->install(sink->arg, &p.group);
	return p;
}

static struct play begin_case(const struct ina_case_sink *sink, bool extended, unsigned ranks,
			      uint32_t len, uint32_t first_psn)
{
	return begin_workers(sink, extended, ranks, 1, len, first_psn);
}

static struct ina_frame make_frame(const struct play *p, uint8_t coll, uint8_t root, uint8_t rank,
				   uint32_t psn)
{
	struct ina_frame f = { .src_mac = { 2, 0, 0, 0, 0, (uint8_t)(rank + 1) },
			       .src = INA_CASE_RANK + rank,
			       .dst = INA_CASE_SWITCH,
			       .ecn = INA_ECT1,
			       .extended = p->group.extended,
			       .coll = coll,
			       .group = p->group.id,
			       .rank = rank,
			       .root = root,
			       .psn = psn };

	memcpy(f.dst_mac, ina_case_mac, 6);
	f.agg_addr = (uint16_t)(p->group.base + (psn & (p->group.len / p->group.workers - 1)));
	f.epoch = p->group.extended ? p->group.epoch : 0;
	return f;
}

static void emit_frame(const struct play *p, const struct ina_frame *f)
{
	uint8_t bytes[INA_FRAME_MAX];
	size_t len = ina_frame_encode(f, bytes);

	p->sink->packet(p->sink->arg, f->rank % 8, bytes, len);
}

/* With 64 words from a start and a step. */
static void emit_words(const struct play *p, struct ina_frame f, int32_t start, int32_t step)
{
	uint8_t words[INA_PAYLOAD_BYTES];

	for (unsigned i = 0; i < INA_WORDS; i++)
		ina_put32(words + 4 * i, (uint32_t)start + i * (uint32_t)step);
	f.words = words;
	emit_frame(p, &f);
}

static void emit_contribution(const struct play *p, uint8_t coll, uint8_t root, uint8_t rank,
			      uint32_t psn)
{
	struct ina_frame f = make_frame(p, coll, root, rank, psn);

	if (ina_coll_brings(coll, root, rank))
		emit_words(p, f, (int32_t)(1000 * psn + 100 * (rank + 1u)), rank % 2 ? -3 : 5);
	else
		emit_frame(p, &f);
}

static void emit_probe(const struct play *p, uint8_t rank, uint32_t psn)
{
	struct ina_frame f = make_frame(p, INA_ALL_REDUCE, 0, rank, psn);

	f.flags = INA_F_PROBE;
	emit_frame(p, &f);
}

static void emit_all_ranks(const struct play *p, uint8_t coll, uint8_t root, uint32_t psn)
{
	for (uint8_t rank = 0; rank < p->group.ranks; rank++)
		emit_contribution(p, coll, root, (uint8_t)((rank + psn) % p->group.ranks), psn);
}

/* ---- the cases ---- */

static void play_collective(const struct ina_case_sink *sink, bool extended, uint8_t coll)
{
	struct play p = begin_case(sink, extended, extended ? 4 : 3, 4, 0);

	for (uint32_t psn = 0; psn < 6; psn++)
		emit_all_ranks(&p, coll, (uint8_t)(psn % p.group.ranks), psn);
}

static void play_all_reduce(const struct ina_case_sink *sink, bool extended)
{
	play_collective(sink, extended, INA_ALL_REDUCE);
}

static void play_reduce(const struct ina_case_sink *sink, bool extended)
{
	play_collective(sink, extended, INA_REDUCE);
}

static void play_broadcast(const struct ina_case_sink *sink, bool extended)
{
	play_collective(sink, extended, INA_BROADCAST);
}

static void play_reduce_scatter(const struct ina_case_sink *sink, bool extended)
{
	play_collective(sink, extended, INA_REDUCE_SCATTER);
}

static void play_all_gather(const struct ina_case_sink *sink, bool extended)
{
	play_collective(sink, extended, INA_ALL_GATHER);
}

static void play_duplicate(const struct ina_case_sink *sink, bool extended)
{
	struct play p = begin_case(sink, extended, 3, 4, 0);

	emit_contribution(&p, INA_ALL_REDUCE, 0, 0, 0);
	emit_contribution(&p, INA_ALL_REDUCE, 0, 0, 0);
	emit_contribution(&p, INA_ALL_REDUCE, 0, 1, 0);
	emit_contribution(&p, INA_ALL_REDUCE, 0, 0, 0);
	emit_contribution(&p, INA_ALL_REDUCE, 0, 2, 0);
	for (uint8_t rank = 0; rank < 3; rank++)
		emit_contribution(&p, INA_ALL_REDUCE, 0, rank, 0);
}

static void play_stale(const struct ina_case_sink *sink, bool extended)
{
	struct play p = begin_case(sink, extended, 2, 4, 0);

	for (uint32_t psn = 0; psn < 9; psn++)
		emit_all_ranks(&p, INA_ALL_REDUCE, 0, psn);
	emit_contribution(&p, INA_ALL_REDUCE, 0, 0, 9);
	emit_contribution(&p, INA_ALL_REDUCE, 0, 0, 5); /* the slot is live with psn 9 */
	emit_contribution(&p, INA_ALL_REDUCE, 0, 1, 1);
	emit_contribution(&p, INA_ALL_REDUCE, 0, 1, 4); /* the slot is done with psn 8 */
	emit_contribution(&p, INA_ALL_REDUCE, 0, 1, 9);
}

static void play_early(const struct ina_case_sink *sink, bool extended)
{
	struct play p = begin_case(sink, extended, 2, 4, 0);

	emit_contribution(&p, INA_ALL_REDUCE, 0, 0, 0);
	emit_contribution(&p, INA_ALL_REDUCE, 0, 1, 4);
	emit_contribution(&p, INA_ALL_REDUCE, 0, 1, 8);
	emit_contribution(&p, INA_ALL_REDUCE, 0, 1, 5);
	emit_contribution(&p, INA_ALL_REDUCE, 0, 1, 0);
	emit_contribution(&p, INA_ALL_REDUCE, 0, 1, 8);
	emit_contribution(&p, INA_ALL_REDUCE, 0, 1, 4);
	emit_contribution(&p, INA_ALL_REDUCE, 0, 0, 4);
}

static void play_wrap(const struct ina_case_sink *sink, bool extended)
{
	struct play p = begin_case(sink, extended, 2, 4, 0u - 6);

	for (uint32_t n = 0; n < 12; n++)
		emit_all_ranks(&p, INA_ALL_REDUCE, 0, 0u - 6 + n);
	emit_contribution(&p, INA_ALL_REDUCE, 0, 0, 0u - 2);
}

static void play_overflow(const struct ina_case_sink *sink, bool extended)
{
	static const int32_t a[] = { INT32_MAX, INT32_MIN, INT32_MAX, 0x40000000, -0x40000000 };
	static const int32_t b[] = { 1, -1, INT32_MIN, 0x40000000, -0x40000000 };

	struct play p = begin_case(sink, extended, 2, 16, 0);

	for (uint32_t n = 0; n < 5; n++) {
		emit_words(&p, make_frame(&p, INA_ALL_REDUCE, 0, 0, n), a[n], 0);
		emit_words(&p, make_frame(&p, INA_ALL_REDUCE, 0, 1, n), b[n], 0);
	}
}

static void play_exponents(const struct ina_case_sink *sink, bool extended)
{
	static const uint8_t exponent[][3] = {
		{ 140, 142, 141 }, { 142, 140, 142 }, { 0, 31, 3 }, { 40, 0, 72 }, { 0, 255, 1 }
	};
	struct play p = begin_case(sink, extended, 3, 16, 0);

	for (uint32_t n = 0; n < 5; n++)
		for (uint8_t rank = 0; rank < 3; rank++) {
			struct ina_frame f = make_frame(&p, INA_ALL_REDUCE, 0, rank, n);

			f.exponent = exponent[n][rank];
			emit_words(&p, f, -1000000 + 7 * rank, 31251);
		}
}

static void play_flags(const struct ina_case_sink *sink, bool extended)
{
	struct play p = begin_case(sink, extended, 2, 4, 0);

	for (uint32_t n = 0; n < 3; n++)
		for (uint8_t rank = 0; rank < 2; rank++) {
			struct ina_frame f = make_frame(&p, INA_REDUCE, 1, rank, n);

			if (rank == n)
				f.flags = INA_F_OVERFLOW;
			else if (rank == n - 1)
				f.flags = INA_F_NONFINITE;
			emit_words(&p, f, 1, 1);
		}
}

static void play_marked(const struct ina_case_sink *sink, bool extended)
{
	struct play p = begin_case(sink, extended, 2, 4, 0);

	for (uint32_t n = 0; n < 5; n++)
		for (uint8_t rank = 0; rank < 2; rank++) {
			struct ina_frame f = make_frame(&p, INA_ALL_REDUCE, 0, rank, n);

			f.ecn = n == 0 && rank == 0 ? INA_CE : INA_ECT1;
			emit_words(&p, f, 1, 1);
		}
}

static void play_probes(const struct ina_case_sink *sink, bool extended)
{
	struct play p = begin_case(sink, extended, 3, 4, 0);

	emit_probe(&p, 1, 0);
	emit_contribution(&p, INA_ALL_REDUCE, 0, 0, 0);
	emit_contribution(&p, INA_ALL_REDUCE, 0, 2, 0);
	for (uint8_t rank = 0; rank < 3; rank++)
		emit_probe(&p, rank, 0);
	emit_contribution(&p, INA_ALL_REDUCE, 0, 1, 0);
	for (uint8_t rank = 0; rank < 3; rank++)
		emit_probe(&p, rank, 0);
	emit_probe(&p, 0, 4);
	emit_probe(&p, 0, 8);
}

static void play_foreign(const struct ina_case_sink *sink, bool extended)
{
	struct play p = begin_case(sink, extended, 3, 4, 0);
	struct ina_frame f;

	emit_contribution(&p, INA_ALL_REDUCE, 0, 0, 0);
	emit_contribution(&p, INA_ALL_REDUCE, 0, 1, 0);
	for (int wrong = 0; wrong < 8; wrong++) {
		f = make_frame(&p, INA_ALL_REDUCE, 0, 2, 0);
		switch (wrong) {
		case 0:
			f.src = INA_CASE_RANK + 1;
			break;
		case 1:
			f.rank = 5;
			break;
		case 2:
			f.root = 3;
			break;
		case 3:
			f.worker = 1;
			break;
		case 4:
			f.agg_addr++;
			break;
		case 5:
			f.group = 8;
			break;
		case 6:
			f.dst++;
			break;
		case 7:
			f.extended = !extended;
			break;
		}
		emit_words(&p, f, 99999, 0);
	}
	f = make_frame(&p, INA_ALL_REDUCE, 0, 2, 0);
	emit_frame(&p, &f); /* without words */
	f = make_frame(&p, INA_BROADCAST, 0, 2, 0);
	emit_frame(&p, &f); /* of another collective */
	emit_contribution(&p, INA_ALL_REDUCE, 0, 2, 0);
	f = make_frame(&p, INA_ALL_REDUCE, 3, 0, 1); /* no such root, where nobody was before */
	emit_words(&p, f, 99999, 0);
	emit_all_ranks(&p, INA_ALL_REDUCE, 0, 1);
}

static void play_epochs(const struct ina_case_sink *sink, bool extended)
{
	struct play p = begin_case(sink, extended, 2, 4, 0);
	struct ina_frame f;

	emit_contribution(&p, INA_ALL_REDUCE, 0, 0, 0);
	f = make_frame(&p, INA_ALL_REDUCE, 0, 1, 0);
	f.epoch = 4;
	emit_words(&p, f, 99999, 0);
	f.epoch = 6;
	emit_words(&p, f, 99999, 0);
	f.epoch = 5;
	f.flags = INA_F_ANSWER;
	emit_words(&p, f, 99999, 0);
	emit_contribution(&p, INA_ALL_REDUCE, 0, 1, 0);
}

static void play_aborted(const struct ina_case_sink *sink, bool extended)
{
	struct play p = begin_case(sink, extended, 3, 4, 0);
	struct ina_frame f = make_frame(&p, INA_ALL_REDUCE, 0, 2, 0);

	emit_contribution(&p, INA_ALL_REDUCE, 0, 0, 0);
	f.flags = INA_F_ABORT;
	emit_frame(&p, &f);
	emit_contribution(&p, INA_ALL_REDUCE, 0, 1, 0);
	emit_probe(&p, 0, 0);
}

static void play_lapsed(const struct ina_case_sink *sink, bool extended)
{
	struct play p = begin_case(sink, extended, 2, 4, 0);

	emit_contribution(&p, INA_ALL_REDUCE, 0, 0, 0);
	sink->lapse(sink->arg, &p.group);
	emit_contribution(&p, INA_ALL_REDUCE, 0, 1, 0);
}

/*
 * Another group gets the slots of one that has ended, and has the same epoch, which counts for each
 * number: nobody is answered with the former one's sums, and no contribution of its is added.
 */
static void play_reused(const struct ina_case_sink *sink, bool extended)
{
	struct play p = begin_case(sink, extended, 2, 4, 0);

	for (uint32_t psn = 0; psn < 2; psn++)
		emit_all_ranks(&p, INA_ALL_REDUCE, 0, psn);
	emit_contribution(&p, INA_ALL_REDUCE, 0, 0, 2);
	sink->remove(sink->arg, &p.group);
	p.group.id = 8;
	sink->install(sink->arg, &p.group);
	for (uint32_t psn = 0; psn < 6; psn++)
		for (uint8_t rank = 0; rank < 2; rank++) {
			struct ina_frame f = make_frame(&p, INA_ALL_REDUCE, 0, rank, psn);

			emit_words(&p, f, (int32_t)(7000 + 10 * psn + rank), 1);
		}
}

static void put_checksum(uint8_t *b)
{
	uint32_t sum = 0;

	ina_put16(b + 24, 0);
	for (int i = 14; i < 34; i += 2)
		sum += ina_get16(b + i);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	ina_put16(b + 24, (uint16_t)~sum);
}

/* Bytes that are no frame; then the ones that are. */
static void play_malformed(const struct ina_case_sink *sink, bool extended)
{
	static const struct {
		uint8_t at, value;
		bool mended;
	} is[] = {
		{ 14, 0x46, true },  { 17, 40, true },    { 20, 0x00, true }, { 20, 0x60, true },
		{ 22, 0, true },     { 24, 0x12, false }, { 34, 2, false },   { 35, 0x80, false },
		{ 35, 0x18, false }, { 35, 0x10, false }, { 37, 1, false },   { 42, 0, false },
		{ 42, 6, false },    { 43, 0, false },    { 44, 32, false },  { 45, 32, false },
	};
	struct play p = begin_case(sink, extended, 2, 4, 0);
	struct ina_frame f = make_frame(&p, INA_ALL_REDUCE, 0, 1, 0);
	uint8_t words[INA_PAYLOAD_BYTES] = { 1 }, bytes[INA_FRAME_MAX];
	size_t len;

	emit_contribution(&p, INA_ALL_REDUCE, 0, 0, 0);
	f.words = words;
	for (unsigned i = 0; i < sizeof(is) / sizeof(is[0]); i++) {
		len = ina_frame_encode(&f, bytes);
		bytes[is[i].at] = is[i].value;
		if (is[i].mended)
			put_checksum(bytes);
		sink->packet(sink->arg, 1, bytes, len);
	}
	len = ina_frame_encode(&f, bytes);
	sink->packet(sink->arg, 1, bytes, len - 4); /* cut short */
	emit_contribution(&p, INA_ALL_REDUCE, 0, 1, 0);
}

static void play_workers(const struct ina_case_sink *sink, bool extended)
{
	struct play p = begin_workers(sink, extended, 2, 4, 16, 0);

	for (uint32_t n = 0; n < 24; n++)
		for (uint8_t rank = 0; rank < 2; rank++) {
			struct ina_frame f = make_frame(&p, INA_ALL_REDUCE, 0, rank, n / 4);

			f.worker = n % 4;
			f.agg_addr = (uint16_t)(f.agg_addr + 4 * f.worker);
			emit_words(&p, f, (int32_t)n, 1);
		}
}

const struct ina_case ina_cases[] = {
	{ "all_reduce", "the sum to all", true, true, play_all_reduce },
	{ "reduce", "the sum to the root, the others' acknowledgements without words", true, true,
	  play_reduce },
	{ "broadcast", "the root's words to all but the root", true, true, play_broadcast },
	{ "reduce_scatter", "as reduce, with a root that goes round", true, true,
	  play_reduce_scatter },
	{ "all_gather", "as broadcast, with a root that goes round", true, true, play_all_gather },
	{ "duplicate", "contributions that come again, before the sum and after", true, true,
	  play_duplicate },
	{ "stale", "delayed duplicates of earlier psns, on live and done slots", true, true,
	  play_stale },
	{ "early", "psns further ahead than a window may be", true, true, play_early },
	{ "wrap", "psns over 2^32", true, true, play_wrap },
	{ "overflow", "sums that pass the ends of int32, and such that just do not", true, true,
	  play_overflow },
	{ "exponents", "blocks of different exponents, near and far", false, true, play_exponents },
	{ "flags", "overflow and non-finite as ranks say them", false, true, play_flags },
	{ "marked", "congestion met on the way to the switch", true, true, play_marked },
	{ "probes", "need, held, and the sum", false, true, play_probes },
	{ "foreign", "packets from somebody else, or for something else", true, true,
	  play_foreign },
	{ "epochs", "packets of another incarnation, and an answer for a switch", false, true,
	  play_epochs },
	{ "aborted", "a rank ends the group", false, true, play_aborted },
	{ "lapsed", "the lease ends", true, true, play_lapsed },
	{ "reused", "another group in the slots of one that has ended", true, true, play_reused },
	{ "malformed", "bytes that are no frame", false, true, play_malformed },
	{ "workers", "four streams of each rank", true, true, play_workers },
};
const unsigned ina_ncases = sizeof(ina_cases) / sizeof(ina_cases[0]);
