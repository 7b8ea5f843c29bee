/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * 2^20 requests through one connection: every counter that could wrap or run dry has done so. Each
 * message is checked.
 */
#include "tests/plugin/nccl/rig.h"

#include <unistd.h>

#define REQUESTS (1u << 20) /* as many sends and as many receives make two of each message */
#define DEPTH 32

int main(int argc, char **argv)
{
	static uint64_t from[DEPTH], to[DEPTH];
	void *send[DEPTH], *recv[DEPTH], *from_mr, *to_mr;
	uint64_t messages = (argc > 2 ? strtoull(argv[2], NULL, 0) : REQUESTS) / 2;
	struct rig rig;
	struct rig_pair pair;

	rig_expect_calm();
	rig_open(&rig, argc, argv);
	/* no call, but all of them together take their time: ctest's limit is the only one */
	alarm(0);
	rig_pair_open(&rig, &pair);
	from_mr = rig_reg(&rig, pair.send, from, sizeof(from));
	to_mr = rig_reg(&rig, pair.recv, to, sizeof(to));
	for (uint64_t m = 0; m < messages + DEPTH; m++) {
		unsigned i = m % DEPTH;

		if (m >= DEPTH) {
			rig_wait(&rig, recv[i], NULL);
			rig_wait(&rig, send[i], NULL);
			CHECK(to[i] == m - DEPTH, "message %lu is %lu", (unsigned long)(m - DEPTH),
			      (unsigned long)to[i]);
		}
		if (m >= messages)
			continue;
		from[i] = m;
		recv[i] = rig_irecv(&rig, pair.recv, &to[i], 8, 0, to_mr);
		send[i] = rig_isend(&rig, pair.send, &from[i], 8, 0, from_mr);
	}
	OK(rig.plugin.dereg(pair.send, from_mr));
	OK(rig.plugin.dereg(pair.recv, to_mr));
	rig_check_calm();
	rig_pair_close(&rig, &pair);
	rig_close(&rig);
	return 0;
}
