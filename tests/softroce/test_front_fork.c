/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fork() while devices are open: the child cannot use the parent's objects and does not disturb
 * them, can tidy them up, and gets a NIC of its own with another address; the parent's connection
 * goes on.
 */
#include "tests/softroce/front_side.h"

#include <errno.h>
#include <sys/wait.h>

static const struct side_options options;

/* ThreadSanitizer cannot follow a child that starts threads; there it only sees what the child does
 * without a NIC. */
#ifdef __SANITIZE_THREAD__
#define CHILD_OPENS false
#else
#define CHILD_OPENS true
#endif

static void child_run(struct side *parents, union ibv_gid parents_gid)
{
	struct side own;
	struct ibv_wc wc;
	struct ibv_sge sge = { 0 };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = &sge }, *bad;

	CHECK(ibv_post_send(parents->qp, &wr, &bad) == EIO && bad == &wr);
	CHECK(ibv_poll_cq(parents->cq, 1, &wc) == 0);
	CHECK(!ibv_alloc_pd(parents->context) && errno == EIO);
	if (CHILD_OPENS) {
		side_open(&own, -1, &options);
		CHECK(memcmp(&own.gid, &parents_gid, sizeof(own.gid)));
		CHECK(ibv_post_send(parents->qp, &wr, &bad) == EIO);
		side_close(&own);
	}
	side_close(parents);
}

static void exchange_writes(struct side *side, bool first)
{
	struct ibv_wc wc;

	for (int i = 0; i < 200; i++) {
		if (first)
			side_post_send(side, IBV_WR_RDMA_WRITE, i, 0, 65536);
		if (first)
			CHECK(side_wait(side, &wc, 10000) && wc.status == IBV_WC_SUCCESS);
	}
	side_meet(side);
}

static void run_parent(int fd)
{
	struct side side;
	int status;
	pid_t child;

	side_open(&side, fd, &options);
	side_connect(&side, &options);
	exchange_writes(&side, true);
	for (int i = 0; i < 5; i++) {
		child = fork();
		CHECK(child >= 0);
		if (!child) {
			child_run(&side, side.gid);
			_exit(0);
		}
		side_post_send(&side, IBV_WR_RDMA_WRITE, 1, 0, 65536);
		CHECK(waitpid(child, &status, 0) == child);
		CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
		{
			struct ibv_wc wc;

			CHECK(side_wait(&side, &wc, 10000) && wc.status == IBV_WC_SUCCESS);
		}
	}
	exchange_writes(&side, true);
	side_close(&side);
}

static void run_peer(int fd)
{
	struct side side;

	side_open(&side, fd, &options);
	side_connect(&side, &options);
	exchange_writes(&side, false);
	exchange_writes(&side, false);
	side_close(&side);
}

int main(void)
{
	side_isolate("127.74.0.0/24");
	side_run(run_parent, run_peer);
	return 0;
}
