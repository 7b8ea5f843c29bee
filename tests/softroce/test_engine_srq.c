/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues: order over several queue pairs, limit, last WQE, resize, RNR when empty,
 * places. */
#include "tests/softroce/engine_pair.h"
#include <string.h>

static void open_srq(struct pair *p)
{
	struct options opt = default_options;

	opt.use_srq = true;
	opt.max_wr = 16;
	pair_open(p, &opt);
	pair_connect(p, IBV_QPS_RTS);
}

static void send_to(struct pair *p, struct sr_qp *qp, uint64_t wr_id, uint32_t len)
{
	struct ibv_sge list = make_sge(&p->end[0], 0, len);
	struct ibv_send_wr wr = send_wr(IBV_WR_SEND, wr_id, &list, 1), *bad;

	CHECK_INT(sr_qp_post_send(qp, sr_memwire_now(p->mw), &wr, &bad), 0);
}

/* Two queue pairs, one shared queue: receives are used in order by whoever comes first. */
static void receives_are_shared(void)
{
	struct sr_qp *second[2];
	struct ibv_wc wc;
	struct pair p;
	int err;

	open_srq(&p);
	for (int e = 0; e < 2; e++)
		second[e] = pair_new_qp(&p, e, &err);
	for (int e = 0; e < 2; e++)
		pair_to_state(&p, e, second[e], sr_qp_num(second[!e]), IBV_QPS_RTS);
	for (uint64_t i = 0; i < 16; i++)
		CHECK_INT(post_recv(&p.end[1], i, i * 1000, 1000), 0);
	CHECK_INT(post_recv(&p.end[1], 16, 0, 1000), -ENOMEM);
	for (uint64_t i = 0; i < 16; i++) {
		struct sr_qp *qp = i % 3 ? p.end[0].qp : second[0];

		send_to(&p, qp, i, 700);
		wc = expect_status(&p, p.end[1].rcq, i, IBV_WC_SUCCESS);
		CHECK_INT(wc.qp_num, sr_qp_num(i % 3 ? p.end[1].qp : second[1]));
		CHECK_INT(wc.src_qp, sr_qp_num(qp));
	}
	send_to(&p, p.end[0].qp, 50, 10); /* none left: waits */
	run_for(&p, 1000000);
	CHECK(sr_nic_counters(p.end[1].nic)->send_rnr_err > 0);
	CHECK_INT(post_recv(&p.end[1], 77, 0, 1000), 0);
	expect_status(&p, p.end[1].rcq, 77, IBV_WC_SUCCESS);
	CHECK_INT(p.end[1].n_events, 0);
	CHECK_INT(sr_srq_destroy(p.end[1].srq), -EBUSY);
	pair_close(&p);
}

static void limit_event_is_once(void)
{
	struct ibv_srq_attr attr = { .srq_limit = 4 };
	struct pair p;

	open_srq(&p);
	CHECK_INT(sr_srq_modify(p.end[1].srq, &attr, IBV_SRQ_LIMIT), 0);
	for (uint64_t i = 0; i < 8; i++)
		CHECK_INT(post_recv(&p.end[1], i, 0, 100), 0);
	for (uint64_t i = 0; i < 8; i++) {
		/* 3 left for the first time */
		CHECK_INT(count_events(&p.end[1], IBV_EVENT_SRQ_LIMIT_REACHED), i > 4);
		send_to(&p, p.end[0].qp, i, 10);
		expect_status(&p, p.end[1].rcq, i, IBV_WC_SUCCESS);
	}
	CHECK_INT(p.end[1].n_events, 1); /* once: it disarms itself */
	CHECK(p.end[1].objects[0] == &p.end[1]);
	sr_srq_query(p.end[1].srq, &attr);
	CHECK(attr.srq_limit == 0 && attr.max_wr == 16 && attr.max_sge == 4);
	pair_close(&p);
}

static void resize_keeps_receives(void)
{
	struct ibv_srq_attr attr = { .max_wr = 4 };
	struct pair p;

	open_srq(&p);
	for (uint64_t i = 0; i < 10; i++)
		CHECK_INT(post_recv(&p.end[1], i, 0, 100), 0);
	CHECK_INT(sr_srq_modify(p.end[1].srq, &attr, IBV_SRQ_MAX_WR), -EINVAL);
	attr.srq_limit = 17;
	CHECK_INT(sr_srq_modify(p.end[1].srq, &attr, IBV_SRQ_LIMIT), -EINVAL);
	CHECK_INT(sr_srq_modify(p.end[1].srq, &attr, 1 << 7), -EINVAL);
	attr.max_wr = 100;
	CHECK_INT(sr_srq_modify(p.end[1].srq, &attr, IBV_SRQ_MAX_WR), 0);
	for (uint64_t i = 10; i < 100; i++)
		CHECK_INT(post_recv(&p.end[1], i, 0, 100), 0);
	CHECK_INT(post_recv(&p.end[1], 100, 0, 100), -ENOMEM);
	for (uint64_t i = 0; i < 100; i++) {
		send_to(&p, p.end[0].qp, i, 10);
		expect_status(&p, p.end[1].rcq, i, IBV_WC_SUCCESS);
		expect_status(&p, p.end[0].scq, i, IBV_WC_SUCCESS);
	}
	pair_close(&p);
}

/* To ERR: the shared queue keeps its receives, the one in use is flushed, and the event says that
 * was the last. */
static void last_wqe(bool in_use)
{
	struct sr_qp *other;
	struct ibv_wc wc;
	struct pair p;
	int err;

	open_srq(&p);
	for (uint64_t i = 0; i < 3; i++)
		CHECK_INT(post_recv(&p.end[1], i, 0, 100000), 0);
	if (in_use) {
		send_to(&p, p.end[0].qp, 9, 100000);
		while (sr_nic_counters(p.end[1].nic)->rcvd_pkts < 5)
			CHECK(sr_memwire_step(p.mw));
	}
	pair_to_state(&p, 1, p.end[1].qp, 0, IBV_QPS_ERR);
	CHECK_INT(sr_cq_poll(p.end[1].rcq, 1, &wc), in_use);
	if (in_use)
		CHECK(wc.wr_id == 0 && wc.status == IBV_WC_WR_FLUSH_ERR);
	CHECK_INT(p.end[1].n_events, 1);
	CHECK_INT(p.end[1].events[0], IBV_EVENT_QP_LAST_WQE_REACHED);
	pair_to_state(&p, 1, p.end[1].qp, 0, IBV_QPS_ERR);
	CHECK_INT(p.end[1].n_events, 1);
	/* A new queue pair uses what is left. */
	CHECK_INT(sr_qp_destroy(p.end[1].qp), 0);
	CHECK_INT(sr_qp_destroy(p.end[0].qp), 0);
	for (int e = 0; e < 2; e++)
		p.end[e].qp = pair_new_qp(&p, e, &err);
	pair_connect(&p, IBV_QPS_RTS);
	send_to(&p, p.end[0].qp, 1, 50);
	expect_status(&p, p.end[1].rcq, in_use, IBV_WC_SUCCESS);
	other = pair_new_qp(&p, 1, &err);
	CHECK_INT(sr_qp_post_recv(other, &(struct ibv_recv_wr) { 0 },
				  &(struct ibv_recv_wr *) { 0 }),
		  -EINVAL);
	pair_close(&p);
}

/* A queue pair destroyed in the middle of a message, or before its completion was polled, gives the
 * place back. */
static void places_come_back(void)
{
	struct pair p;
	int err;

	open_srq(&p);
	for (int round = 0; round < 40; round++) {
		uint64_t before = sr_nic_counters(p.end[1].nic)->rcvd_pkts;

		CHECK_INT(post_recv(&p.end[1], 1, 0, 100000), 0);
		send_to(&p, p.end[0].qp, 9, round & 1 ? 100 : 100000);
		while (sr_nic_counters(p.end[1].nic)->rcvd_pkts == before ||
		       (round & 1 && sr_cq_empty(p.end[1].rcq)))
			CHECK(sr_memwire_step(p.mw));
		run_for(&p, 500);
		for (int e = 0; e < 2; e++) {
			CHECK_INT(sr_qp_destroy(p.end[e].qp), 0);
			p.end[e].qp = pair_new_qp(&p, e, &err);
		}
		CHECK(sr_cq_empty(p.end[1].rcq));
		run_for(&p, 1000000);
		pair_connect(&p, IBV_QPS_RTS);
	}
	for (int i = 0; i < 16; i++)
		CHECK_INT(post_recv(&p.end[1], 1, 0, 100), 0);
	pair_close(&p);
}

static void bad_sizes_are_refused(void)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 0, .max_sge = 1 } };
	struct sr_srq *srq;
	struct pair p;
	int err;

	open_srq(&p);
	CHECK(!sr_srq_create(p.end[0].pd, &attr, NULL, &err) && err == -EINVAL);
	attr.attr.max_wr = 1 << 30;
	CHECK(!sr_srq_create(p.end[0].pd, &attr, NULL, &err) && err == -EINVAL);
	attr.attr.max_wr = 1;
	attr.attr.max_sge = SR_MAX_SGE + 1;
	CHECK(!sr_srq_create(p.end[0].pd, &attr, NULL, &err) && err == -EINVAL);
	attr.attr.max_sge = SR_MAX_SGE;
	srq = sr_srq_create(p.end[0].pd, &attr, NULL, &err);
	CHECK(srq && !err);
	CHECK_INT(sr_srq_destroy(srq), 0);
	pair_close(&p);
}

int main(void)
{
	receives_are_shared();
	limit_event_is_once();
	resize_keeps_receives();
	last_wqe(false);
	last_wqe(true);
	places_come_back();
	bad_sizes_are_refused();
	return 0;
}
