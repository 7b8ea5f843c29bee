/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From v9 on: a receive posted with NCCL_NET_OPTIONAL_RECV_COMPLETION in *request is a request like
 * any other, done at the next test whether or not the data has come; the data still comes, in
 * order, also far beyond the ring.
 */
#include "tests/plugin/nccl/rig.h"

#include <sched.h>

#define MESSAGES 3000
#define DEPTH 8
#define TAG 3

/* An optional receive of 8 bytes. It is done before the sender has even been asked; the connection
 * may be busy with itself for a moment. If it waited for its data, the deadline would say so. */
static void recv_at_once(struct rig *rig, void *comm, void *data, void *mr,
			 struct rig_deadline *deadline)
{
	int tag = TAG, done = 0;
	long size = 8;
	void *request;

	do {
		request = (void *)NCCL_NET_OPTIONAL_RECV_COMPLETION;
		OK(rig_raw_irecv(rig, comm, 1, &data, &size, &tag, &mr, &request));
		CHECK(request != (void *)NCCL_NET_OPTIONAL_RECV_COMPLETION,
		      "the sentinel is still there");
		rig_pause(deadline);
	} while (!request);
	while (!done) {
		OK(rig->plugin.test(request, &done, NULL));
		rig_pause(deadline);
	}
}

int main(int argc, char **argv)
{
	static uint64_t from[DEPTH];
	static volatile uint64_t to[DEPTH];
	void *from_mr, *to_mr, *send[DEPTH] = { NULL };
	struct rig rig;
	struct rig_pair pair;

	/* on a software NIC a receive is complete when its data is there */
	setenv("HA_NCCL_POLL_ALWAYS", "0", 1);
	rig_expect_calm();
	rig_open(&rig, argc, argv);
	rig_pair_open(&rig, &pair);
	from_mr = rig_reg(&rig, pair.send, from, sizeof(from));
	to_mr = rig_reg(&rig, pair.recv, (void *)to, sizeof(to));
	for (uint64_t m = 0; m < MESSAGES; m++) {
		struct rig_deadline deadline = rig_deadline("an optional receive and its data");

		recv_at_once(&rig, pair.recv, (void *)&to[m % DEPTH], to_mr, &deadline);
		if (send[m % DEPTH])
			rig_wait(&rig, send[m % DEPTH], NULL);
		from[m % DEPTH] = m + 1;
		send[m % DEPTH] = rig_isend(&rig, pair.send, &from[m % DEPTH], 8, TAG, from_mr);
		while (__atomic_load_n(&to[m % DEPTH], __ATOMIC_ACQUIRE) != m + 1)
			rig_pause(&deadline);
	}
	for (int i = 0; i < DEPTH; i++)
		rig_wait(&rig, send[i], NULL);
	rig_exchange(&rig, &pair, 5000);
	OK(rig.plugin.dereg(pair.send, from_mr));
	OK(rig.plugin.dereg(pair.recv, to_mr));
	rig_check_calm();
	rig_pair_close(&rig, &pair);
	rig_close(&rig);
	return 0;
}
