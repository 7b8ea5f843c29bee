/* SPDX-License-Identifier: BSD-3-Clause */
/* Whoever polls an empty completion queue offers its processor to others, and with
 * SOFTROCE_BUSY_POLL=1 never does. The calls that would do it are this program's own and count. */
#include "tests/base/share.h"
#include "tests/softroce/front_side.h"

#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define POLLS 1000
#define QUEUES 64
#define PASSES 100

#define ABSENT_NS 100000 /* a thread that was away for so long has waited for nothing */
#define LOST 4           /* passes without an offer after that */
#define ABSENCES_MAX 5
#define TRIES 1000

static const struct side_options options;
static __thread unsigned offers;                   /* of this thread */
static __thread struct timespec offered, taken_up; /* the last one: its begin and end */

__attribute__((visibility("default"))) int sched_yield(void)
{
	int result;

	offers++;
	clock_gettime(CLOCK_MONOTONIC, &offered);
	result = (int)syscall(SYS_sched_yield);
	clock_gettime(CLOCK_MONOTONIC, &taken_up);
	return result;
}

__attribute__((visibility("default"))) int ppoll(struct pollfd *fds, nfds_t n,
						 const struct timespec *timeout,
						 const sigset_t *mask)
{
	struct timespec left = timeout ? *timeout : (struct timespec) { 0 };
	int result;

	offers++;
	clock_gettime(CLOCK_MONOTONIC, &offered);
	result = (int)syscall(SYS_ppoll, fds, n, timeout ? &left : NULL, mask, sizeof(uint64_t));
	clock_gettime(CLOCK_MONOTONIC, &taken_up);
	return result;
}

static long ns_between(struct timespec from, struct timespec to)
{
	return (to.tv_sec - from.tv_sec) * 1000000000 + to.tv_nsec - from.tv_nsec;
}

/*
 * Polls each queue so many times, in turn. The offers of that, and how often this thread was away
 * meanwhile without having offered anything (the machine is busy): then the NIC counts anew.
 */
static unsigned poll_all(struct ibv_cq **queues, int n, int passes, unsigned *absences)
{
	unsigned before = offers;
	struct timespec since, begin, end;
	struct ibv_wc wc;

	*absences = 0;
	clock_gettime(CLOCK_MONOTONIC, &since);
	for (int i = 0; i < passes * n; i++) {
		unsigned had = offers;

		clock_gettime(CLOCK_MONOTONIC, &begin);
		CHECK(ibv_poll_cq(queues[i % n], 1, &wc) == 0);
		clock_gettime(CLOCK_MONOTONIC, &end);
		*absences += ns_between(since, had == offers ? end : offered) > ABSENT_NS;
		since = had == offers ? begin : taken_up;
	}
	return offers - before;
}

/* Tries until this thread was hardly ever away. The offers of so many passes, at the least and at
 * the most. */
static void must_offer(struct ibv_cq **queues, int n, int passes)
{
	unsigned absences = 0, made = 0;

	for (int i = 0; i < TRIES; i++) {
		made = poll_all(queues, n, passes, &absences);
		CHECK(made <= (unsigned)passes);
		if (absences <= ABSENCES_MAX)
			break;
	}
	printf("%d passes over %d empty queues: %u offers; away %u times\n", passes, n, made,
	       absences);
	if (absences > ABSENCES_MAX) {
		printf("machine too busy: away %u times in %d passes\n", absences, passes);
		exit(SHARE_BUSY_STATUS);
	}
	CHECK(made + LOST * (absences + 1) >= (unsigned)passes);
}

static void poll_one(int fd)
{
	struct side side;

	CHECK(!setenv("SOFTROCE_BUSY_POLL", "0", 1));
	side_open(&side, fd, &options);
	must_offer(&side.cq, 1, POLLS);
	side_close(&side);
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

/* One that goes through them once, some polls of each at a time, waits for none. */
static void must_not_wait(struct ibv_cq **queues)
{
	unsigned before = offers;
	struct ibv_wc wc;

	for (int i = 0; i < 3 * QUEUES; i++)
		CHECK(ibv_poll_cq(queues[i / 3], 1, &wc) == 0);
	CHECK(offers - before <= 3); /* at the first queue, after passes over all of them */
}

/* A thread that polls many queues in turn, as a driver of many connections does, has found nothing
 * anywhere only when it is through with all of them: one offer for each pass, not for each poll. */
static void poll_many(int fd)
{
	struct ibv_cq *empty[QUEUES];
	struct side side;

	side_open(&side, fd, &options);
	for (int k = 0; k < QUEUES; k++)
		CHECK((empty[k] = ibv_create_cq(side.context, 1, NULL, NULL, 0)) != NULL);
	must_offer(empty, QUEUES, PASSES);
	must_not_wait(empty);
	for (int k = 0; k < QUEUES; k++)
		CHECK(!ibv_destroy_cq(empty[k]));
	side_close(&side);
}

static void poll_politely(int fd)
{
	poll_one(fd);
	poll_beside_work(fd);
	poll_many(fd);
}

static void poll_busily(int fd)
{
	struct side side;
	unsigned absences;

	CHECK(!setenv("SOFTROCE_BUSY_POLL", "1", 1));
	side_open(&side, fd, &options);
	CHECK(poll_all(&side.cq, 1, POLLS, &absences) == 0);
	side_close(&side);
}

int main(void)
{
	side_isolate("127.79.0.0/24");
	side_run(poll_politely, poll_busily);
	return 0;
}
