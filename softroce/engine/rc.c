/* SPDX-License-Identifier: BSD-3-Clause */
/* rc.c - the reliable connection service: its table entry */
#include "softroce/engine/rc.h"
#include "softroce/engine/service.h"
#include <string.h>

static void rc_receive(struct sr_qp *qp, const struct sr_packet *packet)
{
	if (packet->kind & SR_PKT_REQUEST)
		sr_responder_receive(qp, packet);
	else
		sr_completer_receive(qp, packet);
}

/* Answers first: they are what the peer's timers wait for. */
static unsigned rc_transmit(struct sr_qp *qp, unsigned burst)
{
	unsigned n;

	if (qp->nic->data_first)
		return sr_requester_transmit(qp, burst);
	n = sr_responder_transmit(qp, burst);
	if (n < burst && !qp->nic->wire_full)
		n += sr_requester_transmit(qp, burst - n);
	return n;
}

static bool rc_pending(const struct sr_qp *qp)
{
	return sr_responder_pending(qp) || sr_requester_pending(qp);
}

static void rc_silence(struct sr_qp *qp)
{
	qp->resp.reply = SR_REPLY_NONE;
	for (unsigned i = 0; i < SR_MAX_RD_ATOMIC; i++)
		qp->resp.res[i].pending = false;
	qp->resp.res_pending = 0;
}

static void rc_reset(struct sr_qp *qp)
{
	memset(&qp->req, 0, sizeof(qp->req));
	memset(&qp->resp, 0, sizeof(qp->resp));
}

const struct sr_service sr_service_rc = {
	.type = IBV_QPT_RC,
	.opcode_class = SR_CLASS_RC,
	.post = sr_requester_post,
	.receive = rc_receive,
	.transmit = rc_transmit,
	.pending = rc_pending,
	.expired = sr_completer_expired,
	.drain = sr_requester_drain,
	.silence = rc_silence,
	.reset = rc_reset,
};
