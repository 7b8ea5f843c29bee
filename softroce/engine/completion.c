/* SPDX-License-Identifier: BSD-3-Clause */
/* completion.c - entries for completion queues; see completion.h */
#include "softroce/engine/completion.h"
#include "softroce/engine/qp.h"

static const uint8_t wc_opcode[] = {
	[IBV_WR_RDMA_WRITE] = IBV_WC_RDMA_WRITE,
	[IBV_WR_RDMA_WRITE_WITH_IMM] = IBV_WC_RDMA_WRITE,
	[IBV_WR_SEND] = IBV_WC_SEND,
	[IBV_WR_SEND_WITH_IMM] = IBV_WC_SEND,
	[IBV_WR_RDMA_READ] = IBV_WC_RDMA_READ,
	[IBV_WR_ATOMIC_CMP_AND_SWP] = IBV_WC_COMP_SWAP,
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = IBV_WC_FETCH_ADD,
	[IBV_WR_LOCAL_INV] = IBV_WC_LOCAL_INV,
	[IBV_WR_BIND_MW] = IBV_WC_BIND_MW,
	[IBV_WR_SEND_WITH_INV] = IBV_WC_SEND,
};

void sr_complete_send(struct sr_qp *qp, enum ibv_wc_status status)
{
	struct sr_sq *sq = &qp->sq;
	const struct sr_swqe *wqe = sr_sq_at(sq, sq->tail++);
	struct sr_cqe *cqe;

	sq->unreported++;
	if (status == IBV_WC_SUCCESS && !(wqe->flags & IBV_SEND_SIGNALED))
		return;
	cqe = sr_cq_reserve(qp->send_cq);
	if (!cqe)
		return;
	cqe->wc = (struct ibv_wc) {
		.wr_id = wqe->wr_id,
		.status = status,
		.opcode = wc_opcode[wqe->opcode],
		.byte_len = wqe->length,
		.qp_num = qp->qpn,
	};
	cqe->retired = &sq->retired;
	cqe->places = sq->unreported;
	cqe->shared = false;
	sq->unreported = 0;
	sr_cq_publish(qp->send_cq, status != IBV_WC_SUCCESS);
}

bool sr_receive_take(struct sr_qp *qp)
{
	if (qp->srq) {
		if (!sr_srq_take(qp->srq, qp->taken))
			return false;
		qp->resp.rwqe = qp->taken;
		return true;
	}
	if (sr_rq_empty(&qp->rq))
		return false;
	qp->resp.rwqe = sr_rq_at(&qp->rq, qp->rq.tail++);
	return true;
}

void sr_complete_receive(struct sr_qp *qp, enum ibv_wc_status status,
			 const struct sr_received *what)
{
	const struct sr_rwqe *wqe = qp->resp.rwqe;
	struct sr_cqe *cqe;

	qp->resp.rwqe = NULL;
	cqe = sr_cq_reserve(qp->recv_cq);
	if (!cqe)
		return;
	cqe->wc = (struct ibv_wc) {
		.wr_id = wqe->wr_id,
		.status = status,
		.opcode = what->opcode,
		.byte_len = what->byte_len,
		.imm_data = what->imm,
		.qp_num = qp->qpn,
		.src_qp = what->flags & IBV_WC_GRH ? what->src_qp : qp->attr.dest_qp_num,
		.wc_flags = what->flags,
		.sl = what->sl,
	};
	cqe->retired = qp->srq ? &qp->srq->rq.retired : &qp->rq.retired;
	cqe->places = 1;
	cqe->shared = qp->srq;
	sr_cq_publish(qp->recv_cq, what->solicited || status != IBV_WC_SUCCESS);
}

/*
 * What a datagram came in, where InfiniBand has a service level: annex A17.4.5.1 asks for a flag
 * without saying where.
 * 1 IPv6, 2 IPv4 is how mlx5 reports it, and UCX reads it so.
 */
static uint8_t ip_version(const struct sr_packet *packet)
{
	return sr_gid_is_ipv4(packet->path->dst) ? 2 : 1;
}

void sr_complete_message(struct sr_qp *qp, const struct sr_packet *packet,
			 enum ibv_wc_opcode opcode, uint32_t length)
{
	bool imm = packet->kind & SR_PKT_IMM, inv = packet->kind & SR_PKT_INV,
	     ud = packet->kind & SR_PKT_DETH;
	const struct sr_received what = {
		.opcode = opcode,
		.byte_len = length,
		.flags = (imm ? IBV_WC_WITH_IMM : 0) | (inv ? IBV_WC_WITH_INV : 0) |
			 (ud ? IBV_WC_GRH : 0),
		.solicited = packet->solicited,
		.imm = imm || inv ? packet->imm : 0,
		.src_qp = ud ? packet->src_qp : 0,
		.sl = ud ? ip_version(packet) : 0,
	};

	sr_complete_receive(qp, IBV_WC_SUCCESS, &what);
}

void sr_flush_sends(struct sr_qp *qp)
{
	while (qp->sq.tail != qp->sq.head)
		sr_complete_send(qp, IBV_WC_WR_FLUSH_ERR);
	qp->sq.cur = qp->sq.tail;
}

void sr_flush_receives(struct sr_qp *qp)
{
	static const struct sr_received flushed = { .opcode = IBV_WC_RECV };

	if (qp->resp.rwqe)
		sr_complete_receive(qp, IBV_WC_WR_FLUSH_ERR, &flushed);
	while (!qp->srq && sr_receive_take(qp))
		sr_complete_receive(qp, IBV_WC_WR_FLUSH_ERR, &flushed);
}
