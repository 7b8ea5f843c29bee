/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * iflush behind a receive into memory registered as a GPU's: a NULL request (nothing to do) or one
 * that completes; nothing to flush for receives of no bytes; *request is written in any case. NCCL
 * asks with sizes NULL in test().
 */
#include "tests/plugin/nccl/rig.h"

#define STALE ((void *)0xdeadbeef)

int main(int argc, char **argv)
{
	static uint8_t from[4096], to[8][4096];
	void *from_mr, *to_mr[8], *data[8], *request, *flush[40];
	int sizes[8], none[8] = { 0 }, nflush = 0;
	struct rig rig;
	struct rig_pair pair;

	rig_open(&rig, argc, argv);
	rig_pair_open(&rig, &pair);
	from_mr = rig_reg(&rig, pair.send, from, sizeof(from));
	for (int i = 0; i < 8; i++) {
		if (rig_reg_type(&rig, pair.recv, to[i], sizeof(to[i]), NCCL_PTR_CUDA, &to_mr[i]) !=
		    ncclSuccess) {
			/* A plugin may refuse what its device cannot reach; then ptrSupport must
			 * say so. */
			printf("GPU memory is refused on this machine; flushing host memory "
			       "instead\n");
			OK(rig_reg_type(&rig, pair.recv, to[i], sizeof(to[i]), NCCL_PTR_HOST,
					&to_mr[i]));
		}
		data[i] = to[i];
		sizes[i] = sizeof(to[i]);
	}
	for (int round = 0; round < 200; round++) {
		int i = round % 8;
		void *recv = rig_irecv(&rig, pair.recv, to[i], sizeof(to[i]), 0, to_mr[i]);

		rig_fill(from, sizeof(from), (uint32_t)round);
		rig_wait(&rig, rig_isend(&rig, pair.send, from, sizeof(from), 0, from_mr), NULL);
		rig_wait(&rig, recv, NULL);
		request = STALE;
		OK(rig.plugin.iflush(pair.recv, 1, &data[i], &sizes[i], &to_mr[i], &request));
		CHECK(request != STALE, "iflush did not write *request");
		if (request)
			rig_wait(&rig, request, NULL);
		CHECK(rig_differ(to[i], sizeof(to[i]), (uint32_t)round) == sizeof(to[i]),
		      "round %d", round);
	}
	/* A group; a group of empty receives. */
	request = STALE;
	OK(rig.plugin.iflush(pair.recv, 8, data, sizes, to_mr, &request));
	CHECK(request != STALE, "iflush did not write *request");
	if (request)
		rig_wait(&rig, request, NULL);
	request = STALE;
	OK(rig.plugin.iflush(pair.recv, 8, data, none, to_mr, &request));
	CHECK(!request, "nothing was received, yet there is a flush");
	/* As many at once as NCCL may have, finished backwards. */
	for (int i = 0; i < NCCL_NET_MAX_REQUESTS; i++) {
		request = STALE;
		OK(rig.plugin.iflush(pair.recv, 1, &data[i % 8], &sizes[i % 8], &to_mr[i % 8],
				     &request));
		CHECK(request != STALE, "iflush did not write *request");
		if (request)
			flush[nflush++] = request;
	}
	while (nflush)
		rig_wait(&rig, flush[--nflush], NULL);
	OK(rig.plugin.dereg(pair.send, from_mr));
	for (int i = 0; i < 8; i++)
		OK(rig.plugin.dereg(pair.recv, to_mr[i]));
	rig_pair_close(&rig, &pair);
	rig_close(&rig);
	return 0;
}
