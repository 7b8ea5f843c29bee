/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A profiler asks what carries a send while its only path is lost and the service thread is
 * destroying that path's queue pair: the answer comes from what is known of the incarnation, not
 * from an object that is going.
 */
#include "base/check.h"
#include "tests/plugin/pair.h"

#include "plugin/bundle.h"
#include "rdma/verbs/dlopen.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define SIZE 4096

enum step { NOT_YET, GOING, ASKED };

static struct ha_verbs_ops below, *library;
static struct ha_verbs_hot hot_below;
static atomic_bool lose;               /* the next data on its way */
static struct ibv_qp *_Atomic watched; /* whose end waits until the question has been asked */
static atomic_int step;

/* From here on the object may be gone at any moment; what its number is now shows who reads it. */
static int modify_qp(const struct ha_verbs_ops *v, struct ibv_qp *qp, struct ibv_qp_attr *attr,
		     int mask)
{
	uint32_t number = qp->qp_num;

	if (qp == atomic_load(&watched) && attr->qp_state == IBV_QPS_RESET) {
		atomic_store(&watched, NULL);
		qp->qp_num = ~number;
		atomic_store(&step, GOING);
		for (int k = 0; atomic_load(&step) != ASKED && k < PAIR_TRIES_MAX; k++)
			usleep(100);
		qp->qp_num = number;
	}
	return below.modify_qp(v, qp, attr, mask);
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	if (wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM && atomic_exchange(&lose, false))
		return 0;
	return hot_below.post_send(qp, wr, bad);
}

static int take_hot(const struct ha_verbs_ops *v, struct ibv_context *context,
		    struct ha_verbs_hot *hot)
{
	int err = below.hot(v, context, hot);

	hot_below = *hot;
	hot->post_send = post_send;
	return err;
}

static void post_message(struct pair *p, struct pair_side *s, struct pair_side *r)
{
	size_t size = SIZE;
	void *data = r->data;
	int tag = 0;

	for (int k = 0; !(s->req && r->req); k++) {
		CHECK(k < PAIR_TRIES_MAX);
		if (!r->req)
			CHECK_INT(ha_irecv(p->recv, 1, &data, &size, &tag, &r->mr, false, &r->req),
				  0);
		else
			CHECK_INT(ha_isend(p->send, s->data, SIZE, 0, s->mr, &s->req), 0);
		pair_idle(p, k);
	}
}

static struct ha_carried get_carried(struct pair *p, struct ha_request *req)
{
	struct ha_carried list[HA_MAX_RAILS];
	int n = -EAGAIN;

	for (int k = 0; n < 0; k++) {
		CHECK(k < PAIR_TRIES_MAX);
		n = ha_carried(req, 0, list);
		pair_idle(p, k);
	}
	CHECK_INT(n, 1);
	return list[0];
}

int main(void)
{
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	struct pair_side s = { .data = pair_alloc(SIZE) }, r = { .data = pair_alloc(SIZE) };
	struct ha_carried carried;
	struct ibv_qp *qp;
	uint32_t number;
	struct pair p;

	setenv("SOFTROCE_DEVICES", "127.162.1.0/24", 1);
	CHECK_INT(ha_verbs_open_library(getenv("HA_NCCL_VERBS"), &library), 0);
	below = *library;
	library->modify_qp = modify_qp;
	library->hot = take_hot;
	pair_open_over(&p, 0, library);
	CHECK_INT(ha_reg_mr((struct ha_bundle *)p.send, s.data, SIZE, HA_MEM_HOST, 0, -1, 0, &s.mr),
		  0);
	CHECK_INT(ha_reg_mr((struct ha_bundle *)p.recv, r.data, SIZE, HA_MEM_HOST, 0, -1, 0, &r.mr),
		  0);
	pair_messages(&p, &s, &r, 1, SIZE);
	qp = ((struct ha_bundle *)p.send)->rail[0].qp;
	number = qp->qp_num;
	s.req = r.req = NULL;
	atomic_store(&lose, true);
	post_message(&p, &s, &r);
	atomic_store(&watched, qp);
	CHECK_INT(below.modify_qp(library, qp, &error, IBV_QP_STATE), 0);
	for (int k = 0, done = 0; atomic_load(&step) != GOING; k++) {
		CHECK(k < PAIR_TRIES_MAX);
		CHECK_INT(ha_test(s.req, &done, NULL), 0);
		CHECK(!done);
		pair_idle(&p, k);
	}
	carried = get_carried(&p, s.req);
	atomic_store(&step, ASKED);
	CHECK_INT(carried.qp_num, number);
	CHECK(carried.lost);
	for (int k = 0, done = 0; !done; k++) {
		CHECK(k < PAIR_TRIES_MAX);
		CHECK_INT(ha_test(s.req, &done, NULL), 0);
		pair_idle(&p, k);
	}
	pair_close(&p);
	ha_verbs_close_library(library);
	return 0;
}
