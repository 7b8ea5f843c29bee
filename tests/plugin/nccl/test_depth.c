/* SPDX-License-Identifier: BSD-3-Clause */
/* 32 requests of 8 buffers in flight on one connection, finished in whatever order they are asked
 * about. */
#include "tests/plugin/nccl/rig.h"

#define REQUESTS 32
#define BYTES 512

static uint8_t from[REQUESTS][8][BYTES], to[REQUESTS][8][BYTES];

static uint32_t seed_of(int round, int request, int buffer)
{
	return (uint32_t)(round * 1000 + request * 8 + buffer);
}

/* A receive of n buffers, whose data are ready to be sent. */
static void *post_recv(struct rig *rig, void *comm, void *mr, int n, int round, int r)
{
	void *data[8], *mhandles[8];
	size_t sizes[8];
	int tags[8];

	for (int i = 0; i < n; i++) {
		data[i] = to[r][i];
		mhandles[i] = mr;
		sizes[i] = BYTES;
		tags[i] = i;
		rig_fill(from[r][i], BYTES, seed_of(round, r, i));
	}
	return rig_irecvs(rig, comm, n, data, sizes, tags, mhandles);
}

static void one_round(struct rig *rig, struct rig_pair *pair, void *from_mr, void *to_mr, int n,
		      int round)
{
	void *send[REQUESTS][8], *recv[REQUESTS];

	memset(to, 0, sizeof(to));
	for (int r = 0; r < REQUESTS; r++)
		recv[r] = post_recv(rig, pair->recv, to_mr, n, round, r);
	/* All receives are out before the first send, all sends before the first test. */
	for (int r = 0; r < REQUESTS; r++)
		for (int i = n - 1; i >= 0; i--)
			send[r][i] = rig_isend(rig, pair->send, from[r][i], BYTES, i, from_mr);
	for (int k = 0; k < REQUESTS; k++) {
		int r = (k * 13 + round) % REQUESTS, s = (k * 7 + round) % REQUESTS, sizes[8];

		rig_wait(rig, recv[r], sizes);
		for (int i = 0; i < n; i++) {
			CHECK(sizes[i] == BYTES, "size %d", sizes[i]);
			CHECK(rig_differ(to[r][i], BYTES, seed_of(round, r, i)) == BYTES,
			      "round %d, request %d, buffer %d", round, r, i);
			rig_wait(rig, send[s][(i + k) % n], NULL);
		}
	}
}

int main(int argc, char **argv)
{
	struct ha_plugin_props props;
	void *from_mr, *to_mr;
	struct rig rig;
	struct rig_pair pair;

	rig_expect_calm();
	rig_open(&rig, argc, argv);
	OK(rig.plugin.abi->props(&rig.plugin, 0, &props));
	rig_pair_open(&rig, &pair);
	from_mr = rig_reg(&rig, pair.send, from, sizeof(from));
	to_mr = rig_reg(&rig, pair.recv, to, sizeof(to));
	for (int round = 0; round < 20; round++)
		one_round(&rig, &pair, from_mr, to_mr, props.max_recvs, round);
	OK(rig.plugin.dereg(pair.send, from_mr));
	OK(rig.plugin.dereg(pair.recv, to_mr));
	rig_check_calm();
	rig_pair_close(&rig, &pair);
	rig_close(&rig);
	return 0;
}
