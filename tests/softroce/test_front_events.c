/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion channels and asynchronous events: descriptors, blocking, acknowledgement, removal with
 * the object. */
#include "tests/softroce/front_side.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <time.h>

static const struct side_options options;

static bool is_readable(int fd, int ms)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return poll(&pfd, 1, ms) == 1;
}

static void channel_nonblocking(struct side *side)
{
	struct ibv_cq *cq;
	void *context;
	int flags = fcntl(side->channel->fd, F_GETFL);

	CHECK(!fcntl(side->channel->fd, F_SETFL, flags | O_NONBLOCK));
	CHECK(ibv_get_cq_event(side->channel, &cq, &context) == -1 && errno == EAGAIN);
	CHECK(!is_readable(side->channel->fd, 0));
	CHECK(!fcntl(side->channel->fd, F_SETFL, flags));
}

/* Blocks in ibv_get_cq_event(): the worker must wake it. */
static void run_receiver(int fd)
{
	struct side side;
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;

	side_open(&side, fd, &options);
	channel_nonblocking(&side);
	for (int i = 0; i < 8; i++)
		side_post_recv(&side, i, i * 64, 64);
	CHECK(ibv_destroy_comp_channel(side.channel) == EBUSY);
	side_connect(&side, &options);
	for (int i = 0; i < 8; i++) {
		CHECK(!ibv_req_notify_cq(side.cq, 0));
		CHECK(ibv_poll_cq(side.cq, 1, &wc) == 0);
		side_meet(&side); /* now the other end sends */
		CHECK(!ibv_get_cq_event(side.channel, &cq, &context));
		CHECK(cq == side.cq && context == &side);
		CHECK(!is_readable(side.channel->fd, 0));
		CHECK(ibv_poll_cq(side.cq, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS &&
		      wc.wr_id == (uint64_t)i);
		CHECK(ibv_poll_cq(side.cq, 1, &wc) == 0);
	}
	ibv_ack_cq_events(side.cq, 8);
	/* An event nobody fetches goes with its completion queue. */
	side_post_recv(&side, 9, 0, 64);
	CHECK(!ibv_req_notify_cq(side.cq, 0));
	side_meet(&side);
	CHECK(is_readable(side.channel->fd, 10000));
	side_meet(&side);
	side_close(&side);
}

static void run_sender(int fd)
{
	struct side side;
	struct ibv_wc wc;

	side_open(&side, fd, &options);
	side_connect(&side, &options);
	for (int i = 0; i < 9; i++) {
		side_meet(&side);
		side_post_send(&side, IBV_WR_SEND, i, 0, 64);
		CHECK(side_wait(&side, &wc, 10000) && wc.status == IBV_WC_SUCCESS);
	}
	side_meet(&side);
	side_close(&side);
}

struct late_ack {
	struct ibv_cq *cq;
	struct timespec at;
};

static void *ack_later(void *arg)
{
	struct late_ack *late = arg;
	const struct timespec nap = { .tv_nsec = 50000000 };

	nanosleep(&nap, NULL);
	clock_gettime(CLOCK_MONOTONIC, &late->at);
	ibv_ack_cq_events(late->cq, 1);
	return NULL;
}

/* A queue pair put into the error state flushes: an event that is acknowledged late holds up the
 * destruction. */
static void destroy_waits(void)
{
	struct side side;
	struct late_ack late;
	struct timespec done;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;
	pthread_t thread;

	side_open(&side, -1, &options);
	CHECK(!ibv_req_notify_cq(side.cq, 0));
	side_post_recv(&side, 1, 0, 64);
	CHECK(!ibv_modify_qp(side.qp, &attr, IBV_QP_STATE));
	CHECK(!ibv_get_cq_event(side.channel, &cq, &context));
	CHECK(side_wait(&side, &wc, 20000) && wc.status == IBV_WC_WR_FLUSH_ERR);
	late.cq = cq;
	CHECK(!pthread_create(&thread, NULL, ack_later, &late));
	CHECK(!ibv_destroy_qp(side.qp));
	CHECK(!ibv_destroy_cq(side.cq));
	clock_gettime(CLOCK_MONOTONIC, &done);
	pthread_join(thread, NULL);
	CHECK(done.tv_sec > late.at.tv_sec ||
	      (done.tv_sec == late.at.tv_sec && done.tv_nsec >= late.at.tv_nsec));
	CHECK(!ibv_destroy_comp_channel(side.channel));
	CHECK(!ibv_dereg_mr(side.mr));
	CHECK(!ibv_dealloc_pd(side.pd));
	CHECK(!ibv_close_device(side.context));
	ibv_free_device_list(side.list);
	free(side.buf);
}

int main(void)
{
	side_isolate("127.71.0.0/24");
	side_run(run_receiver, run_sender);
	destroy_waits();
	return 0;
}
