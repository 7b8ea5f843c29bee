/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue pair's states: every transition with every attribute, values, what may be posted when,
 * flushing, draining. */
#include "tests/softroce/engine_pair.h"
#include <string.h>

/* IBTA vol. 1, 11.2.5.3, as the kernel's RC table spells it; written down here a second time on
 * purpose. */
static const struct {
	enum ibv_qp_state from, to;
	const char *required, *optional;
} legal[] = {
	{ IBV_QPS_RESET, IBV_QPS_RESET, "", "" },
	{ IBV_QPS_RESET, IBV_QPS_INIT, "kpa", "" },
	{ IBV_QPS_INIT, IBV_QPS_RESET, "", "" },
	{ IBV_QPS_INIT, IBV_QPS_ERR, "", "" },
	{ IBV_QPS_INIT, IBV_QPS_INIT, "", "kpa" },
	{ IBV_QPS_INIT, IBV_QPS_RTR, "vmdrDn", "ak" },
	{ IBV_QPS_RTR, IBV_QPS_RESET, "", "" },
	{ IBV_QPS_RTR, IBV_QPS_ERR, "", "" },
	{ IBV_QPS_RTR, IBV_QPS_RTS, "tyRsA", "canM" },
	{ IBV_QPS_RTS, IBV_QPS_RESET, "", "" },
	{ IBV_QPS_RTS, IBV_QPS_ERR, "", "" },
	{ IBV_QPS_RTS, IBV_QPS_RTS, "", "canM" },
	{ IBV_QPS_RTS, IBV_QPS_SQD, "", "e" },
	{ IBV_QPS_SQD, IBV_QPS_RESET, "", "" },
	{ IBV_QPS_SQD, IBV_QPS_ERR, "", "" },
	{ IBV_QPS_SQD, IBV_QPS_RTS, "", "canM" },
	{ IBV_QPS_SQD, IBV_QPS_SQD, "", "pvtyRADaknM" },
	{ IBV_QPS_ERR, IBV_QPS_RESET, "", "" },
	{ IBV_QPS_ERR, IBV_QPS_ERR, "", "" },
};

static const struct {
	char letter;
	int bit;
} letters[] = {
	{ 'c', IBV_QP_CUR_STATE },
	{ 'e', IBV_QP_EN_SQD_ASYNC_NOTIFY },
	{ 'a', IBV_QP_ACCESS_FLAGS },
	{ 'k', IBV_QP_PKEY_INDEX },
	{ 'p', IBV_QP_PORT },
	{ 'v', IBV_QP_AV },
	{ 'm', IBV_QP_PATH_MTU },
	{ 't', IBV_QP_TIMEOUT },
	{ 'y', IBV_QP_RETRY_CNT },
	{ 'R', IBV_QP_RNR_RETRY },
	{ 'r', IBV_QP_RQ_PSN },
	{ 'A', IBV_QP_MAX_QP_RD_ATOMIC },
	{ 'n', IBV_QP_MIN_RNR_TIMER },
	{ 's', IBV_QP_SQ_PSN },
	{ 'D', IBV_QP_MAX_DEST_RD_ATOMIC },
	{ 'M', IBV_QP_PATH_MIG_STATE },
	{ 'd', IBV_QP_DEST_QPN },
	{ 'q', IBV_QP_QKEY },
	{ 'C', IBV_QP_CAP },
	{ 'l', IBV_QP_ALT_PATH },
	{ 'L', IBV_QP_RATE_LIMIT },
};
#define LETTERS (sizeof(letters) / sizeof(letters[0]))

static int mask_of(const char *s)
{
	int mask = 0;

	for (; *s; s++)
		for (unsigned i = 0; i < LETTERS; i++)
			if (letters[i].letter == *s)
				mask |= letters[i].bit;
	return mask;
}

/* Attributes that are all right. */
static struct ibv_qp_attr good_attr(const struct pair *p, enum ibv_qp_state from,
				    enum ibv_qp_state to)
{
	struct ibv_qp_attr attr, rts;

	pair_attr(p, 0, IBV_QPS_RTR, &attr);
	pair_attr(p, 0, IBV_QPS_RTS, &rts);
	attr.timeout = rts.timeout;
	attr.retry_cnt = rts.retry_cnt;
	attr.rnr_retry = rts.rnr_retry;
	attr.max_rd_atomic = rts.max_rd_atomic;
	attr.qp_access_flags = ALL_ACCESS;
	attr.port_num = 1;
	attr.qp_state = to;
	attr.cur_qp_state = from;
	attr.path_mig_state = IBV_MIG_MIGRATED;
	return attr;
}

static int try_transition(struct pair *p, enum ibv_qp_state from, enum ibv_qp_state to, int mask)
{
	struct ibv_qp_attr attr = good_attr(p, from, to);
	struct sr_qp *qp;
	int err;

	qp = pair_new_qp(p, 0, &err);
	CHECK_INT(err, 0);
	if (from == IBV_QPS_ERR)
		pair_to_state(p, 0, qp, 77, IBV_QPS_INIT);
	pair_to_state(p, 0, qp, 77, from);
	err = sr_qp_modify(qp, sr_memwire_now(p->mw), &attr, mask | IBV_QP_STATE);
	CHECK_INT(sr_qp_state(qp), err ? from : to);
	CHECK(!err || err == -EINVAL);
	CHECK_INT(sr_qp_destroy(qp), 0);
	return err;
}

static void one_transition(struct pair *p, enum ibv_qp_state from, enum ibv_qp_state to)
{
	int required = 0, optional = 0;
	bool ok = false;

	for (unsigned i = 0; i < sizeof(legal) / sizeof(legal[0]); i++)
		if (legal[i].from == from && legal[i].to == to) {
			ok = true;
			required = mask_of(legal[i].required);
			optional = mask_of(legal[i].optional);
		}
	CHECK_INT(try_transition(p, from, to, required), ok ? 0 : -EINVAL);
	CHECK_INT(try_transition(p, from, to, required | optional), ok ? 0 : -EINVAL);
	for (unsigned i = 0; i < LETTERS; i++) {
		int bit = letters[i].bit;

		if (required & bit)
			CHECK_INT(try_transition(p, from, to, required & ~bit), -EINVAL);
		else
			CHECK_INT(try_transition(p, from, to, required | bit),
				  ok && (optional & bit) ? 0 : -EINVAL);
	}
}

static void bad_values_are_refused(struct pair *p)
{
	struct ibv_qp_attr attr;
	struct sr_qp *qp;
	int err, mask;

#define BAD(state, before, field, value)                              \
	do {                                                          \
		qp = pair_new_qp(p, 0, &err);                         \
		pair_to_state(p, 0, qp, 77, before);                  \
		mask = pair_attr(p, 0, state, &attr);                 \
		attr.field = value;                                   \
		CHECK_INT(sr_qp_modify(qp, 0, &attr, mask), -EINVAL); \
		CHECK_INT(sr_qp_state(qp), before);                   \
		sr_qp_destroy(qp);                                    \
	} while (0)
	BAD(IBV_QPS_INIT, IBV_QPS_RESET, port_num, 0);
	BAD(IBV_QPS_INIT, IBV_QPS_RESET, port_num, 2);
	BAD(IBV_QPS_INIT, IBV_QPS_RESET, pkey_index, 1);
	BAD(IBV_QPS_INIT, IBV_QPS_RESET, qp_access_flags, 1u << 30);
	BAD(IBV_QPS_RTR, IBV_QPS_INIT, path_mtu, 0);
	BAD(IBV_QPS_RTR, IBV_QPS_INIT, path_mtu, 6);
	BAD(IBV_QPS_RTR, IBV_QPS_INIT, dest_qp_num, 1u << 24);
	BAD(IBV_QPS_RTR, IBV_QPS_INIT, max_dest_rd_atomic, 17);
	BAD(IBV_QPS_RTR, IBV_QPS_INIT, min_rnr_timer, 32);
	BAD(IBV_QPS_RTR, IBV_QPS_INIT, ah_attr.is_global, 0);
	BAD(IBV_QPS_RTR, IBV_QPS_INIT, ah_attr.port_num, 3);
	BAD(IBV_QPS_RTR, IBV_QPS_INIT, ah_attr.grh.sgid_index, 1); /* empty here */
	BAD(IBV_QPS_RTR, IBV_QPS_INIT, ah_attr.grh.sgid_index, 200);
	BAD(IBV_QPS_RTR, IBV_QPS_INIT, ah_attr.grh.dgid, (union ibv_gid) { 0 });
	BAD(IBV_QPS_RTS, IBV_QPS_RTR, timeout, 32);
	BAD(IBV_QPS_RTS, IBV_QPS_RTR, retry_cnt, 8);
	BAD(IBV_QPS_RTS, IBV_QPS_RTR, rnr_retry, 8);
	BAD(IBV_QPS_RTS, IBV_QPS_RTR, max_rd_atomic, 17);
	qp = pair_new_qp(p, 0, &err);
	attr.qp_state = IBV_QPS_UNKNOWN;
	CHECK_INT(sr_qp_modify(qp, 0, &attr, IBV_QP_STATE), -EINVAL);
	attr.qp_state = (enum ibv_qp_state)99;
	CHECK_INT(sr_qp_modify(qp, 0, &attr, IBV_QP_STATE), -EINVAL);
	pair_to_state(p, 0, qp, 77, IBV_QPS_RTS);
	attr.cur_qp_state = IBV_QPS_RTR;
	CHECK_INT(sr_qp_modify(qp, 0, &attr, IBV_QP_CUR_STATE), -EINVAL);
	attr.path_mig_state = IBV_MIG_ARMED;
	CHECK_INT(sr_qp_modify(qp, 0, &attr, IBV_QP_PATH_MIG_STATE), -EINVAL);
	attr.min_rnr_timer = 9; /* without a state: in the state it is in */
	CHECK_INT(sr_qp_modify(qp, 0, &attr, IBV_QP_MIN_RNR_TIMER), 0);
	sr_qp_destroy(qp);
}

static void query_shows_attributes(struct pair *p)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	pair_connect(p, IBV_QPS_RTS);
	sr_qp_query(p->end[0].qp, &attr, &init);
	CHECK_INT(attr.qp_state, IBV_QPS_RTS);
	CHECK_INT(attr.path_mtu, p->opt.mtu);
	CHECK_INT(attr.rq_psn, p->opt.psn[1]);
	CHECK_INT(attr.sq_psn, p->opt.psn[0]);
	CHECK_INT(attr.dest_qp_num, sr_qp_num(p->end[1].qp));
	CHECK_INT(attr.timeout, p->opt.timeout);
	CHECK_INT(attr.retry_cnt, 7);
	CHECK_INT(attr.max_rd_atomic, 4);
	CHECK_INT(attr.qp_access_flags, ALL_ACCESS);
	CHECK_INT(attr.cap.max_send_wr, p->opt.max_wr);
	CHECK_INT(attr.cap.max_inline_data, 256);
	CHECK(!memcmp(&attr.ah_attr.grh.dgid, &p->end[1].gid, 16));
	CHECK_INT(init.qp_type, IBV_QPT_RC);
	CHECK(init.qp_context == &p->end[0]);
}

/* What may be posted in which state. */
static void posting_depends_on_state(struct pair *p)
{
	static const enum ibv_qp_state states[] = {
		IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_ERR,
	};
	struct ibv_sge list = make_sge(&p->end[0], 0, 8);
	struct ibv_send_wr wr = send_wr(IBV_WR_SEND, 5, &list, 1), *bad;
	struct ibv_recv_wr recv = { .wr_id = 6, .sg_list = &list, .num_sge = 1 }, *bad_recv;
	struct ibv_wc wc;
	int err;

	for (unsigned i = 0; i < 6; i++) {
		struct sr_qp *qp = pair_new_qp(p, 0, &err);

		if (states[i] == IBV_QPS_ERR)
			pair_to_state(p, 0, qp, 77, IBV_QPS_INIT);
		pair_to_state(p, 0, qp, 77, states[i]);
		CHECK_INT(sr_qp_post_send(qp, 0, &wr, &bad),
			  states[i] >= IBV_QPS_RTS ? 0 : -EINVAL);
		CHECK_INT(sr_qp_post_recv(qp, &recv, &bad_recv),
			  states[i] == IBV_QPS_RESET ? -EINVAL : 0);
		if (states[i] == IBV_QPS_ERR) {
			CHECK_INT(sr_cq_poll(p->end[0].scq, 1, &wc), 1);
			CHECK(wc.wr_id == 5 && wc.status == IBV_WC_WR_FLUSH_ERR &&
			      wc.qp_num == sr_qp_num(qp));
			CHECK_INT(sr_cq_poll(p->end[0].rcq, 1, &wc), 1);
			CHECK(wc.wr_id == 6 && wc.status == IBV_WC_WR_FLUSH_ERR);
		}
		CHECK(sr_cq_empty(p->end[0].scq) && sr_cq_empty(p->end[0].rcq));
		sr_qp_destroy(qp);
	}
}

/* 50 writes and reads, every second one signaled, and as many receives. */
static void post_all_kinds(struct pair *p)
{
	struct ibv_sge list = make_sge(&p->end[0], 0, 5000);

	for (uint64_t i = 0; i < 50; i++) {
		struct ibv_send_wr wr =
			send_wr(i % 3 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, i, &list, 1);

		wr.send_flags = i % 2 ? IBV_SEND_SIGNALED : 0;
		set_remote_address(&wr, &p->end[1], 0);
		CHECK_INT(post_wr(p, 0, &wr), 0);
		CHECK_INT(post_recv(&p->end[0], i, 0, 10), 0);
	}
}

/* All of them, in order; only unsignaled successes may be left out. */
static void check_flushed(const struct end *end)
{
	struct ibv_wc wc;

	for (uint64_t next = 0, flushed = 0; next < 50;) {
		CHECK_INT(sr_cq_poll(end->scq, 1, &wc), 1);
		flushed |= wc.status != IBV_WC_SUCCESS;
		CHECK_INT(wc.status, flushed ? IBV_WC_WR_FLUSH_ERR : IBV_WC_SUCCESS);
		CHECK(wc.wr_id == next || (wc.wr_id == next + 1 && next % 2 == 0));
		next = wc.wr_id + 1;
		CHECK(next < 50 || flushed);
	}
	for (uint64_t i = 0; i < 50; i++) {
		CHECK_INT(sr_cq_poll(end->rcq, 1, &wc), 1);
		CHECK(wc.status == IBV_WC_WR_FLUSH_ERR && wc.wr_id == i);
	}
}

/* To ERR with work of every kind under way: all of it flushed, in order; then RESET forgets, and it
 * connects anew. */
static void flush_and_again(void)
{
	struct ibv_send_wr wr;
	struct ibv_sge list;
	struct pair p;

	pair_open(&p, &default_options);
	pair_connect(&p, IBV_QPS_RTS);
	for (int incarnation = 0; incarnation < 3; incarnation++) {
		post_all_kinds(&p);
		run_for(&p, 10000);
		pair_to_state(&p, 0, p.end[0].qp, 0, IBV_QPS_ERR);
		check_flushed(&p.end[0]);
		run_for(&p, 10000000000ull);
		CHECK(sr_cq_empty(p.end[0].scq) && sr_cq_empty(p.end[0].rcq));
		/* A completion nobody polled is forgotten with the incarnation it belongs to; the
		 * peer's are not touched. */
		list = make_sge(&p.end[0], 0, 5000);
		wr = send_wr(IBV_WR_RDMA_WRITE, 49, &list, 1);
		wr.send_flags = IBV_SEND_SIGNALED;
		set_remote_address(&wr, &p.end[1], 0);
		CHECK_INT(post_wr(&p, 0, &wr), 0);
		CHECK(!sr_cq_empty(p.end[0].scq));
		for (int e = 0; e < 2; e++) {
			struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

			CHECK_INT(sr_qp_modify(p.end[e].qp, sr_memwire_now(p.mw), &attr,
					       IBV_QP_STATE),
				  0);
		}
		CHECK(sr_cq_empty(p.end[0].scq));
		p.opt.psn[0] += 1000;
		pair_connect(&p, IBV_QPS_RTS);
		list = make_sge(&p.end[0], 0, 500);
		wr = send_wr(IBV_WR_RDMA_WRITE, 123, &list, 1);
		set_remote_address(&wr, &p.end[1], 0);
		CHECK_INT(post_wr(&p, 0, &wr), 0);
		expect_status(&p, p.end[0].scq, 123, IBV_WC_SUCCESS);
	}
	pair_close(&p);
}

/* It is drained at once; `events`: that it has been so far. */
static void drain_idle(struct pair *p, int events)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };
	struct sr_qp *qp = p->end[0].qp;

	CHECK_INT(sr_qp_modify(qp, sr_memwire_now(p->mw), &attr,
			       IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY),
		  0);
	run_for(p, 1000);
	CHECK_INT(count_events(&p->end[0], IBV_EVENT_SQ_DRAINED), events);
	attr.qp_state = IBV_QPS_RTS;
	CHECK_INT(sr_qp_modify(qp, sr_memwire_now(p->mw), &attr, IBV_QP_STATE), 0);
}

/* SQD: what has begun is finished, what has not waits; the event comes when all is quiet; RTS goes
 * on. */
static void drain_send_queue(bool notify)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = notify };
	struct ibv_qp_init_attr init;
	struct ibv_send_wr wr;
	struct ibv_sge list;
	struct ibv_wc wc;
	struct pair p;
	uint64_t n = 0;

	pair_open(&p, &default_options);
	pair_connect(&p, IBV_QPS_RTS);
	list = make_sge(&p.end[0], 0, 100000);
	for (uint64_t i = 0; i < 20; i++) {
		wr = send_wr(IBV_WR_RDMA_WRITE, i, &list, 1);
		set_remote_address(&wr, &p.end[1], 0);
		CHECK_INT(post_wr(&p, 0, &wr), 0);
	}
	run_for(&p, 20000);
	CHECK_INT(sr_qp_modify(p.end[0].qp, sr_memwire_now(p.mw), &attr,
			       IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY),
		  0);
	sr_qp_query(p.end[0].qp, &attr, &init);
	CHECK(attr.sq_draining);
	run_for(&p, 1000000000);
	sr_qp_query(p.end[0].qp, &attr, &init);
	CHECK(!attr.sq_draining);
	CHECK_INT(count_events(&p.end[0], IBV_EVENT_SQ_DRAINED), notify);
	while (sr_cq_poll(p.end[0].scq, 1, &wc) == 1)
		CHECK_INT(wc.wr_id, n++);
	CHECK(n > 0 && n < 20);
	attr.timeout = 12;
	CHECK_INT(sr_qp_modify(p.end[0].qp, sr_memwire_now(p.mw), &attr, IBV_QP_TIMEOUT), 0);
	attr.qp_state = IBV_QPS_RTS;
	CHECK_INT(sr_qp_modify(p.end[0].qp, sr_memwire_now(p.mw), &attr, IBV_QP_STATE), 0);
	for (; n < 20; n++)
		expect_status(&p, p.end[0].scq, n, IBV_WC_SUCCESS);
	for (int i = 0; i < 2; i++)
		drain_idle(&p, notify + i + 1);
	pair_close(&p);
}

/* Drained although nobody asked for an acknowledgement of what had been sent, and without a timer
 * to ask again. */
static void drain_unsignaled(uint32_t len)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };
	struct options opt = default_options;
	struct ibv_send_wr wr;
	struct ibv_sge list;
	struct pair p;

	opt.timeout = 0;
	pair_open(&p, &opt);
	pair_connect(&p, IBV_QPS_RTS);
	sr_memwire_set_link(p.end[0].port,
			    &(struct sr_memwire_link) { .latency_ns = 1000, .bytes_per_us = 100 });
	list = make_sge(&p.end[0], 0, len);
	wr = send_wr(IBV_WR_RDMA_WRITE, 1, &list, 1);
	set_remote_address(&wr, &p.end[1], 0);
	wr.send_flags = 0;
	for (int i = 0; i < 50; i++)
		CHECK_INT(post_wr(&p, 0, &wr), 0);
	run_for(&p, 500);
	CHECK_INT(sr_qp_modify(p.end[0].qp, sr_memwire_now(p.mw), &attr,
			       IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY),
		  0);
	run_for(&p, 1000000000);
	CHECK_INT(count_events(&p.end[0], IBV_EVENT_SQ_DRAINED), 1);
	attr.qp_state = IBV_QPS_RTS;
	CHECK_INT(sr_qp_modify(p.end[0].qp, sr_memwire_now(p.mw), &attr, IBV_QP_STATE), 0);
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.wr_id = 2;
	CHECK_INT(post_wr(&p, 0, &wr), 0);
	expect_status(&p, p.end[0].scq, 2, IBV_WC_SUCCESS);
	pair_close(&p);
}

/* A passive end may stay in RTR; the first request shows it so. */
static void communication_established(void)
{
	struct ibv_send_wr wr;
	struct ibv_sge list;
	struct pair p;

	pair_open(&p, &default_options);
	pair_to_state(&p, 0, p.end[0].qp, sr_qp_num(p.end[1].qp), IBV_QPS_RTS);
	pair_to_state(&p, 1, p.end[1].qp, sr_qp_num(p.end[0].qp), IBV_QPS_RTR);
	list = make_sge(&p.end[0], 0, 100);
	wr = send_wr(IBV_WR_RDMA_WRITE, 1, &list, 1);
	set_remote_address(&wr, &p.end[1], 0);
	for (int i = 0; i < 2; i++) {
		CHECK_INT(post_wr(&p, 0, &wr), 0);
		expect_status(&p, p.end[0].scq, 1, IBV_WC_SUCCESS);
	}
	CHECK_INT(p.end[1].n_events, 1);
	CHECK_INT(p.end[1].events[0], IBV_EVENT_COMM_EST);
	pair_close(&p);
}

static void bad_creation_is_refused(struct pair *p)
{
	struct end *end = &p->end[0];
	struct sr_qp_init init = { .type = IBV_QPT_XRC_SEND,
				   .send_cq = end->scq,
				   .recv_cq = end->rcq };
	struct sr_qp *qp;
	int err;

	CHECK(!sr_qp_create(end->pd, &init, &err));
	CHECK_INT(err, -EOPNOTSUPP);
	init.type = IBV_QPT_RC;
	init.send_cq = NULL;
	CHECK(!sr_qp_create(end->pd, &init, &err) && err == -EINVAL);
	init.send_cq = p->end[1].scq; /* another NIC's */
	CHECK(!sr_qp_create(end->pd, &init, &err) && err == -EINVAL);
	init.send_cq = end->scq;
	init.cap.max_send_wr = 1u << 30;
	CHECK(!sr_qp_create(end->pd, &init, &err) && err == -EINVAL);
	init.cap.max_send_wr = 0;
	init.cap.max_recv_sge = SR_MAX_SGE + 1;
	CHECK(!sr_qp_create(end->pd, &init, &err) && err == -EINVAL);
	init.cap.max_recv_sge = 0;
	qp = sr_qp_create(end->pd, &init, &err);
	CHECK(qp && !err);
	CHECK_INT(sr_pd_destroy(end->pd), -EBUSY);
	CHECK_INT(sr_cq_destroy(end->scq), -EBUSY);
	sr_qp_destroy(qp);
}

int main(void)
{
	struct pair p;

	pair_open(&p, &default_options);
	for (enum ibv_qp_state from = IBV_QPS_RESET; from <= IBV_QPS_ERR; from++)
		for (enum ibv_qp_state to = IBV_QPS_RESET; to <= IBV_QPS_ERR; to++)
			if (from != IBV_QPS_SQE) /* no way leads there */
				one_transition(&p, from, to);
	bad_values_are_refused(&p);
	bad_creation_is_refused(&p);
	posting_depends_on_state(&p);
	query_shows_attributes(&p);
	pair_close(&p);
	flush_and_again();
	drain_send_queue(true);
	drain_send_queue(false);
	drain_unsignaled(100);
	drain_unsignaled(20000);
	communication_established();
	return 0;
}
