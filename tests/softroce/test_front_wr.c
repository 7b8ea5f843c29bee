/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_wr_*() and extended completion queues: every operation the NIC has, in one batch and with its
 * bytes checked. */
#include "tests/softroce/front_side.h"

#include <arpa/inet.h>
#include <errno.h>

static const struct side_options options;

/* Replace the plain queue pair of `side` by an extended one with an extended completion queue. */
static struct ibv_cq_ex *side_extend(struct side *side)
{
	struct ibv_cq_init_attr_ex cq = { .cqe = 64, .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RC,
		.cap = { 64, 64, 4, 4, 128 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = side->pd,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
				  IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
				  IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
				  IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qp_access_flags = 15 };
	struct ibv_cq_ex *ex;

	CHECK(!ibv_qp_to_qp_ex(side->qp));
	CHECK(!ibv_destroy_qp(side->qp));
	cq.wc_flags |= IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
	CHECK(!ibv_create_cq_ex(side->context, &cq) && errno == EOPNOTSUPP);
	cq.wc_flags = IBV_WC_STANDARD_FLAGS;
	ex = ibv_create_cq_ex(side->context, &cq);
	CHECK(ex);
	init.send_cq = init.recv_cq = ibv_cq_ex_to_cq(ex);
	init.send_ops_flags |= IBV_QP_EX_WITH_TSO;
	CHECK(!ibv_create_qp_ex(side->context, &init) && errno == EOPNOTSUPP);
	init.send_ops_flags &= ~(uint64_t)IBV_QP_EX_WITH_TSO;
	side->qp = ibv_create_qp_ex(side->context, &init);
	CHECK(side->qp && ibv_qp_to_qp_ex(side->qp));
	CHECK(!ibv_modify_qp(side->qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	return ex;
}

static void batch_post(struct side *side)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(side->qp);
	uint64_t local = (uintptr_t)side->buf, remote = side->peer_addr;
	struct ibv_sge list[2] = { { local, 10, side->mr->lkey },
				   { local + 100, 20, side->mr->lkey } };
	struct ibv_data_buf data[2] = { { "hel", 3 }, { "lo", 2 } };

	ibv_wr_start(qp);
	qp->wr_id = 99;
	ibv_wr_send(qp);
	ibv_wr_abort(qp); /* nothing of this is sent */

	ibv_wr_start(qp);
	qp->wr_flags = IBV_SEND_SIGNALED;
	qp->wr_id = 0;
	ibv_wr_rdma_write(qp, side->peer_rkey, remote + 1000);
	ibv_wr_set_sge_list(qp, 2, list);
	qp->wr_id = 1;
	ibv_wr_rdma_write(qp, side->peer_rkey, remote + 1100);
	ibv_wr_set_inline_data_list(qp, 2, data);
	qp->wr_id = 2;
	ibv_wr_rdma_write_imm(qp, side->peer_rkey, remote + 1200, htonl(0x1234));
	ibv_wr_set_sge(qp, side->mr->lkey, local, 8);
	qp->wr_id = 3;
	ibv_wr_send(qp);
	ibv_wr_set_sge(qp, side->mr->lkey, local, 32);
	qp->wr_id = 4;
	ibv_wr_send_imm(qp, htonl(0x5678));
	ibv_wr_set_inline_data(qp, "inline", 6);
	qp->wr_id = 5;
	ibv_wr_rdma_read(qp, side->peer_rkey, remote + 2000);
	ibv_wr_set_sge(qp, side->mr->lkey, local + 2000, 256);
	qp->wr_id = 6;
	ibv_wr_atomic_fetch_add(qp, side->peer_rkey, remote + 3000, 5);
	ibv_wr_set_sge(qp, side->mr->lkey, local + 3000, 8);
	qp->wr_id = 7;
	ibv_wr_atomic_cmp_swp(qp, side->peer_rkey, remote + 3000, 47, 1000);
	ibv_wr_set_sge(qp, side->mr->lkey, local + 3008, 8);
	CHECK(!ibv_wr_complete(qp));

	/* Too much inline data spoils the batch, and only the batch. */
	ibv_wr_start(qp);
	ibv_wr_send(qp);
	ibv_wr_set_inline_data(qp, side->buf, 4096);
	CHECK(ibv_wr_complete(qp) == ENOMEM);
}

static void run_requester(int fd)
{
	struct side side;
	struct ibv_poll_cq_attr none = { 0 };
	struct ibv_cq_ex *cq;
	uint64_t old;
	int err;

	side_open(&side, fd, &options);
	cq = side_extend(&side);
	for (int i = 0; i < 256; i++)
		side.buf[i] = i;
	side_connect(&side, &options);
	batch_post(&side);
	for (uint64_t id = 0; id < 8;) {
		static const enum ibv_wc_opcode opcodes[] = { IBV_WC_RDMA_WRITE, IBV_WC_RDMA_WRITE,
							      IBV_WC_RDMA_WRITE, IBV_WC_SEND,
							      IBV_WC_SEND,       IBV_WC_RDMA_READ,
							      IBV_WC_FETCH_ADD,  IBV_WC_COMP_SWAP };

		err = ibv_start_poll(cq, &none);
		if (err == ENOENT)
			continue;
		CHECK(!err);
		do {
			CHECK(cq->status == IBV_WC_SUCCESS && cq->wr_id == id);
			CHECK(ibv_wc_read_opcode(cq) == opcodes[id] &&
			      ibv_wc_read_qp_num(cq) == side.qp->qp_num);
			id++;
		} while (!(err = ibv_next_poll(cq)));
		CHECK(err == ENOENT);
		ibv_end_poll(cq);
	}
	for (int i = 0; i < 256; i++)
		CHECK(side.buf[2000 + i] == (unsigned char)(i ^ 0x55));
	memcpy(&old, side.buf + 3000, 8);
	CHECK(old == 42);
	memcpy(&old, side.buf + 3008, 8);
	CHECK(old == 47);
	side_meet(&side);
	CHECK(!ibv_destroy_qp(side.qp));
	CHECK(!ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
	CHECK(!ibv_dereg_mr(side.mr));
	CHECK(!ibv_destroy_cq(side.cq));
	CHECK(!ibv_destroy_comp_channel(side.channel));
	CHECK(!ibv_dealloc_pd(side.pd));
	CHECK(!ibv_close_device(side.context));
	ibv_free_device_list(side.list);
	free(side.buf);
}

static void run_responder(int fd)
{
	struct side side;
	struct ibv_wc wc;
	uint64_t value = 42;

	side_open(&side, fd, &options);
	for (int i = 0; i < 256; i++)
		side.buf[2000 + i] = i ^ 0x55;
	memcpy(side.buf + 3000, &value, 8);
	for (int i = 0; i < 3; i++)
		side_post_recv(&side, i, 4000 + i * 100, 100);
	side_connect(&side, &options);
	CHECK(side_wait(&side, &wc, 10000) && wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM &&
	      wc.imm_data == htonl(0x1234) && wc.byte_len == 8);
	CHECK(side_wait(&side, &wc, 10000) && wc.opcode == IBV_WC_RECV && wc.byte_len == 32 &&
	      !(wc.wc_flags & IBV_WC_WITH_IMM));
	CHECK(side_wait(&side, &wc, 10000) && wc.opcode == IBV_WC_RECV && wc.byte_len == 6 &&
	      wc.imm_data == htonl(0x5678));
	side_meet(&side);
	for (int i = 0; i < 10; i++)
		CHECK(side.buf[1000 + i] == i);
	for (int i = 0; i < 20; i++)
		CHECK(side.buf[1010 + i] == 100 + i);
	CHECK(!memcmp(side.buf + 1100, "hello", 5) && !side.buf[1105]);
	CHECK(!memcmp(side.buf + 4200, "inline", 6));
	memcpy(&value, side.buf + 3000, 8);
	CHECK(value == 1000);
	side_close(&side);
}

int main(void)
{
	side_isolate("127.75.0.0/24");
	side_run(run_requester, run_responder);
	return 0;
}
