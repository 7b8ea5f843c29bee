/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * requester.c - the sending half of a reliable connection: work requests become packets
 *
 * Sequence numbers are given out when a request is posted, so a packet's place in its message
 * follows from its number alone, and going back (sr_requester_rewind) is nothing but setting
 * next_psn to una_psn. A long read is sent as several read requests of read_packets responses each,
 * cut at fixed places of the message: the peer's answers never exceed the window, and a repeated
 * request never reaches beyond what the peer has already seen.
 */
#include "softroce/engine/completion.h"
#include "softroce/engine/psn.h"
#include "softroce/engine/qp_state.h"
#include "softroce/engine/rc.h"
#include <errno.h>
#include <string.h>

/*
 * Work on a window has no packet, so it takes no sequence number: its last one lies before its
 * first one.
 */
static int post_local(struct sr_qp *qp, const struct ibv_send_wr *wr, struct sr_swqe *wqe)
{
	const struct ibv_mw_bind_info *info = &wr->bind_mw.bind_info;

	if (wr->num_sge || (wr->send_flags & IBV_SEND_INLINE))
		return -EINVAL;
	if (wr->opcode == IBV_WR_BIND_MW) {
		if (!wr->bind_mw.mw || (info->length && !info->mr))
			return -EINVAL;
		wqe->rkey = wr->bind_mw.rkey;
		wqe->remote_addr = info->addr;
		wqe->swap_add = info->length;
		wqe->compare =
			(uint64_t)info->mw_access_flags << 32 | (info->mr ? info->mr->lkey : 0);
	} else {
		wqe->rkey = wr->invalidate_rkey;
	}
	wqe->first_psn = qp->req.post_psn;
	wqe->last_psn = sr_psn_add(wqe->first_psn, SR_PSN_MASK);
	return 0;
}

int sr_requester_post(struct sr_qp *qp, const struct ibv_send_wr *wr, struct sr_swqe *wqe)
{
	struct sr_requester *req = &qp->req;
	uint32_t packets;

	switch (wr->opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
	case IBV_WR_SEND_WITH_INV:
		break;
	case IBV_WR_LOCAL_INV:
	case IBV_WR_BIND_MW:
		return post_local(qp, wr, wqe);
	case IBV_WR_RDMA_READ:
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		if ((wr->send_flags & IBV_SEND_INLINE) ||
		    (!qp->attr.max_rd_atomic && qp->state != IBV_QPS_ERR))
			return -EINVAL;
		if (wr->opcode != IBV_WR_RDMA_READ && wqe->length != sizeof(uint64_t))
			return -EINVAL;
		break;
	default:
		return -EINVAL;
	}
	wqe->imm = wr->opcode == IBV_WR_SEND_WITH_INV ? htobe32(wr->invalidate_rkey) : wr->imm_data;
	if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		bool cas = wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;

		wqe->remote_addr = wr->wr.atomic.remote_addr;
		wqe->rkey = wr->wr.atomic.rkey;
		wqe->swap_add = cas ? wr->wr.atomic.swap : wr->wr.atomic.compare_add;
		wqe->compare = cas ? wr->wr.atomic.compare_add : 0;
		packets = 1;
	} else {
		wqe->remote_addr = wr->wr.rdma.remote_addr;
		wqe->rkey = wr->wr.rdma.rkey;
		packets = (uint32_t)(((uint64_t)wqe->length + qp->mtu - 1) >> qp->mtu_shift);
		packets += !packets;
	}
	wqe->first_psn = req->post_psn;
	req->post_psn = sr_psn_add(req->post_psn, packets);
	wqe->last_psn = sr_psn_add(req->post_psn, SR_PSN_MASK);
	return 0;
}

void sr_requester_complete_locals(struct sr_qp *qp)
{
	/* Up to the head: after a rewind the tail may have passed what is being sent. */
	while (qp->sq.tail != qp->sq.head && (sr_sq_at(&qp->sq, qp->sq.tail)->flags & SR_SEND_DONE))
		sr_complete_send(qp, IBV_WC_SUCCESS);
	if ((int32_t)(qp->sq.cur - qp->sq.tail) < 0)
		qp->sq.cur = qp->sq.tail;
}

void sr_requester_start_timer(struct sr_qp *qp)
{
	if (qp->attr.timeout)
		sr_timer_arm(&qp->nic->timers, &qp->timer,
			     qp->nic->now + (4096ull << qp->attr.timeout));
}

void sr_requester_rewind(struct sr_qp *qp)
{
	qp->sq.cur = qp->sq.tail;
	qp->req.next_psn = qp->req.una_psn;
	qp->req.send_pos = (struct sr_sge_pos) { 0 };
	qp->req.rd_tail = qp->req.rd_head; /* asked again, so nothing is on the way */
	sr_qp_activate(qp);
}

void sr_requester_fail(struct sr_qp *qp, enum ibv_wc_status status)
{
	qp->nic->counters.send_err++;
	if (qp->sq.tail != qp->sq.head)
		sr_complete_send(qp, status);
	sr_qp_enter_error(qp);
}

void sr_requester_drain(struct sr_qp *qp)
{
	if (qp->req.una_psn != qp->req.next_psn)
		sr_requester_rewind(qp);
}

/* A request nobody has begun to send, and the first that SQD or a fence may hold back. */
static bool not_begun(const struct sr_qp *qp, const struct sr_swqe *wqe)
{
	return sr_psn_diff(wqe->first_psn, qp->req.max_psn) >= 0;
}

void sr_requester_check_drained(struct sr_qp *qp)
{
	if (qp->state != IBV_QPS_SQD || qp->req.drained_reported)
		return;
	if (qp->sq.tail != qp->sq.head && !not_begun(qp, sr_sq_at(&qp->sq, qp->sq.tail)))
		return;
	qp->req.drained_reported = true;
	if (qp->attr.en_sqd_async_notify)
		sr_nic_async(qp->nic, IBV_EVENT_SQ_DRAINED, qp->user);
}

/*
 * How many sequence numbers the next packet takes: one, or for a read one per response up to the
 * next cut.
 */
static uint32_t next_span(const struct sr_qp *qp, const struct sr_swqe *wqe)
{
	uint32_t done, left;

	if (!sr_wr_is_read(wqe))
		return 1;
	done = sr_psn_add(qp->req.next_psn, -wqe->first_psn) % qp->read_packets;
	left = sr_psn_add(wqe->last_psn, 1 - qp->req.next_psn);
	return left < qp->read_packets - done ? left : qp->read_packets - done;
}

/* Its peer has room for it: packets in flight, and reads that wait for their data. */
static bool has_room(const struct sr_qp *qp, const struct sr_swqe *wqe)
{
	const struct sr_requester *req = &qp->req;
	uint32_t inflight = sr_wr_is_local(wqe) ? 0 : sr_psn_add(req->next_psn, -req->una_psn);

	if (inflight && inflight + next_span(qp, wqe) > qp->max_inflight)
		return false;
	return !sr_wr_needs_response(wqe) || req->rd_head - req->rd_tail < qp->attr.max_rd_atomic;
}

/* The work request to send from, or NULL when nothing may be sent now. */
static struct sr_swqe *next_wqe(const struct sr_qp *qp)
{
	const struct sr_requester *req = &qp->req;
	struct sr_swqe *wqe;

	if (qp->sq.cur == qp->sq.head || req->rnr_wait ||
	    (qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_SQD))
		return NULL;
	wqe = sr_sq_at(&qp->sq, qp->sq.cur);
	if (wqe->status != IBV_WC_SUCCESS || !has_room(qp, wqe))
		return NULL;
	if (req->next_psn != wqe->first_psn || (wqe->flags & SR_SEND_DONE))
		return wqe;
	if (qp->state == IBV_QPS_SQD && not_begun(qp, wqe))
		return NULL;
	if ((wqe->flags & IBV_SEND_FENCE) && req->rd_head != req->rd_tail)
		return NULL;
	return wqe;
}

bool sr_requester_pending(const struct sr_qp *qp)
{
	return next_wqe(qp);
}

static void *put_reth(void *at, uint64_t va, uint32_t rkey, uint32_t length)
{
	struct sr_reth reth = { htobe64(va), htobe32(rkey), htobe32(length) };

	memcpy(at, &reth, sizeof(reth));
	return (char *)at + sizeof(reth);
}

static void build_atomic(struct sr_qp *qp, const struct sr_swqe *wqe, struct sr_frame *frame)
{
	uint8_t opcode =
		wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? SR_OP_CMP_SWAP : SR_OP_FETCH_ADD;
	void *at = sr_rc_frame(qp, frame, opcode, wqe->first_psn | SR_BTH_ACKREQ);
	struct sr_atomiceth eth = {
		htobe64(wqe->remote_addr),
		htobe32(wqe->rkey),
		htobe64(wqe->swap_add),
		htobe64(wqe->compare),
	};

	memcpy(at, &eth, sizeof(eth));
	sr_rc_finish(frame, (char *)at + sizeof(eth), 0);
}

static void build_read(struct sr_qp *qp, const struct sr_swqe *wqe, struct sr_frame *frame,
		       uint32_t span)
{
	uint32_t psn = qp->req.next_psn;
	uint64_t offset = (uint64_t)sr_psn_add(psn, -wqe->first_psn) << qp->mtu_shift;
	uint64_t length = (uint64_t)span << qp->mtu_shift;
	void *at = sr_rc_frame(qp, frame, SR_OP_READ_REQUEST, psn | SR_BTH_ACKREQ);

	if (length > wqe->length - offset)
		length = wqe->length - offset;
	sr_rc_finish(frame, put_reth(at, wqe->remote_addr + offset, wqe->rkey, (uint32_t)length),
		     0);
}

/*
 * Asks for an acknowledgement where somebody waits for it: at the end of a message whose completion
 * is wanted or behind which nothing is posted, and four times per window so that it keeps moving.
 */
static bool wants_ack(const struct sr_qp *qp, const struct sr_swqe *wqe, uint32_t psn)
{
	if (((psn + 1) & qp->ack_mask) == 0)
		return true;
	if (psn != wqe->last_psn)
		return false;
	if ((wqe->flags & IBV_SEND_SIGNALED) || qp->sq.cur + 1 == qp->sq.head ||
	    qp->state == IBV_QPS_SQD)
		return true;
	wqe = sr_sq_at(&qp->sq, qp->sq.cur + 1);
	return wqe->status != IBV_WC_SUCCESS || sr_wr_is_local(wqe);
}

static uint8_t data_opcode(const struct sr_swqe *wqe, bool first, bool last)
{
	bool write = wqe->opcode <= IBV_WR_RDMA_WRITE_WITH_IMM;
	bool imm = wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM || wqe->opcode == IBV_WR_SEND_WITH_IMM;
	uint8_t op;

	if (last && wqe->opcode == IBV_WR_SEND_WITH_INV)
		return first ? SR_OP_SEND_ONLY_INV : SR_OP_SEND_LAST_INV;
	if (first)
		op = (uint8_t)(last ? SR_OP_SEND_ONLY + imm : SR_OP_SEND_FIRST);
	else
		op = (uint8_t)(last ? SR_OP_SEND_LAST + imm : SR_OP_SEND_MIDDLE);
	return (uint8_t)(write ? op + SR_OP_WRITE_FIRST : op);
}

int sr_requester_build_data(struct sr_qp *qp, const struct sr_swqe *wqe, struct sr_frame *frame)
{
	uint32_t psn = qp->req.next_psn;
	uint64_t offset = (uint64_t)sr_psn_add(psn, -wqe->first_psn) << qp->mtu_shift;
	bool first = psn == wqe->first_psn, last = psn == wqe->last_psn;
	uint32_t length = last ? wqe->length - (uint32_t)offset : qp->mtu;
	uint8_t opcode = data_opcode(wqe, first, last);
	void *at =
		sr_rc_frame(qp, frame, opcode, psn | (wants_ack(qp, wqe, psn) ? SR_BTH_ACKREQ : 0));
	bool imm = wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM ||
		   wqe->opcode == IBV_WR_SEND_WITH_IMM || wqe->opcode == IBV_WR_SEND_WITH_INV;
	int n;

	if (first && wqe->opcode <= IBV_WR_RDMA_WRITE_WITH_IMM)
		at = put_reth(at, wqe->remote_addr, wqe->rkey, wqe->length);
	if (last && imm) {
		memcpy(at, &wqe->imm, SR_IMM_LEN);
		at = (char *)at + SR_IMM_LEN;
	}
	if (last && (wqe->flags & IBV_SEND_SOLICITED))
		frame->hdr[1] |= SR_BTH_SE;
	sr_rc_finish(frame, at, length);
	if (wqe->flags & IBV_SEND_INLINE) {
		frame->iov[0] = (struct iovec) { (char *)wqe->sge + offset, length };
		frame->iov_n = length ? 1 : 0;
		return 0;
	}
	sr_sge_seek(sr_swqe_list(wqe), &qp->req.send_pos, offset);
	n = sr_sge_gather(qp->pd, sr_swqe_list(wqe), &qp->req.send_pos, length, frame->iov);
	frame->iov_n = (uint8_t)(n < 0 ? 0 : n);
	return n < 0 ? n : 0;
}

static int build_frame(struct sr_qp *qp, const struct sr_swqe *wqe, struct sr_frame *frame,
		       uint32_t span)
{
	frame->stable = true;
	if (sr_wr_is_read(wqe))
		build_read(qp, wqe, frame, span);
	else if (sr_wr_needs_response(wqe))
		build_atomic(qp, wqe, frame);
	else
		return sr_requester_build_data(qp, wqe, frame);
	/* The answer will be written here: better to know before the peer has done the work. */
	return sr_sge_check_writable(qp->pd, sr_swqe_list(wqe));
}

/*
 * A buffer of the work request at `cur` is not ours to use. What was sent before it completes
 * first; the error is reported when it is the oldest, which may be now. Nobody may have asked for
 * the acknowledgement that shows it, so what is on the way is sent once more, up to here.
 */
static void local_error(struct sr_qp *qp, struct sr_swqe *wqe, enum ibv_wc_status status)
{
	wqe->status = (uint8_t)status;
	if (qp->sq.cur == qp->sq.tail)
		sr_requester_fail(qp, wqe->status);
	else
		sr_requester_rewind(qp);
}

/* Binds or invalidates a window, once: going back passes over it. False when that is an error. */
static bool do_local(struct sr_qp *qp, struct sr_swqe *wqe)
{
	const struct sr_mw_bind bind = {
		.rkey = wqe->rkey,
		.lkey = (uint32_t)wqe->compare,
		.addr = wqe->remote_addr,
		.length = wqe->swap_add,
		.access = (int)(wqe->compare >> 32),
	};
	int err = 0;

	if (wqe->flags & SR_SEND_DONE)
		err = 0;
	else if (wqe->opcode == IBV_WR_BIND_MW)
		err = sr_mw_bind(qp->nic, qp->pd, qp->qpn, &bind);
	else
		err = sr_mw_invalidate(qp->nic, qp->pd, qp->qpn, wqe->rkey);
	if (err) {
		local_error(qp, wqe, IBV_WC_MW_BIND_ERR);
		return false;
	}
	wqe->flags |= SR_SEND_DONE;
	qp->sq.cur++;
	sr_requester_complete_locals(qp);
	return true;
}

static void record_sent(struct sr_qp *qp, const struct sr_swqe *wqe, uint32_t span)
{
	struct sr_requester *req = &qp->req;
	uint32_t last = sr_psn_add(req->next_psn, span - 1);

	if (sr_wr_needs_response(wqe))
		req->rd_last[req->rd_head++ % SR_MAX_RD_ATOMIC] = last;
	if (last == wqe->last_psn) {
		qp->sq.cur++;
		req->send_pos = (struct sr_sge_pos) { 0 };
	}
	req->next_psn = sr_psn_add(last, 1);
	if (sr_psn_diff(req->next_psn, req->max_psn) > 0)
		req->max_psn = req->next_psn;
	if (qp->timer.due == SR_NEVER)
		sr_requester_start_timer(qp);
}

unsigned sr_requester_transmit(struct sr_qp *qp, unsigned burst)
{
	struct sr_frame frame;
	unsigned n = 0;

	for (; n < burst; n++) {
		struct sr_swqe *wqe = next_wqe(qp);
		uint32_t span;

		if (!wqe)
			break;
		if (sr_wr_is_local(wqe)) {
			if (do_local(qp, wqe))
				continue;
			break;
		}
		span = next_span(qp, wqe);
		if (build_frame(qp, wqe, &frame, span)) {
			local_error(qp, wqe, IBV_WC_LOC_PROT_ERR);
			break;
		}
		if (!sr_nic_emit(qp->nic, &frame))
			break; /* send_pos is ahead; the next attempt seeks */
		record_sent(qp, wqe, span);
	}
	sr_requester_check_drained(qp);
	return n;
}
