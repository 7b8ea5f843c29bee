/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/ina/switch/ranks.h"

#include "base/check.h"
#include "ina/frame/bytes.h"

#define BASE 64

void ranks_open(struct ranks *r, bool extended, unsigned ranks, uint32_t len, uint32_t first_psn)
{
	static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 0xfe };
	const char *why;

	memset(r, 0, sizeof(*r));
	r->now = 1000;
	ina_switch_init(&r->sw, SWITCH_ADDR, mac, r->slot, RANKS_SLOTS);
	r->config = (struct ina_group_config) {
		.id = 7,
		.ranks = (uint8_t)ranks,
		.workers = 1,
		.extended = extended,
		.base = BASE,
		.len = len,
		.epoch = 5,
		.first_psn = first_psn,
		.lease_until = 1000000,
	};
	for (unsigned i = 0; i < ranks; i++) {
		r->config.member[i].addr = RANK_ADDR + i;
		r->config.member[i].mac[5] = (uint8_t)i;
	}
	CHECK_INT(ina_switch_install(&r->sw, &r->config, &why), 0);
}

struct ina_frame ranks_frame(const struct ranks *r, uint8_t coll, uint8_t root, uint8_t rank,
			     uint32_t psn)
{
	return (struct ina_frame) {
		.src = RANK_ADDR + rank,
		.dst = SWITCH_ADDR,
		.ecn = INA_ECT1,
		.extended = r->config.extended,
		.coll = coll,
		.group = r->config.id,
		.rank = rank,
		.root = root,
		.agg_addr = (uint16_t)(r->config.base + (psn & (r->config.len - 1))),
		.psn = psn,
		.epoch = r->config.extended ? r->config.epoch : 0,
	};
}

void ranks_words(struct ina_frame *f, const int32_t *word)
{
	static uint8_t words[INA_RANKS_MAX][INA_PAYLOAD_BYTES];
	uint8_t *to = words[f->rank % INA_RANKS_MAX];

	for (unsigned i = 0; i < INA_WORDS; i++)
		ina_put32(to + 4 * i, (uint32_t)word[i]);
	f->words = to;
}

static void take_answer(struct ranks *r, uint8_t rank)
{
	struct ina_frame f;
	size_t len;

	ina_switch_answer(&r->sw, &r->v, rank, &f);
	len = ina_frame_encode(&f, r->bytes[rank]);
	CHECK_INT(ina_frame_decode(r->bytes[rank], len, &r->answer[rank]), INA_FAULT_NONE);
	f = r->answer[rank];
	CHECK(f.src == SWITCH_ADDR && f.dst == RANK_ADDR + rank && f.rank == rank);
	CHECK(f.dst_mac[5] == rank && f.src_mac[5] == 0xfe);
	r->answers++;
}

enum ina_reason ranks_send(struct ranks *r, const struct ina_frame *f)
{
	uint8_t bytes[INA_FRAME_MAX];
	struct ina_frame g;

	r->answers = 0;
	memset(r->answer, 0, sizeof(r->answer));
	CHECK_INT(ina_frame_decode(bytes, ina_frame_encode(f, bytes), &g), INA_FAULT_NONE);
	ina_switch_step(&r->sw, r->now, &g, &r->v);
	if (r->v.action == INA_ANSWER_ONE)
		take_answer(r, g.rank);
	for (uint8_t i = 0; r->v.action == INA_ANSWER_ALL && i < ina_switch_ranks(&r->sw, &r->v);
	     i++)
		take_answer(r, i);
	return r->v.reason;
}

int32_t ranks_word(const struct ina_frame *answer, unsigned i)
{
	return (int32_t)ina_get32(answer->words + 4 * i);
}

enum ina_reason ranks_give(struct ranks *r, uint8_t rank, uint32_t psn, int32_t value)
{
	struct ina_frame f = ranks_frame(r, INA_ALL_REDUCE, 0, rank, psn);
	int32_t word[INA_WORDS];

	for (int i = 0; i < INA_WORDS; i++)
		word[i] = value + i;
	ranks_words(&f, word);
	return ranks_send(r, &f);
}

void ranks_whole(struct ranks *r, uint32_t psn)
{
	int32_t sum = 0;

	for (uint8_t rank = 0; rank < r->config.ranks; rank++) {
		int32_t value = (int32_t)(psn % 1000 + rank * 10u);

		CHECK_INT(ranks_give(r, rank, psn, value),
			  rank + 1 == r->config.ranks ? INA_REASON_COMPLETE : INA_REASON_TAKEN);
		sum += value;
	}
	CHECK_INT(r->answers, r->config.ranks);
	for (uint8_t rank = 0; rank < r->config.ranks; rank++) {
		CHECK(r->answer[rank].psn == psn);
		for (int i = 0; i < INA_WORDS; i++)
			CHECK_INT(ranks_word(&r->answer[rank], (unsigned)i),
				  sum + i * r->config.ranks);
	}
}
