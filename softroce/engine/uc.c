/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uc.c - the unreliable connection (IBTA vol. 1, 9.8.2): SEND and WRITE without answers
 *
 * A message with a packet missing, or one that may not be, is dropped in silence and counted;
 * receiving goes on with the next message's first packet. A receive that was taken for a broken
 * message serves the next one.
 */
#include "softroce/engine/completion.h"
#include "softroce/engine/place.h"
#include "softroce/engine/psn.h"
#include "softroce/engine/rc.h"
#include "softroce/engine/service.h"
#include "softroce/engine/unreliable.h"
#include <errno.h>

static int uc_post(struct sr_qp *qp, const struct ibv_send_wr *wr, struct sr_swqe *wqe)
{
	/*
	 * Nothing that wants an answer, and no key can be invalidated without one. Windows are for
	 * those who do both.
	 */
	if (wr->opcode > IBV_WR_SEND_WITH_IMM)
		return -EINVAL;
	return sr_requester_post(qp, wr, wqe);
}

static unsigned uc_transmit(struct sr_qp *qp, unsigned burst)
{
	return sr_unreliable_transmit(qp, burst, sr_requester_build_data);
}

/* The rest of the message is of no use. */
static void drop_message(struct sr_qp *qp, uint64_t *counter)
{
	++*counter;
	qp->resp.incoming = SR_IN_NONE;
}

static bool take_receive(struct sr_qp *qp)
{
	return qp->resp.rwqe || sr_receive_take(qp);
}

static void receive_send(struct sr_qp *qp, const struct sr_packet *packet)
{
	struct sr_responder *resp = &qp->resp;
	struct sr_sge_list list;

	if (packet->kind & SR_PKT_FIRST) {
		if (!take_receive(qp)) {
			drop_message(qp, &qp->nic->counters.dropped_no_receive);
			return;
		}
		resp->incoming = SR_IN_SEND;
		resp->received = 0;
		resp->pos = (struct sr_sge_pos) { 0 };
	}
	if (packet->payload_len > resp->rwqe->length - resp->received) {
		sr_unreliable_receive_failed(qp, IBV_WC_LOC_LEN_ERR);
		return;
	}
	list = (struct sr_sge_list) { resp->rwqe->sge, resp->rwqe->num_sge };
	if (sr_sge_scatter(qp->pd_recv, list, &resp->pos, packet->payload, packet->payload_len)) {
		sr_unreliable_receive_failed(qp, IBV_WC_LOC_PROT_ERR);
		return;
	}
	resp->received += packet->payload_len;
	if (packet->kind & SR_PKT_LAST) {
		resp->incoming = SR_IN_NONE;
		sr_complete_message(qp, packet, IBV_WC_RECV, resp->received);
	}
}

/* Whether the message may be written, by its first packet. */
static bool begin_write(struct sr_qp *qp, const struct sr_packet *packet)
{
	struct sr_responder *resp = &qp->resp;

	if (!(qp->attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE) ||
	    packet->length > SR_MAX_MESSAGE)
		return false;
	resp->received = 0;
	resp->va = packet->va;
	resp->rkey = packet->rkey;
	resp->expected = packet->length;
	return !packet->length || sr_mr_translate(qp->nic, qp->pd, packet->rkey, packet->va,
						  packet->length, IBV_ACCESS_REMOTE_WRITE, qp->qpn);
}

static void receive_write(struct sr_qp *qp, const struct sr_packet *packet)
{
	struct sr_responder *resp = &qp->resp;
	uint32_t len = packet->payload_len, left;
	char *to = NULL;

	if ((packet->kind & SR_PKT_FIRST) && !begin_write(qp, packet)) {
		drop_message(qp, &qp->nic->counters.dropped_bad_key);
		return;
	}
	left = resp->expected - resp->received;
	if (packet->kind & SR_PKT_LAST ? len != left : len >= left) {
		drop_message(qp, &qp->nic->counters.dropped_message);
		return;
	}
	if (len)
		to = sr_mr_translate(qp->nic, qp->pd, resp->rkey, resp->va + resp->received, len,
				     IBV_ACCESS_REMOTE_WRITE, qp->qpn);
	if (len && !to) {
		drop_message(qp, &qp->nic->counters.dropped_bad_key);
		return;
	}
	if ((packet->kind & SR_PKT_IMM) && !take_receive(qp)) {
		drop_message(qp, &qp->nic->counters.dropped_no_receive);
		return;
	}
	if (len) {
		qp->nic->events.placing(qp->nic->config.user, to, packet->payload, len);
		sr_place(to, packet->payload, len);
	}
	resp->received += len;
	resp->incoming = packet->kind & SR_PKT_LAST ? SR_IN_NONE : SR_IN_WRITE;
	if (packet->kind & SR_PKT_IMM)
		sr_complete_message(qp, packet, IBV_WC_RECV_RDMA_WITH_IMM, resp->received);
}

static void uc_receive(struct sr_qp *qp, const struct sr_packet *packet)
{
	struct sr_responder *resp = &qp->resp;

	if (qp->state == IBV_QPS_ERR)
		return;
	if (packet->psn != resp->epsn) {
		qp->nic->counters.out_of_seq_request++;
		if (resp->incoming != SR_IN_NONE)
			drop_message(qp, &qp->nic->counters.dropped_message);
	}
	resp->epsn = sr_psn_add(packet->psn, 1);
	if ((packet->kind & SR_PKT_FIRST) && resp->incoming != SR_IN_NONE)
		drop_message(qp, &qp->nic->counters.dropped_message);
	if (!sr_responder_in_order(qp, packet))
		drop_message(qp, &qp->nic->counters.dropped_message);
	else if (packet->kind & SR_PKT_SEND)
		receive_send(qp, packet);
	else
		receive_write(qp, packet);
}

const struct sr_service sr_service_uc = {
	.type = IBV_QPT_UC,
	.opcode_class = SR_CLASS_UC,
	.survives = true,
	.post = uc_post,
	.receive = uc_receive,
	.transmit = uc_transmit,
	.pending = sr_unreliable_pending,
	.expired = sr_unreliable_expired,
	.drain = sr_unreliable_drain,
	.silence = sr_unreliable_silence,
	.reset = sr_unreliable_reset,
};
