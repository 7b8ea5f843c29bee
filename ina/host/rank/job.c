/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/host/rank/job.h"

#include "ina/frame/bytes.h"

#include <string.h>

/* Different for every operation, packet and word; small enough for 32 ranks' sum. */
static int32_t make_word(uint32_t number, uint32_t index, unsigned i, unsigned rank)
{
	uint32_t h = (number * 0x9e3779b1u) ^ (index * 0x85ebca6bu) ^ (i * 0xc2b2ae35u);

	return (int32_t)(h >> 7) - (1 << 24) + (int32_t)(rank * (h & 1023));
}

static int32_t compute_expected(const struct job *j, uint32_t index, unsigned i)
{
	uint32_t sum = 0;

	if (j->op.coll == INA_BROADCAST || j->op.coll == INA_ALL_GATHER)
		return make_word(j->number, index, i, j->op.root);
	for (unsigned r = 0; r < j->ranks; r++)
		sum += (uint32_t)make_word(j->number, index, i, r);
	return (int32_t)sum;
}

static void bring(void *arg, uint32_t index, uint8_t *words, struct ina_block *block)
{
	const struct job *j = arg;

	for (unsigned i = 0; i < INA_WORDS; i++)
		ina_put32(words + 4 * i, (uint32_t)make_word(j->number, index, i, j->rank));
	*block = (struct ina_block) { 0 };
}

static void take(void *arg, uint32_t index, const uint8_t *words, struct ina_block block)
{
	struct job *j = arg;

	for (unsigned i = 0; words && i < INA_WORDS; i++)
		j->wrong += (int32_t)ina_get32(words + 4 * i) != compute_expected(j, index, i);
	j->wrong += block.flags != 0;
}

static void done(void *arg, int err)
{
	struct job *j = arg;

	j->done = true;
	j->err = err;
}

void job_begin(struct job *j, uint32_t number, uint8_t coll, uint8_t root, uint32_t packets,
	       unsigned rank, unsigned ranks)
{
	static const struct ina_op_ops ops = { .bring = bring, .take = take, .done = done };

	memset(j, 0, sizeof(*j));
	j->number = number;
	j->rank = rank;
	j->ranks = ranks;
	j->op = (struct ina_op) {
		.ops = &ops, .arg = j, .coll = coll, .root = root, .packets = packets
	};
}
