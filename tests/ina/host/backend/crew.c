/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/ina/host/backend/crew.h"

#include "base/check.h"

#include <math.h>

void crew_open(struct crew *c, struct rig *r, unsigned ranks)
{
	memset(c, 0, sizeof(*c));
	c->ranks = ranks;
	for (unsigned i = 0; i < ranks; i++) {
		rig_attach(r, i % r->hosts, &c->client[i]);
		c->member[i] = RIG_ADDR(i % r->hosts);
	}
	CHECK_INT(rig_create(&c->client[0], c->member, ranks, c->ticket), 0);
	for (unsigned i = 0; i < ranks; i++)
		CHECK_INT(rig_join(&c->client[i], c->ticket, i, &c->handle[i]), 0);
}

void crew_close(struct crew *c)
{
	for (unsigned i = 0; i < c->ranks; i++)
		CHECK_INT(rig_leave(&c->client[i], c->handle[i]), 0);
	for (unsigned i = 0; i < c->ranks; i++)
		rig_detach(&c->client[i]);
}

int32_t crew_integer(unsigned rank, size_t i, unsigned salt)
{
	uint32_t x = (uint32_t)(i * 2654435761u) ^ rank * 40503u ^ salt * 977u;

	return (int32_t)((x ^ x >> 15) * 2246822519u) >> 6; /* room for 32 of them */
}

float crew_float(unsigned rank, size_t i, unsigned salt)
{
	return ldexpf((float)crew_integer(rank, i, salt), -(int)(i / 64 % 20) - 10);
}

static bool is_reduction(uint8_t coll)
{
	return coll == HA_INA_ALL_REDUCE || coll == HA_INA_REDUCE || coll == HA_INA_REDUCE_SCATTER;
}

/* Whatever its type, a rank's word. */
static uint32_t word_of(unsigned rank, uint8_t type, size_t i, unsigned salt)
{
	float x = crew_float(rank, i, salt);
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return type == HA_INA_FLOAT32 ? bits : (uint32_t)crew_integer(rank, i, salt);
}

void crew_fill(struct crew *c, uint8_t coll, uint8_t type, uint64_t offset, uint32_t bytes,
	       unsigned salt)
{
	for (unsigned r = 0; r < c->ranks; r++) {
		uint8_t *at = c->client[r].shm.memory.buffer + offset;

		memset(at, 0, ina_shm_blocks(bytes));
		for (size_t i = 0; i < bytes / 4; i++) {
			uint32_t w = word_of(r, type, i, salt);

			memcpy(at + 4 * i, &w, 4);
		}
		for (size_t i = bytes / 4 * 4; i < bytes; i++)
			at[i] = (uint8_t)(r * 17 + i);
	}
}

void crew_post(struct crew *c, uint8_t coll, uint8_t type, unsigned root, uint64_t offset,
	       uint32_t bytes)
{
	for (unsigned r = 0; r < c->ranks; r++)
		rig_post(&c->client[r], &(struct rig_request) { c->handle[r], bytes, offset, coll,
								type, (uint8_t)root });
}

void crew_await(struct crew *c)
{
	for (unsigned r = 0; r < c->ranks; r++) {
		struct ina_shm_response got = rig_response(&c->client[r]);

		CHECK_INT(got.result, 0);
	}
}

static void check_sum(struct crew *c, unsigned rank, uint8_t type, uint64_t offset, size_t i,
		      unsigned salt)
{
	const uint8_t *at = c->client[rank].shm.memory.buffer + offset + 4 * i;
	/* no rank's |x| in the block is above it */
	double sum = 0, largest = ldexp(INT32_MAX >> 5, -(int)(i / 64 % 20) - 10);
	int64_t integer = 0;
	uint32_t bits;
	float x;

	memcpy(&bits, at, 4);
	memcpy(&x, at, 4);
	for (unsigned r = 0; r < c->ranks; r++) {
		integer += crew_integer(r, i, salt);
		sum += (double)crew_float(r, i, salt);
	}
	if (type == HA_INA_INT32)
		CHECK_INT((int32_t)bits, integer);
	/* docs/ina.md: for each rank half a unit of its own and half of the sum's, and float32's
	 * own rounding */
	else
		CHECK(fabs((double)x - sum) <=
		      largest * c->ranks * ldexp(1, -24) + fabs(sum) * ldexp(1, -23));
}

void crew_check(struct crew *c, uint8_t coll, uint8_t type, unsigned root, uint64_t offset,
		uint32_t bytes, unsigned salt)
{
	for (unsigned r = 0; r < c->ranks; r++) {
		const uint8_t *at = c->client[r].shm.memory.buffer + offset;
		bool gets = coll == HA_INA_ALL_REDUCE || !is_reduction(coll) || r == root;
		unsigned from = is_reduction(coll) ? r : root;

		for (size_t i = 0; i < bytes / 4; i++) {
			uint32_t w = word_of(from, type, i, salt);

			if (is_reduction(coll) && gets)
				check_sum(c, r, type, offset, i, salt);
			else
				CHECK(!memcmp(at + 4 * i, &w, 4));
		}
		for (size_t i = bytes / 4 * 4; i < bytes; i++)
			CHECK_INT(at[i], (uint8_t)(from * 17 + i));
	}
}

void crew_do(struct crew *c, uint8_t coll, uint8_t type, unsigned root, uint32_t bytes,
	     unsigned salt)
{
	crew_fill(c, coll, type, 0, bytes, salt);
	crew_post(c, coll, type, root, 0, bytes);
	crew_await(c);
	crew_check(c, coll, type, root, 0, bytes, salt);
}
