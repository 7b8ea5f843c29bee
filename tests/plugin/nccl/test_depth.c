/* SPDX-License-Identifier: BSD-3-Clause */
/* 32 requests of 8 buffers in flight on one connection, finished in whatever order they are asked
 * about. */
#include "tests/plugin/nccl/rig.h"

#define REQUESTS 32
#define BYTES 512

int main(int argc, char **argv)
{
	static uint8_t from[REQUESTS][8][BYTES], to[REQUESTS][8][BYTES];
	void *send[REQUESTS][8], *recv[REQUESTS], *from_mr, *to_mr;
	struct ha_plugin_props props;
	struct rig rig;
	struct rig_pair pair;
	int n;

	rig_open(&rig, argc, argv);
	OK(rig.plugin.abi->props(&rig.plugin, 0, &props));
	n = props.max_recvs;
	rig_pair_open(&rig, &pair);
	from_mr = rig_reg(&rig, pair.send, from, sizeof(from));
	to_mr = rig_reg(&rig, pair.recv, to, sizeof(to));
	for (int round = 0; round < 20; round++) {
		memset(to, 0, sizeof(to));
		for (int r = 0; r < REQUESTS; r++) {
			void *data[8], *mhandles[8];
			size_t sizes[8];
			int tags[8];

			for (int i = 0; i < n; i++) {
				data[i] = to[r][i];
				mhandles[i] = to_mr;
				sizes[i] = BYTES;
				tags[i] = i;
				rig_fill(from[r][i], BYTES, (uint32_t)(round * 1000 + r * 8 + i));
			}
			recv[r] = rig_irecvs(&rig, pair.recv, n, data, sizes, tags, mhandles);
		}
		/* All receives are out before the first send, all sends before the first test. */
		for (int r = 0; r < REQUESTS; r++)
			for (int i = n - 1; i >= 0; i--)
				send[r][i] =
					rig_isend(&rig, pair.send, from[r][i], BYTES, i, from_mr);
		for (int k = 0; k < REQUESTS; k++) {
			int r = (k * 13 + round) % REQUESTS, s = (k * 7 + round) % REQUESTS,
			    sizes[8];

			rig_wait(&rig, recv[r], sizes);
			for (int i = 0; i < n; i++) {
				CHECK(sizes[i] == BYTES, "size %d", sizes[i]);
				CHECK(rig_differ(to[r][i], BYTES,
						 (uint32_t)(round * 1000 + r * 8 + i)) == BYTES,
				      "round %d, request %d, buffer %d", round, r, i);
				rig_wait(&rig, send[s][(i + k) % n], NULL);
			}
		}
	}
	OK(rig.plugin.dereg(pair.send, from_mr));
	OK(rig.plugin.dereg(pair.recv, to_mr));
	CHECK(rig_warnings() == 0, "%s", rig_last_warning());
	rig_pair_close(&rig, &pair);
	rig_close(&rig);
	return 0;
}
