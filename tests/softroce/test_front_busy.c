/* SPDX-License-Identifier: BSD-3-Clause */
/* Whoever polls an empty completion queue offers its processor to others, and with
 * SOFTROCE_BUSY_POLL=1 never does. The calls that would do it are this program's own and count. */
#include "tests/softroce/front_side.h"

#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define POLLS 1000
#define QUEUES 64
#define PASSES 100

static const struct side_options options;
static __thread unsigned offers; /* of this thread */

__attribute__((visibility("default"))) int sched_yield(void)
{
	offers++;
	return (int)syscall(SYS_sched_yield);
}

__attribute__((visibility("default"))) int ppoll(struct pollfd *fds, nfds_t n,
						 const struct timespec *timeout,
						 const sigset_t *mask)
{
	struct timespec left = timeout ? *timeout : (struct timespec) { 0 };

	offers++;
	return (int)syscall(SYS_ppoll, fds, n, timeout ? &left : NULL, mask, sizeof(uint64_t));
}

/* Offers in so many polls of an empty queue, with the variable set so. */
static unsigned offers_in_polls(int fd, const char *busy)
{
	struct ibv_wc wc;
	struct side side;
	unsigned before;

	CHECK(!setenv("SOFTROCE_BUSY_POLL", busy, 1));
	side_open(&side, fd, &options);
	before = offers;
	for (int i = 0; i < POLLS; i++)
		CHECK(ibv_poll_cq(side.cq, 1, &wc) == 0);
	before = offers - before;
	side_close(&side);
	printf("%d polls of an empty queue, SOFTROCE_BUSY_POLL=%s: %u offers\n", POLLS, busy,
	       before);
	return before;
}

/*
 * A thread that finds something on one queue each time is not idle because another stays empty. A
 * queue pair in ERR completes each receive at once.
 */
static void poll_beside_work(int fd)
{
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	struct ibv_cq *empty;
	struct ibv_wc wc;
	struct side side;
	unsigned before;

	side_open(&side, fd, &options);
	empty = ibv_create_cq(side.context, 1, NULL, NULL, 0);
	CHECK(empty);
	CHECK(!ibv_modify_qp(side.qp, &error, IBV_QP_STATE));
	before = offers;
	for (int i = 0; i < POLLS; i++) {
		side_post_recv(&side, 1, 0, 64);
		CHECK(ibv_poll_cq(side.cq, 1, &wc) == 1 && wc.status == IBV_WC_WR_FLUSH_ERR);
		CHECK(ibv_poll_cq(empty, 1, &wc) == 0);
	}
	CHECK(offers == before);
	CHECK(!ibv_destroy_cq(empty));
	side_close(&side);
}

/* A thread that polls many queues in turn, as a driver of many connections does, has found nothing
 * anywhere only when it is through with all of them: one offer for each pass, not for each poll. */
static void poll_many(int fd)
{
	struct ibv_cq *empty[QUEUES];
	struct ibv_wc wc;
	struct side side;
	unsigned before;

	side_open(&side, fd, &options);
	for (int k = 0; k < QUEUES; k++)
		CHECK((empty[k] = ibv_create_cq(side.context, 1, NULL, NULL, 0)) != NULL);
	before = offers;
	for (int i = 0; i < PASSES; i++)
		for (int k = 0; k < QUEUES; k++)
			CHECK(ibv_poll_cq(empty[k], 1, &wc) == 0);
	before = offers - before;
	printf("%d passes over %d empty queues: %u offers\n", PASSES, QUEUES, before);
	CHECK(before > PASSES / 2 && before <= PASSES);
	for (int k = 0; k < QUEUES; k++)
		CHECK(!ibv_destroy_cq(empty[k]));
	side_close(&side);
}

static void poll_politely(int fd)
{
	CHECK(offers_in_polls(fd, "0") > POLLS / 2);
	poll_beside_work(fd);
	poll_many(fd);
}

static void poll_busily(int fd)
{
	CHECK(offers_in_polls(fd, "1") == 0);
}

int main(void)
{
	side_isolate("127.79.0.0/24");
	side_run(poll_politely, poll_busily);
	return 0;
}
