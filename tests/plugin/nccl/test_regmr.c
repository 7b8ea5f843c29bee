/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registrations: the same buffer many times, overlapping ones, odd addresses and lengths, in either
 * order of release; what one release leaves must stay usable for the others. Unknown kinds of
 * memory are refused.
 */
#include "tests/plugin/nccl/rig.h"

#define ROOM (1u << 20)
#define COPIES 40

static struct rig rig;
static struct rig_pair pair;

static void move_message(uint8_t *from, void *from_mr, uint8_t *to, void *to_mr, size_t size,
			 uint32_t seed)
{
	void *recv, *send;

	rig_fill(from, size, seed);
	memset(to, 0, size);
	recv = rig_irecv(&rig, pair.recv, to, size, 0, to_mr);
	send = rig_isend(&rig, pair.send, from, size, 0, from_mr);
	rig_wait(&rig, send, NULL);
	rig_wait(&rig, recv, NULL);
	CHECK(rig_differ(to, size, seed) == size, "byte %zu", rig_differ(to, size, seed));
}

static void register_repeatedly(uint8_t *from, uint8_t *to)
{
	void *from_mr[COPIES], *to_mr[COPIES];

	for (int i = 0; i < COPIES; i++) {
		from_mr[i] = rig_reg(&rig, pair.send, from, ROOM);
		to_mr[i] = rig_reg(&rig, pair.recv, to, ROOM);
	}
	for (int i = 0; i < COPIES; i++) {
		int k = i & 1 ? COPIES - 1 - i / 2 : i / 2; /* from both ends, alternating */

		move_message(from, from_mr[k], to, to_mr[k], 2000, (uint32_t)i);
		OK(rig.plugin.dereg(pair.send, from_mr[k]));
		OK(rig.plugin.dereg(pair.recv, to_mr[k]));
	}
}

static void register_overlapping(uint8_t *from, uint8_t *to)
{
	static const size_t at[] = { 0, 1, 4095, 4096, 5000, 100000, 7 };
	static const size_t size[] = { ROOM, 1, 2, 4096, 300000, 1, ROOM - 7 };
	void *from_mr[7], *to_mr[7];

	for (int i = 0; i < 7; i++) {
		from_mr[i] = rig_reg(&rig, pair.send, from + at[i], size[i]);
		to_mr[i] = rig_reg(&rig, pair.recv, to + at[i], size[i]);
	}
	for (int i = 0; i < 7; i++) {
		for (int k = i; k < 7; k++)
			move_message(from + at[k], from_mr[k], to + at[k], to_mr[k], size[k],
				     (uint32_t)(i * 10 + k));
		OK(rig.plugin.dereg(pair.send, from_mr[i]));
		OK(rig.plugin.dereg(pair.recv, to_mr[i]));
	}
}

/* One buffer on many connections; each registration ends with its own. */
static void register_on_many(uint8_t *from, uint8_t *to)
{
	struct rig_pair other[4], mine = pair;
	void *from_mr[4], *to_mr[4];

	for (int i = 0; i < 4; i++) {
		rig_pair_open(&rig, &other[i]);
		from_mr[i] = rig_reg(&rig, other[i].send, from, ROOM);
		to_mr[i] = rig_reg(&rig, other[i].recv, to, ROOM);
	}
	for (int i = 0; i < 4; i++) {
		for (int k = i; k < 4; k++) {
			pair = other[k];
			move_message(from, from_mr[k], to, to_mr[k], 10000, (uint32_t)k);
		}
		OK(rig.plugin.dereg(other[i].send, from_mr[i]));
		OK(rig.plugin.dereg(other[i].recv, to_mr[i]));
		rig_pair_close(&rig, &other[i]);
	}
	pair = mine;
}

int main(int argc, char **argv)
{
	uint8_t *from = aligned_alloc(4096, ROOM), *to = aligned_alloc(4096, ROOM);
	void *mhandle;

	rig_expect_calm();
	rig_open(&rig, argc, argv);
	rig_pair_open(&rig, &pair);
	register_repeatedly(from, to);
	register_overlapping(from, to);
	register_on_many(from, to);
	register_repeatedly(from, to);
	rig_check_calm();
	mhandle = from;
	CHECK(rig_reg_type(&rig, pair.send, from, 4096, 0x40, &mhandle) != ncclSuccess,
	      "an unknown kind of memory");
	CHECK(!mhandle, "a refused registration left %p", mhandle);
	rig_pair_close(&rig, &pair);
	rig_close(&rig);
	free(from);
	free(to);
	return 0;
}
