/* SPDX-License-Identifier: BSD-3-Clause */
/* unreliable.c - the sending half of UC and UD; see unreliable.h */
#include "softroce/engine/unreliable.h"
#include "softroce/engine/completion.h"
#include "softroce/engine/psn.h"
#include "softroce/engine/qp_state.h"
#include <string.h>

/*
 * A buffer of the work request is not ours to use. Only the send queue stops (IBTA vol. 1,
 * 10.3.1.6): what is behind it is flushed, receiving goes on, and the program brings the queue pair
 * back from SQE to RTS.
 */
static void fail_send(struct sr_qp *qp)
{
	qp->nic->counters.send_err++;
	sr_complete_send(qp, IBV_WC_LOC_PROT_ERR);
	qp->state = IBV_QPS_SQE;
	sr_flush_sends(qp);
}

bool sr_unreliable_pending(const struct sr_qp *qp)
{
	/* A message that was begun is finished also when the queue drains. */
	if (qp->state == IBV_QPS_SQD)
		return qp->sq.cur != qp->sq.head &&
		       qp->req.next_psn != sr_sq_at(&qp->sq, qp->sq.cur)->first_psn;
	return qp->state == IBV_QPS_RTS && qp->sq.cur != qp->sq.head;
}

static void check_drained(struct sr_qp *qp)
{
	if (qp->state != IBV_QPS_SQD || qp->req.drained_reported || sr_unreliable_pending(qp))
		return;
	qp->req.drained_reported = true;
	if (qp->attr.en_sqd_async_notify)
		sr_nic_async(qp->nic, IBV_EVENT_SQ_DRAINED, qp->user);
}

unsigned sr_unreliable_transmit(struct sr_qp *qp, unsigned burst, sr_unreliable_build build)
{
	struct sr_requester *req = &qp->req;
	struct sr_frame frame;
	unsigned n = 0;

	for (; n < burst && sr_unreliable_pending(qp); n++) {
		const struct sr_swqe *wqe = sr_sq_at(&qp->sq, qp->sq.cur);
		bool last = req->next_psn == wqe->last_psn;

		frame.stable = true;
		if (build(qp, wqe, &frame)) {
			fail_send(qp);
			break;
		}
		if (!sr_nic_emit(qp->nic, &frame))
			break;
		req->next_psn = req->una_psn = req->max_psn = sr_psn_add(req->next_psn, 1);
		if (last) {
			req->send_pos = (struct sr_sge_pos) { 0 };
			qp->sq.cur++;
			sr_complete_send(qp, IBV_WC_SUCCESS);
		}
	}
	check_drained(qp);
	return n;
}

void sr_unreliable_expired(struct sr_qp *qp)
{
}

void sr_unreliable_drain(struct sr_qp *qp)
{
}

void sr_unreliable_silence(struct sr_qp *qp)
{
}

void sr_unreliable_reset(struct sr_qp *qp)
{
	memset(&qp->req, 0, sizeof(qp->req));
	memset(&qp->resp, 0, sizeof(qp->resp));
}

void sr_unreliable_receive_failed(struct sr_qp *qp, enum ibv_wc_status status)
{
	const struct sr_received what = { .opcode = IBV_WC_RECV };

	sr_complete_receive(qp, status, &what);
	sr_nic_async(qp->nic, IBV_EVENT_QP_REQ_ERR, qp->user);
	sr_qp_enter_error(qp);
}
