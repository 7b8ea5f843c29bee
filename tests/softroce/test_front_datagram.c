/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams and windows through the public verbs: address handles, the answer to a sender,
 * ibv_wr_*(), ibv_bind_mw(). */
#include "tests/softroce/front_side.h"

#include <arpa/inet.h>
#include <errno.h>
#include <time.h>

#define QKEY 0x1234u
#define GRH 40

struct node {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	union ibv_gid gid;
	unsigned char buf[8192];
};

static void node_open(struct node *n, struct ibv_device *device)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_UD,
		.cap = { 16, 16, 2, 2, 128 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM,
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY };

	n->context = ibv_open_device(device);
	CHECK(n->context);
	n->pd = ibv_alloc_pd(n->context);
	n->cq = ibv_create_cq(n->context, 64, NULL, NULL, 0);
	n->mr = ibv_reg_mr(n->pd, n->buf, sizeof(n->buf),
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	CHECK(n->pd && n->cq && n->mr && !ibv_query_gid(n->context, 1, 0, &n->gid));
	init.pd = n->pd;
	init.send_cq = init.recv_cq = n->cq;
	init.send_ops_flags |= IBV_QP_EX_WITH_RDMA_WRITE;
	CHECK(!ibv_create_qp_ex(n->context, &init) && errno == EOPNOTSUPP); /* datagrams cannot */
	init.send_ops_flags &= ~(uint64_t)IBV_QP_EX_WITH_RDMA_WRITE;
	n->qp = ibv_create_qp_ex(n->context, &init);
	CHECK(n->qp);
	CHECK(!ibv_modify_qp(n->qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
	attr.qp_state = IBV_QPS_RTR;
	CHECK(!ibv_modify_qp(n->qp, &attr, IBV_QP_STATE));
	attr.qp_state = IBV_QPS_RTS;
	CHECK(!ibv_modify_qp(n->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
}

static void node_close(struct node *n)
{
	CHECK(!ibv_destroy_qp(n->qp) && !ibv_dereg_mr(n->mr) && !ibv_destroy_cq(n->cq) &&
	      !ibv_dealloc_pd(n->pd));
	CHECK(!ibv_close_device(n->context));
}

static struct ibv_wc expect_completion(struct node *n, uint64_t wr_id)
{
	struct ibv_wc wc;
	int got;

	for (time_t end = time(NULL) + 60; !(got = ibv_poll_cq(n->cq, 1, &wc)) && time(NULL) < end;)
		;
	CHECK(got == 1 && wc.status == IBV_WC_SUCCESS && wc.wr_id == wr_id);
	return wc;
}

static void post_receive(struct node *n, uint64_t wr_id, uint32_t len)
{
	struct ibv_sge list = { (uintptr_t)n->buf + 4096, len, n->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &list, .num_sge = 1 }, *bad;

	CHECK(!ibv_post_recv(n->qp, &wr, &bad));
}

static void send_question(struct node *a, struct ibv_ah *ah, uint32_t qpn)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(a->qp);

	ibv_wr_start(ex);
	ex->wr_id = 2;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send_imm(ex, htonl(77));
	ibv_wr_set_ud_addr(ex, ah, qpn, QKEY);
	ibv_wr_set_inline_data(ex, "who?", 4);
	CHECK(!ibv_wr_complete(ex));
}

/* One node asks, the other answers to whoever asked. */
static void exchange_datagrams(struct node *a, struct node *b)
{
	struct ibv_ah_attr to = { .is_global = 1,
				  .port_num = 1,
				  .grh = { .dgid = b->gid, .hop_limit = 1 } },
			   back;
	struct ibv_ah *ah = ibv_create_ah(a->pd, &to), *answer;
	struct ibv_sge list = { (uintptr_t)b->buf, 2000, b->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 4,
				  .sg_list = &list,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	struct ibv_wc wc;

	CHECK(ah && ah->pd == a->pd);
	post_receive(b, 1, 100);
	send_question(a, ah, b->qp->qp_num);
	CHECK(!ibv_destroy_ah(ah));
	CHECK(expect_completion(a, 2).opcode == IBV_WC_SEND);
	wc = expect_completion(b, 1);
	CHECK(wc.byte_len == GRH + 4 && wc.src_qp == a->qp->qp_num && wc.imm_data == htonl(77));
	CHECK(wc.wc_flags == (IBV_WC_GRH | IBV_WC_WITH_IMM) &&
	      !memcmp(b->buf + 4096 + GRH, "who?", 4));

	CHECK(!ibv_init_ah_from_wc(b->context, 1, &wc, (struct ibv_grh *)(b->buf + 4096), &back));
	CHECK(!memcmp(&back.grh.dgid, &a->gid, 16));
	answer = ibv_create_ah_from_wc(b->pd, &wc, (struct ibv_grh *)(b->buf + 4096), 1);
	CHECK(answer);
	memset(b->buf, 0x3c, 2000);
	post_receive(a, 3, GRH + 2000);
	wr.wr.ud.ah = answer;
	wr.wr.ud.remote_qpn = wc.src_qp;
	wr.wr.ud.remote_qkey = QKEY;
	CHECK(!ibv_post_send(b->qp, &wr, &bad));
	expect_completion(b, 4);
	CHECK(expect_completion(a, 3).byte_len == GRH + 2000);
	CHECK(!memcmp(a->buf + 4096 + GRH, b->buf, 2000));
	wc.wc_flags = 0;
	CHECK(ibv_init_ah_from_wc(b->context, 1, &wc, (struct ibv_grh *)(b->buf + 4096), &back) ==
	      -1);
	CHECK(!ibv_destroy_ah(answer));
}

static struct ibv_qp *rc_create(struct node *n, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr init = { .send_cq = n->cq,
					 .recv_cq = n->cq,
					 .srq = srq,
					 .cap = { 16, 16, 2, 2, 0 },
					 .qp_type = IBV_QPT_RC };
	struct ibv_qp *qp = ibv_create_qp(n->pd, &init);

	CHECK(qp);
	return qp;
}

static void rc_connect(struct ibv_qp *qp, const struct node *peer, uint32_t peer_qpn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = peer->gid, .hop_limit = 1 } },
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer_qpn,
		.max_dest_rd_atomic = 1,
		.max_rd_atomic = 1,
		.timeout = 19,
		.retry_cnt = 7,
	};

	CHECK(!ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	attr.qp_state = IBV_QPS_RTR;
	CHECK(!ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER));
	attr.qp_state = IBV_QPS_RTS;
	CHECK(!ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
}

/* b opens a window of type 1 in its memory, a writes through it. */
static void use_windows(struct node *a, struct node *b)
{
	struct ibv_mw *mw = ibv_alloc_mw(b->pd, IBV_MW_TYPE_1),
		      *foreign = ibv_alloc_mw(a->pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = {
		.wr_id = 11,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = { b->mr, (uintptr_t)b->buf + 100, 50, IBV_ACCESS_REMOTE_WRITE },
	};
	struct ibv_srq_init_attr_ex srq_init = {
		.attr = { 4, 1, 0 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_XRC,
		.pd = b->pd,
	};
	struct ibv_sge list = { (uintptr_t)a->buf, 50, a->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = 12, .sg_list = &list, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
	}, *bad;
	struct ibv_srq *srq;
	struct ibv_qp *qp[2];
	uint32_t before;

	CHECK(mw && foreign);
	CHECK(!ibv_create_srq_ex(b->context, &srq_init) && errno == EOPNOTSUPP);
	srq_init.srq_type = IBV_SRQT_BASIC;
	srq = ibv_create_srq_ex(b->context, &srq_init);
	CHECK(srq);
	qp[0] = rc_create(a, NULL);
	qp[1] = rc_create(b, srq);
	rc_connect(qp[0], b, qp[1]->qp_num);
	rc_connect(qp[1], a, qp[0]->qp_num);
	before = mw->rkey;
	CHECK(ibv_bind_mw(qp[1], foreign, &bind) == EPERM);
	CHECK(!ibv_bind_mw(qp[1], mw, &bind) && mw->rkey != before);
	CHECK(expect_completion(b, 11).opcode == IBV_WC_BIND_MW);
	CHECK(ibv_dereg_mr(b->mr) == EBUSY);
	memset(a->buf, 0x42, 50);
	memset(b->buf, 0, 200);
	wr.wr.rdma.remote_addr = (uintptr_t)b->buf + 100;
	wr.wr.rdma.rkey = mw->rkey;
	CHECK(!ibv_post_send(qp[0], &wr, &bad));
	expect_completion(a, 12);
	CHECK(!memcmp(b->buf + 100, a->buf, 50) && !b->buf[99] && !b->buf[150]);
	CHECK(!ibv_dealloc_mw(mw) && !ibv_dealloc_mw(foreign));
	CHECK(!ibv_destroy_qp(qp[0]) && !ibv_destroy_qp(qp[1]) && !ibv_destroy_srq(srq));
}

int main(void)
{
	static struct node a, b;
	struct ibv_device **list;
	int n;

	side_isolate("127.165.0.0/24,127.166.0.0/24");
	list = ibv_get_device_list(&n);
	CHECK(list && n == 2);
	node_open(&a, list[0]);
	node_open(&b, list[1]);
	exchange_datagrams(&a, &b);
	exchange_datagrams(&b, &a);
	use_windows(&a, &b);
	node_close(&a);
	node_close(&b);
	ibv_free_device_list(list);
	return 0;
}
