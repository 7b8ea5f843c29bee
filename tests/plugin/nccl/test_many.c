/* SPDX-License-Identifier: BSD-3-Clause */
/* 256 connections in one process, connected all at once, used all at once, closed in another
 * order. */
#include "tests/plugin/nccl/rig.h"

#define CONNECTIONS 256

static struct rig_pair pair[CONNECTIONS];

int main(int argc, char **argv)
{
	static uint32_t from[CONNECTIONS][64], to[CONNECTIONS][64];
	static void *from_mr[CONNECTIONS], *to_mr[CONNECTIONS], *send[CONNECTIONS],
		*recv[CONNECTIONS];
	struct rig rig;

	rig_expect_calm();
	rig_open(&rig, argc, argv);
	rig_pairs_open(&rig, pair, CONNECTIONS, 0, rig.plugin.devices);
	for (int i = 0; i < CONNECTIONS; i++) {
		from_mr[i] = rig_reg(&rig, pair[i].send, from[i], sizeof(from[i]));
		to_mr[i] = rig_reg(&rig, pair[i].recv, to[i], sizeof(to[i]));
		rig_fill(from[i], sizeof(from[i]), (uint32_t)i);
		recv[i] = rig_irecv(&rig, pair[i].recv, to[i], sizeof(to[i]), i, to_mr[i]);
	}
	for (int i = CONNECTIONS - 1; i >= 0; i--)
		send[i] = rig_isend(&rig, pair[i].send, from[i], sizeof(from[i]), i, from_mr[i]);
	for (int i = 0; i < CONNECTIONS; i++) {
		rig_wait(&rig, recv[i], NULL);
		rig_wait(&rig, send[i], NULL);
		CHECK(rig_differ(to[i], sizeof(to[i]), (uint32_t)i) == sizeof(to[i]),
		      "connection %d", i);
	}
	for (int k = 0; k < CONNECTIONS; k++) {
		int i = (k * 37) % CONNECTIONS;

		OK(rig.plugin.dereg(pair[i].send, from_mr[i]));
		OK(rig.plugin.dereg(pair[i].recv, to_mr[i]));
		rig_pair_close(&rig, &pair[i]);
	}
	rig_check_calm();
	rig_close(&rig);
	return 0;
}
