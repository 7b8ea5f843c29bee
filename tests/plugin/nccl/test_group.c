/* SPDX-License-Identifier: BSD-3-Clause */
/* Grouped receives of 1 to 8 buffers: tags decide, in whatever order the sends come; sizes are
 * reported per buffer. */
#include "tests/plugin/nccl/rig.h"

#define MAX 8
#define ROOM 9000

struct group {
	struct rig *rig;
	struct rig_pair *pair;
	uint8_t *from[MAX], *to[MAX];
	void *from_mr[MAX], *to_mr[MAX];
};

static uint32_t roll_dice(void)
{
	static uint32_t state = 2463534242u;

	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return state;
}

static void shuffle_order(int *order, int n)
{
	for (int i = n - 1; i > 0; i--) {
		int j = (int)(roll_dice() % (unsigned)(i + 1)), t = order[i];

		order[i] = order[j];
		order[j] = t;
	}
}

/* One group of n buffers. Sizes are random, some 0, some larger than posted; the sends are posted
 * in shuffled order. */
static void round_trip(struct group *g, int n)
{
	void *data[MAX], *mhandles[MAX], *send[MAX], *recv;
	size_t posted[MAX], sent[MAX];
	int tags[MAX], order[MAX], got[MAX], size;

	for (int i = 0; i < n; i++) {
		posted[i] = roll_dice() % ROOM;
		sent[i] = roll_dice() % 4 ? roll_dice() % ROOM : 0;
		tags[i] = 1000 + i * 7;
		order[i] = i;
		data[i] = g->to[i];
		mhandles[i] = g->to_mr[i];
		got[i] = -1;
		memset(g->to[i], 0, ROOM);
		rig_fill(g->from[i], sent[i], (uint32_t)(n * 100 + i));
	}
	shuffle_order(order, n);
	recv = rig_irecvs(g->rig, g->pair->recv, n, data, posted, tags, mhandles);
	for (int k = 0; k < n; k++) {
		int i = order[k];

		send[i] = rig_isend(g->rig, g->pair->send, g->from[i], sent[i], tags[i],
				    g->from_mr[i]);
	}
	shuffle_order(order, n);
	for (int k = 0; k < n; k++) {
		int i = order[k];
		size_t want = sent[i] < posted[i] ? sent[i] : posted[i];

		rig_wait(g->rig, send[i], &size);
		CHECK((size_t)size == want, "send %d of %d reports %d of %zu", i, n, size, want);
	}
	rig_wait(g->rig, recv, got);
	for (int i = 0; i < n; i++) {
		size_t want = sent[i] < posted[i] ? sent[i] : posted[i];

		CHECK((size_t)got[i] == want, "buffer %d of %d reports %d of %zu", i, n, got[i],
		      want);
		CHECK(rig_differ(g->to[i], want, (uint32_t)(n * 100 + i)) == want,
		      "buffer %d of %d", i, n);
		for (size_t b = want; b < ROOM; b++)
			CHECK(g->to[i][b] == 0, "buffer %d: byte %zu behind %zu was written", i, b,
			      want);
	}
}

/* A send whose tag is not in the receive at the head must wait, and must not disturb it. */
static void wrong_tag(struct group *g)
{
	void *data[2] = { g->to[0], g->to[1] }, *mhandles[2] = { g->to_mr[0], g->to_mr[1] };
	size_t posted[2] = { 16, 16 };
	int tags[2] = { 5, 6 }, got[2];
	void *recv = rig_irecvs(g->rig, g->pair->recv, 2, data, posted, tags, mhandles);
	void *first = rig_isend(g->rig, g->pair->send, g->from[0], 16, 6, g->from_mr[0]), *second,
	     *unknown = recv;

	for (int i = 0; i < 1000; i++) {
		OK(rig_raw_isend(g->rig, g->pair->send, g->from[1], 16, 77, g->from_mr[1],
				 &unknown));
		CHECK(!unknown, "a tag that nobody posted was taken");
	}
	second = rig_isend(g->rig, g->pair->send, g->from[1], 16, 5, g->from_mr[1]);
	rig_wait(g->rig, second, NULL);
	rig_wait(g->rig, first, NULL);
	rig_wait(g->rig, recv, got);
	CHECK(!memcmp(g->to[1], g->from[0], 16) && !memcmp(g->to[0], g->from[1], 16),
	      "the tags did not decide");
}

int main(int argc, char **argv)
{
	struct rig rig;
	struct rig_pair pair;
	struct group g = { .rig = &rig, .pair = &pair };
	struct ha_plugin_props props;

	rig_expect_calm();
	rig_open(&rig, argc, argv);
	OK(rig.plugin.abi->props(&rig.plugin, 0, &props));
	rig_pair_open(&rig, &pair);
	for (int i = 0; i < MAX; i++) {
		g.from[i] = malloc(ROOM);
		g.to[i] = malloc(ROOM);
		g.from_mr[i] = rig_reg(&rig, pair.send, g.from[i], ROOM);
		g.to_mr[i] = rig_reg(&rig, pair.recv, g.to[i], ROOM);
	}
	for (int round = 0; round < 40; round++)
		round_trip(&g, 1 + round % props.max_recvs);
	wrong_tag(&g);
	round_trip(&g, props.max_recvs);
	for (int i = 0; i < MAX; i++) {
		OK(rig.plugin.dereg(pair.send, g.from_mr[i]));
		OK(rig.plugin.dereg(pair.recv, g.to_mr[i]));
		free(g.from[i]);
		free(g.to[i]);
	}
	rig_check_calm();
	rig_pair_close(&rig, &pair);
	rig_close(&rig);
	return 0;
}
