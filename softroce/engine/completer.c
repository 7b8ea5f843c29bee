/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * completer.c - the requester's ear: acknowledgements, read responses, and the one timer of a
 * reliable connection
 *
 * The timer means one of two things (IBTA vol. 1, 9.7.6.1.3 and 9.7.5.2.8):
 *   rnr_wait clear  retransmission: nothing was acknowledged for 4.096 us * 2^timeout while packets
 *                   were on the way;
 *   rnr_wait set    the peer had no receive posted and named a time after which to try again.
 */
#include "softroce/engine/completion.h"
#include "softroce/engine/psn.h"
#include "softroce/engine/rc.h"

/* RNR NAK timer codes in units of 10 us, table 45. */
static const uint32_t rnr_time[32] = {
	65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,    32,
	48,    64,   96,   128,  192,  256,   384,   512,   768,   1024,  1536,
	2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};
#define RNR_UNIT_NS 10000ull
#define RNR_FOREVER 7
#define RETRY_FOREVER 7

/* Something new was acknowledged: the peer answers. */
static void note_progress(struct sr_qp *qp)
{
	struct sr_requester *req = &qp->req;

	req->retry_left = qp->attr.retry_cnt;
	req->rnr_left = qp->attr.rnr_retry;
	req->implied = false;
	while (req->rd_tail != req->rd_head &&
	       sr_psn_diff(req->rd_last[req->rd_tail % SR_MAX_RD_ATOMIC], req->una_psn) < 0)
		req->rd_tail++;
	if (sr_psn_diff(req->una_psn, req->next_psn) > 0) {
		/*
		 * Answers to packets from before a rewind: what they cover need not be sent again.
		 */
		req->next_psn = req->una_psn;
		qp->sq.cur = qp->sq.tail;
		req->send_pos = (struct sr_sge_pos) { 0 };
	}
	if (!req->rnr_wait) {
		if (req->una_psn == req->next_psn)
			sr_timer_stop(&qp->timer);
		else
			sr_requester_start_timer(qp);
	}
	if (qp->sq.cur != qp->sq.head)
		sr_qp_activate(qp);
}

/* The oldest send is done; one behind it that could not be sent is then reported. */
static void complete_tail(struct sr_qp *qp)
{
	qp->req.place_pos = (struct sr_sge_pos) { 0 };
	sr_complete_send(qp, IBV_WC_SUCCESS);
	sr_requester_complete_locals(qp);
}

/*
 * Everything before `psn` has arrived. Stops at a read or atomic whose answer is missing: then
 * una_psn stays before psn, and the caller knows that an answer was lost (an implied NAK,
 * 9.7.5.1.2).
 */
static void acknowledge_before(struct sr_qp *qp, uint32_t psn)
{
	struct sr_requester *req = &qp->req;
	uint32_t before = req->una_psn;

	while (req->una_psn != psn) {
		const struct sr_swqe *wqe = sr_sq_at(&qp->sq, qp->sq.tail);
		uint32_t end = sr_psn_add(wqe->last_psn, 1);

		if (sr_wr_needs_response(wqe))
			break;
		if (sr_wr_is_local(wqe) && !(wqe->flags & SR_SEND_DONE))
			break;
		if (sr_psn_diff(psn, end) < 0) {
			req->una_psn = psn;
			break;
		}
		req->una_psn = end;
		complete_tail(qp);
	}
	if (req->una_psn != before)
		note_progress(qp);
}

/*
 * After acknowledgements: a local error that waited to be the oldest is due, and a send queue may
 * have drained.
 */
static void settle_sends(struct sr_qp *qp)
{
	if (qp->sq.tail != qp->sq.head) {
		const struct sr_swqe *wqe = sr_sq_at(&qp->sq, qp->sq.tail);

		if (wqe->status != IBV_WC_SUCCESS)
			sr_requester_fail(qp, wqe->status);
	}
	sr_requester_check_drained(qp);
}

/* One more try from the oldest unacknowledged packet, or the end. */
static void retry_sends(struct sr_qp *qp)
{
	struct sr_requester *req = &qp->req;

	if (!req->retry_left) {
		qp->nic->counters.retry_exceeded_err++;
		sr_requester_fail(qp, IBV_WC_RETRY_EXC_ERR);
		return;
	}
	if (!qp->nic->config.retry_forever || qp->attr.retry_cnt != RETRY_FOREVER)
		req->retry_left--;
	qp->nic->counters.completer_retry_err++;
	sr_requester_rewind(qp);
	sr_timer_stop(&qp->timer); /* runs again from the first repeated packet */
}

/* An answer is missing. The packets behind it will say so too, which asks for one retry only. */
static void implied_nak(struct sr_qp *qp)
{
	struct sr_requester *req = &qp->req;

	if (req->implied && req->implied_psn == req->una_psn)
		return;
	req->implied = true;
	req->implied_psn = req->una_psn;
	retry_sends(qp);
}

static void receiver_not_ready(struct sr_qp *qp, unsigned code)
{
	struct sr_requester *req = &qp->req;

	if (req->rnr_wait)
		return;
	qp->nic->counters.rcvd_rnr_err++;
	if (qp->attr.rnr_retry != RNR_FOREVER) {
		if (!req->rnr_left) {
			qp->nic->counters.retry_rnr_exceeded_err++;
			sr_requester_fail(qp, IBV_WC_RNR_RETRY_EXC_ERR);
			return;
		}
		req->rnr_left--;
	}
	req->rnr_wait = true;
	sr_requester_rewind(qp);
	sr_timer_stop(&qp->timer);
	sr_timer_arm(&qp->nic->timers, &qp->timer, qp->nic->now + rnr_time[code] * RNR_UNIT_NS);
}

static void handle_nak(struct sr_qp *qp, uint8_t syndrome)
{
	switch (syndrome) {
	case SR_NAK_SEQUENCE:
		qp->nic->counters.rcvd_seq_err++;
		if (!qp->req.rnr_wait)
			retry_sends(qp);
		return;
	case SR_NAK_INVALID:
		sr_requester_fail(qp, IBV_WC_REM_INV_REQ_ERR);
		return;
	case SR_NAK_ACCESS:
		sr_requester_fail(qp, IBV_WC_REM_ACCESS_ERR);
		return;
	case SR_NAK_OPERATION:
		sr_requester_fail(qp, IBV_WC_REM_OP_ERR);
		return;
	default: /* reserved codes: as if it had not come */
		qp->nic->counters.dropped_bad_header++;
		return;
	}
}

static void handle_ack(struct sr_qp *qp, const struct sr_packet *packet)
{
	bool ack = (packet->syndrome & SR_AETH_KIND) == 0;
	uint32_t psn = ack ? sr_psn_add(packet->psn, 1) : packet->psn;

	acknowledge_before(qp, psn);
	settle_sends(qp);
	if (qp->state == IBV_QPS_ERR)
		return;
	if (qp->req.una_psn != psn)
		implied_nak(qp);
	else if ((packet->syndrome & SR_AETH_KIND) == SR_AETH_RNR)
		receiver_not_ready(qp, packet->syndrome & 0x1f);
	else if (!ack)
		handle_nak(qp, packet->syndrome);
}

/* How many bytes the response with this PSN must carry. */
static uint32_t response_length(const struct sr_qp *qp, const struct sr_swqe *wqe, uint32_t psn)
{
	if (psn != wqe->last_psn)
		return qp->mtu;
	return wqe->length - (sr_psn_add(psn, -wqe->first_psn) << qp->mtu_shift);
}

/* Puts an answer's bytes into the oldest send's buffers. */
static void place_response(struct sr_qp *qp, uint32_t psn, const void *from, uint32_t length)
{
	struct sr_requester *req = &qp->req;
	const struct sr_swqe *wqe = sr_sq_at(&qp->sq, qp->sq.tail);
	uint64_t offset = (uint64_t)sr_psn_add(psn, -wqe->first_psn) << qp->mtu_shift;

	sr_sge_seek(sr_swqe_list(wqe), &req->place_pos, offset);
	if (sr_sge_scatter(qp->pd, sr_swqe_list(wqe), &req->place_pos, from, length)) {
		sr_requester_fail(qp, IBV_WC_LOC_PROT_ERR);
		return;
	}
	req->una_psn = sr_psn_add(psn, 1);
	if (psn == wqe->last_psn)
		complete_tail(qp);
	note_progress(qp);
	settle_sends(qp);
}

static void handle_response(struct sr_qp *qp, const struct sr_packet *packet)
{
	const struct sr_swqe *wqe;

	acknowledge_before(qp, packet->psn);
	if (qp->req.una_psn != packet->psn) {
		implied_nak(qp);
		return;
	}
	wqe = sr_sq_at(&qp->sq, qp->sq.tail);
	if (packet->kind & SR_PKT_ATOMIC) {
		if (sr_wr_needs_response(wqe) && !sr_wr_is_read(wqe))
			place_response(qp, packet->psn, &packet->original,
				       sizeof(packet->original));
		else
			sr_requester_fail(qp, IBV_WC_BAD_RESP_ERR);
	} else if (sr_wr_is_read(wqe) &&
		   packet->payload_len == response_length(qp, wqe, packet->psn)) {
		place_response(qp, packet->psn, packet->payload, packet->payload_len);
	} else {
		sr_requester_fail(qp, IBV_WC_BAD_RESP_ERR);
	}
}

void sr_completer_receive(struct sr_qp *qp, const struct sr_packet *packet)
{
	struct sr_requester *req = &qp->req;

	if (qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_SQD)
		return;
	/* Old news, or news of what was never sent. */
	if (sr_psn_diff(packet->psn, req->una_psn) < 0 ||
	    sr_psn_diff(packet->psn, req->max_psn) >= 0) {
		qp->nic->counters.dropped_answer++;
		return;
	}
	if (packet->opcode == SR_OP_ACK)
		handle_ack(qp, packet);
	else
		handle_response(qp, packet);
}

void sr_completer_expired(struct sr_qp *qp)
{
	if (qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_SQD)
		return;
	if (qp->req.rnr_wait) {
		qp->req.rnr_wait = false;
		sr_qp_activate(qp);
		return;
	}
	qp->req.implied = false;
	if (qp->req.una_psn != qp->req.max_psn)
		retry_sends(qp);
}
