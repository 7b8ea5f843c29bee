/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues: arming, overrun, resizing, capacity. */
#include "tests/softroce/engine_pair.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

static void open_cqe(struct pair *p, int cqe)
{
	struct options opt = default_options;

	opt.cqe = cqe;
	pair_open(p, &opt);
	pair_connect(p, IBV_QPS_RTS);
}

static void send_one(struct pair *p, enum ibv_wr_opcode opcode, unsigned flags)
{
	struct ibv_sge list = make_sge(&p->end[0], 0, 10);
	struct ibv_send_wr wr = send_wr(opcode, 1, &list, 1);

	wr.send_flags |= flags;
	set_remote_address(&wr, &p->end[1], 0);
	CHECK_INT(post_wr(p, 0, &wr), 0);
	run_for(p, 100000);
}

static void arming_is_once(void)
{
	struct ibv_wc wc;
	struct end *b;
	struct pair p;

	open_cqe(&p, 100);
	b = &p.end[1];
	for (int i = 0; i < 20; i++)
		CHECK_INT(post_recv(b, 1, 0, 100), 0);
	send_one(&p, IBV_WR_SEND, 0);
	CHECK_INT(b->n_completions, 0); /* not armed */
	sr_cq_arm(b->rcq, false);
	CHECK_INT(b->n_completions, 0); /* for the next one, not for what is there */
	send_one(&p, IBV_WR_SEND, 0);
	send_one(&p, IBV_WR_SEND, 0);
	CHECK_INT(b->n_completions, 1); /* once */
	sr_cq_arm(b->rcq, true);
	send_one(&p, IBV_WR_SEND, 0);
	CHECK_INT(b->n_completions, 1);
	send_one(&p, IBV_WR_SEND, IBV_SEND_SOLICITED);
	CHECK_INT(b->n_completions, 2);
	sr_cq_arm(b->rcq, true);
	send_one(&p, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_SEND_SOLICITED);
	CHECK_INT(b->n_completions, 3);
	sr_cq_arm(b->rcq, false);
	sr_cq_arm(b->rcq, true); /* does not weaken the first */
	send_one(&p, IBV_WR_SEND, 0);
	CHECK_INT(b->n_completions, 4);
	sr_cq_arm(b->rcq, true);
	pair_to_state(&p, 1, b->qp, 0, IBV_QPS_ERR); /* errors always count as solicited */
	CHECK_INT(b->n_completions, 5);
	while (sr_cq_poll(b->rcq, 1, &wc))
		;
	CHECK_INT(sr_cq_poll(b->rcq, 0, &wc), 0);
	CHECK_INT(sr_cq_poll(b->rcq, -1, &wc), 0);
	CHECK(sr_cq_user(b->rcq) == b);
	pair_close(&p);
}

/* One completion too many: the queue is in error, and so is every queue pair that reports to it;
 * others live. */
static void overrun_is_an_error(void)
{
	struct sr_qp_init init = { .type = IBV_QPT_RC };
	struct ibv_wc wc[20];
	struct sr_cq *other_cq;
	struct sr_qp *other;
	struct pair p;
	struct end *a;
	int err;

	open_cqe(&p, 8);
	a = &p.end[0];
	other_cq = sr_cq_create(a->nic, 8, NULL, &err);
	init.send_cq = init.recv_cq = other_cq;
	other = sr_qp_create(a->pd, &init, &err);
	pair_to_state(&p, 0, other, 5, IBV_QPS_RTS);
	for (int i = 0; i < 8; i++)
		send_one(&p, IBV_WR_RDMA_WRITE, 0);
	CHECK_INT(a->n_events, 0);
	CHECK_INT(sr_qp_state(a->qp), IBV_QPS_RTS);
	send_one(&p, IBV_WR_RDMA_WRITE, 0);
	CHECK_INT(count_events(a, IBV_EVENT_CQ_ERR), 1);
	CHECK_INT(count_events(a, IBV_EVENT_QP_FATAL), 1);
	CHECK_INT(a->n_events, 2);
	CHECK(a->objects[0] == a);
	CHECK_INT(sr_qp_state(a->qp), IBV_QPS_ERR);
	CHECK_INT(sr_qp_state(other), IBV_QPS_RTS);
	CHECK_INT(sr_cq_poll(a->scq, 20, wc), 8); /* what was in it can still be read */
	for (int i = 0; i < 8; i++)
		CHECK_INT(wc[i].status, IBV_WC_SUCCESS);
	CHECK_INT(post_wr(&p, 0, &(struct ibv_send_wr) { .opcode = IBV_WR_SEND }), 0);
	CHECK(sr_cq_empty(a->scq)); /* nothing enters any more */
	CHECK_INT(a->n_events, 2);
	pair_close(&p);
}

static void resizing_keeps_completions(void)
{
	struct ibv_wc wc;
	struct pair p;
	struct end *a;
	int err;

	open_cqe(&p, 8);
	a = &p.end[0];
	for (int i = 0; i < 8; i++)
		send_one(&p, IBV_WR_RDMA_WRITE, 0);
	CHECK_INT(sr_cq_resize(a->scq, 7), -EINVAL);
	CHECK_INT(sr_cq_resize(a->scq, 0), -EINVAL);
	CHECK_INT(sr_cq_resize(a->scq, 1 << 30), -EINVAL);
	CHECK_INT(sr_cq_resize(a->scq, 20), 0);
	CHECK_INT(sr_cq_capacity(a->scq), 20);
	for (int i = 0; i < 12; i++)
		send_one(&p, IBV_WR_RDMA_WRITE, 0);
	CHECK_INT(a->n_events, 0);
	for (int i = 0; i < 19; i++)
		CHECK_INT(sr_cq_poll(a->scq, 1, &wc), 1);
	CHECK_INT(sr_cq_resize(a->scq, 1), 0);
	CHECK_INT(sr_cq_poll(a->scq, 1, &wc), 1);
	CHECK(sr_cq_empty(a->scq));
	CHECK(!sr_cq_create(a->nic, 0, NULL, &err) && err == -EINVAL);
	CHECK(!sr_cq_create(a->nic, 1 << 30, NULL, &err) && err == -EINVAL);
	pair_close(&p);
}

struct watcher {
	struct pair *p;
	pthread_mutex_t lock;
	atomic_bool failed;
};

/* Without the lock until sr_cq_empty() says that there is something; then the message's bytes must
 * be there. */
static void *watch_cq(void *arg)
{
	struct watcher *w = arg;
	struct end *b = &w->p->end[1];
	struct ibv_wc wc;

	for (unsigned i = 0; i < 500; i++) {
		while (sr_cq_empty(b->rcq))
			sched_yield();
		if (b->buf[i] != (uint8_t)(i | 1))
			w->failed = true;
		pthread_mutex_lock(&w->lock);
		CHECK_INT(sr_cq_poll(b->rcq, 1, &wc), 1);
		pthread_mutex_unlock(&w->lock);
	}
	return NULL;
}

static void two_threads(void)
{
	struct pair p;
	struct watcher w = { .p = &p, .lock = PTHREAD_MUTEX_INITIALIZER };
	pthread_t thread;

	open_cqe(&p, 1000);
	CHECK_INT(pthread_create(&thread, NULL, watch_cq, &w), 0);
	for (unsigned i = 0; i < 500; i++) {
		struct ibv_sge list = make_sge(&p.end[0], i, 1);
		struct ibv_send_wr wr = send_wr(IBV_WR_SEND, 1, &list, 1);

		pthread_mutex_lock(&w.lock);
		p.end[0].buf[i] = (uint8_t)(i | 1);
		CHECK_INT(post_recv(&p.end[1], i, i, 1), 0);
		CHECK_INT(post_wr(&p, 0, &wr), 0);
		expect_status(&p, p.end[0].scq, 1, IBV_WC_SUCCESS);
		pthread_mutex_unlock(&w.lock);
		while (!sr_cq_empty(p.end[1].rcq)) /* its receive's place must be free again */
			sched_yield();
	}
	pthread_join(thread, NULL);
	CHECK(!w.failed);
	pair_close(&p);
}

int main(void)
{
	arming_is_once();
	overrun_is_an_error();
	resizing_keeps_completions();
	two_threads();
	return 0;
}
