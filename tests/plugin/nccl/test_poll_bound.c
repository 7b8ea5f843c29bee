/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One test() handles at most HA_NCCL_TEST_MAX_POLL completions. With the bound at 4 and 32 messages
 * already delivered, the last request cannot be done before the eighth test; without a bound it
 * would be done at the first. The messages are longer than what HA_NCCL_COPY_MAX copies, whose
 * sends are complete when they are posted, whatever the environment sets.
 */
#include "tests/plugin/nccl/rig.h"

#include <unistd.h>

#define MESSAGES 32
#define BOUND 4
#define WORDS 9

static int tests_until_done(struct rig *rig, void *request)
{
	struct rig_deadline deadline = rig_deadline("test");
	int done = 0, n = 0;

	while (!done) {
		OK(rig->plugin.test(request, &done, NULL));
		n++;
		rig_pause(&deadline);
	}
	return n;
}

int main(int argc, char **argv)
{
	static uint64_t from[MESSAGES][WORDS], to[MESSAGES][WORDS];
	void *from_mr, *to_mr, *send[MESSAGES], *recv[MESSAGES];
	struct rig_deadline deadline;
	struct rig rig;
	struct rig_pair pair;

	setenv("HA_NCCL_TEST_MAX_POLL", "4", 1);
	setenv("HA_NCCL_POLL_BATCH", "2", 1);
	/* The service thread looks at the queues as well, now and then; here it must not be the one
	 * who finds the completions. */
	setenv("HA_NCCL_ENABLE_BACKUP", "0", 1);
	setenv("HA_NCCL_HEARTBEAT_MS", "60000", 1);
	setenv("HA_NCCL_RTO_MS", "60000", 1);
	setenv("HA_NCCL_SILENCE_MS", "0", 1);
	/* 8.6 s: the NIC is a thread, which a busy machine lets wait */
	setenv("HA_NCCL_QP_TIMEOUT", "18", 1);
	rig_open(&rig, argc, argv);
	rig_pair_open(&rig, &pair);
	from_mr = rig_reg(&rig, pair.send, from, sizeof(from));
	to_mr = rig_reg(&rig, pair.recv, to, sizeof(to));
	for (int i = 0; i < MESSAGES; i++) {
		from[i][WORDS - 1] = (uint64_t)i + 1;
		recv[i] = rig_irecv(&rig, pair.recv, to[i], sizeof(to[i]), 0, to_mr);
	}
	for (int i = 0; i < MESSAGES; i++)
		send[i] = rig_isend(&rig, pair.send, from[i], sizeof(from[i]), 0, from_mr);
	deadline = rig_deadline("the data of the last message");
	while (__atomic_load_n(&to[MESSAGES - 1][WORDS - 1], __ATOMIC_ACQUIRE) != MESSAGES)
		rig_pause(&deadline);
	usleep(200000); /* for the completions behind the data, at both ends */
	CHECK(tests_until_done(&rig, recv[MESSAGES - 1]) >= MESSAGES / BOUND,
	      "one test handled more than %d", BOUND);
	CHECK(tests_until_done(&rig, send[MESSAGES - 1]) >= MESSAGES / BOUND,
	      "one test handled more than %d", BOUND);
	for (int i = 0; i < MESSAGES - 1; i++) {
		rig_wait(&rig, recv[i], NULL);
		rig_wait(&rig, send[i], NULL);
	}
	OK(rig.plugin.dereg(pair.send, from_mr));
	OK(rig.plugin.dereg(pair.recv, to_mr));
	rig_pair_close(&rig, &pair);
	rig_close(&rig);
	return 0;
}
