/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * HA_NCCL_POLL_ALWAYS: who waits for what memory shows polls the NIC all the same, where the NIC
 * works inside polls. NCCL's proxy tests a receive that is complete at once no further, and asks
 * isend again until the peer's receive is there. On the software NIC nobody polled then: an
 * all-reduce of 8 bytes waited for threads to be woken, many times its own time.
 */
#include "base/check.h"
#include "tests/plugin/pair.h"

#include "plugin/bundle.h"
#include "rdma/verbs/dlopen.h"
#include "rdma/verbs/ops.h"

#include <stdlib.h>
#include <string.h>

#define SIZE 4096
#define CALLS 50 /* fewer than HA_NCCL_POLL_STANDBY_INTERVAL */

static int (*poll_below)(struct ibv_cq *cq, int n, struct ibv_wc *wc);
static __thread int polls; /* of this thread: not the service thread's */

static int poll_counted(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	polls++;
	return poll_below(cq, n, wc);
}

static void change_hot(struct ha_verbs_hot *hot)
{
	poll_below = hot->poll_cq;
	hot->poll_cq = poll_counted;
}

struct ends {
	struct pair pair;
	struct ha_verbs_ops *library;
	struct ha_mr *from_mr, *to_mr;
	char *from, *to;
};

static void ends_open(struct ends *e, const char *always)
{
	CHECK_INT(setenv("HA_NCCL_POLL_ALWAYS", always, 1), 0);
	e->library = pair_open_library(change_hot);
	pair_open_over(&e->pair, 0, e->library);
	e->from = pair_alloc(SIZE);
	e->to = pair_alloc(SIZE);
	CHECK_INT(ha_reg_mr((struct ha_bundle *)e->pair.send, e->from, SIZE, HA_MEM_HOST, 0, -1, 0,
			    &e->from_mr),
		  0);
	CHECK_INT(ha_reg_mr((struct ha_bundle *)e->pair.recv, e->to, SIZE, HA_MEM_HOST, 0, -1, 0,
			    &e->to_mr),
		  0);
}

static void ends_close(struct ends *e)
{
	CHECK_INT(ha_dereg_mr((struct ha_bundle *)e->pair.send, e->from_mr), 0);
	CHECK_INT(ha_dereg_mr((struct ha_bundle *)e->pair.recv, e->to_mr), 0);
	pair_close(&e->pair);
	ha_verbs_close_library(e->library);
}

static struct ha_request *post_receive(struct ends *e)
{
	struct ha_request *req = NULL;
	void *to = e->to;
	size_t size = SIZE;
	int tag = 0;

	for (int k = 0; !req && k < PAIR_TRIES_MAX; k++) {
		CHECK_INT(ha_irecv(e->pair.recv, 1, &to, &size, &tag, &e->to_mr, true, &req), 0);
		pair_idle(&e->pair, k);
	}
	CHECK(req);
	return req;
}

static struct ha_request *send_now(struct ends *e)
{
	struct ha_request *req = NULL;

	for (int k = 0; !req && k < PAIR_TRIES_MAX; k++) {
		CHECK_INT(ha_isend(e->pair.send, e->from, SIZE, 0, e->from_mr, &req), 0);
		pair_idle(&e->pair, k);
	}
	CHECK(req);
	return req;
}

static void finish_request(struct ends *e, struct ha_request *req)
{
	int done = 0;

	for (int k = 0; !done && k < PAIR_TRIES_MAX; k++) {
		CHECK_INT(ha_test(req, &done, NULL), 0);
		pair_idle(&e->pair, k);
	}
	CHECK(done);
}

/* Sends that no receive waits for. A call that finds the driver inside does nothing, so it is the
 * polls that count. */
static void check_sender_polls(struct ends *e)
{
	struct ha_request *req;

	polls = 0;
	for (int k = 0; polls < CALLS && k < PAIR_TRIES_MAX; k++) {
		CHECK_INT(ha_isend(e->pair.send, e->from, SIZE, 0, e->from_mr, &req), 0);
		CHECK(!req);
	}
	CHECK_INT(polls, CALLS);
}

static void check_receiver_polls(struct ends *e)
{
	struct ha_request *recv = post_receive(e), *send;
	int done = 0;

	polls = 0;
	for (int k = 0; polls < CALLS && k < PAIR_TRIES_MAX; k++) {
		CHECK_INT(ha_test(recv, &done, NULL), 0);
		CHECK(!done); /* nothing has been sent */
	}
	CHECK_INT(polls, CALLS);
	send = send_now(e);
	finish_request(e, recv);
	CHECK(e->to[0] == 'x' && e->to[SIZE - 1] == 'x');
	finish_request(e, send);
}

static void check_nobody_polls(struct ends *e)
{
	struct ha_request *recv, *send;
	int done = 0;

	finish_request(e, post_receive(e)); /* the first finds the connection's launch to look at */
	finish_request(e, send_now(e));
	recv = post_receive(e);
	polls = 0;
	for (int k = 0; !done && k < PAIR_TRIES_MAX; k++)
		CHECK_INT(ha_test(recv, &done, NULL), 0);
	CHECK(done); /* nothing has been sent */
	send = send_now(e);
	finish_request(e, send);
	polls = 0;
	for (int k = 0; k < CALLS; k++) {
		CHECK_INT(ha_isend(e->pair.send, e->from, SIZE, 0, e->from_mr, &send), 0);
		CHECK(!send);
	}
	/* the standby, when HA_NCCL_POLL_STANDBY_INTERVAL calls have found nothing */
	CHECK(polls <= 1);
}

int main(void)
{
	struct ends e;

	setenv("HA_NCCL_HEARTBEAT_MS", "60000", 1); /* a busy machine breaks no path */
	setenv("HA_NCCL_RTO_MS", "60000", 1);
	setenv("HA_NCCL_SILENCE_MS", "0", 1);
	ends_open(&e, "-1"); /* the NIC of this test is a software NIC */
	memset(e.from, 'x', SIZE);
	check_sender_polls(&e);
	check_receiver_polls(&e);
	ends_close(&e);
	ends_open(&e, "0");
	check_nobody_polls(&e);
	ends_close(&e);
	return 0;
}
