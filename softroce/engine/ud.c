/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ud.c - unreliable datagrams (IBTA vol. 1, 9.8.3): each work request is one packet to whoever its
 * address handle names
 *
 * Before the payload, a receive gets 40 bytes that say where it came from: the packet's IPv6 header
 * or, in the last 20 of them, its IPv4 header (annex A17.4.5.1). A program behind a UDP socket sees
 * neither, so they are made from what is known: addresses, length and traffic class; the
 * identification counts as 0.
 */
#include "softroce/engine/completion.h"
#include "softroce/engine/psn.h"
#include "softroce/engine/rc.h"
#include "softroce/engine/service.h"
#include "softroce/engine/unreliable.h"
#include <errno.h>
#include <string.h>

#define GRH_LEN 40u
#define IPV4_AT 20u
#define UDP_HEADER 8u
#define ICRC_LEN 4u
#define PROTOCOL_UDP 17
#define QKEY_PRIVILEGED 0x80000000u /* "use the queue pair's own", 10.2.5 */

static int ud_post(struct sr_qp *qp, const struct ibv_send_wr *wr, struct sr_swqe *wqe)
{
	struct sr_ud_dest *dest = sr_ud_dest(&qp->sq, wqe);

	if ((wr->opcode != IBV_WR_SEND && wr->opcode != IBV_WR_SEND_WITH_IMM) || !wr->wr.ud.ah ||
	    wr->wr.ud.remote_qpn > 0xffffff || wqe->length > qp->mtu)
		return -EINVAL;
	dest->path = ((const struct sr_ah *)wr->wr.ud.ah)->path;
	dest->qpn = wr->wr.ud.remote_qpn;
	dest->qkey =
		wr->wr.ud.remote_qkey & QKEY_PRIVILEGED ? qp->attr.qkey : wr->wr.ud.remote_qkey;
	wqe->imm = wr->imm_data;
	wqe->first_psn = wqe->last_psn = qp->req.post_psn;
	qp->req.post_psn = sr_psn_add(qp->req.post_psn, 1);
	return 0;
}

static int ud_build(struct sr_qp *qp, const struct sr_swqe *wqe, struct sr_frame *frame)
{
	const struct sr_ud_dest *dest = sr_ud_dest(&qp->sq, wqe);
	struct sr_deth deth = { htobe32(dest->qkey), htobe32(qp->qpn) };
	bool imm = wqe->opcode == IBV_WR_SEND_WITH_IMM;
	char *at = sr_rc_frame(qp, frame, imm ? SR_OP_SEND_ONLY_IMM : SR_OP_SEND_ONLY,
			       qp->req.next_psn);
	struct sr_bth *bth = (struct sr_bth *)frame->hdr;
	int n;

	bth->qpn = htobe32(dest->qpn);
	if (wqe->flags & IBV_SEND_SOLICITED)
		bth->flags |= SR_BTH_SE;
	memcpy(at, &deth, sizeof(deth));
	at += sizeof(deth);
	if (imm) {
		memcpy(at, &wqe->imm, SR_IMM_LEN);
		at += SR_IMM_LEN;
	}
	frame->path = &dest->path;
	sr_rc_finish(frame, at, wqe->length);
	if (wqe->flags & IBV_SEND_INLINE) {
		frame->iov[0] = (struct iovec) { (char *)(uintptr_t)wqe->sge, wqe->length };
		frame->iov_n = wqe->length ? 1 : 0;
		return 0;
	}
	qp->req.send_pos = (struct sr_sge_pos) { 0 };
	n = sr_sge_gather(qp->pd, sr_swqe_list(wqe), &qp->req.send_pos, wqe->length, frame->iov);
	frame->iov_n = (uint8_t)(n < 0 ? 0 : n);
	return n < 0 ? n : 0;
}

static unsigned ud_transmit(struct sr_qp *qp, unsigned burst)
{
	return sr_unreliable_transmit(qp, burst, ud_build);
}

static void put_be16(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static void put_ipv4(uint8_t *ip, const struct sr_path *path, uint32_t len)
{
	uint32_t sum = 0;

	ip[0] = 0x45;
	ip[1] = path->tclass;
	put_be16(ip + 2, len + 20);
	ip[6] = 0x40; /* not to be fragmented */
	ip[8] = path->ttl;
	ip[9] = PROTOCOL_UDP;
	memcpy(ip + 12, path->dst + 12, 4); /* the path is seen from us: dst sent it */
	memcpy(ip + 16, path->src + 12, 4);
	for (int i = 0; i < 20; i += 2)
		sum += (uint32_t)ip[i] << 8 | ip[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	put_be16(ip + 10, ~(sum + (sum >> 16)));
}

/* The 40 bytes before the payload. */
static void put_grh(uint8_t grh[GRH_LEN], const struct sr_packet *packet, uint32_t headers)
{
	uint32_t len = UDP_HEADER + headers + ((packet->payload_len + 3) & ~3u) + ICRC_LEN;
	const struct sr_path *path = packet->path;

	memset(grh, 0, GRH_LEN);
	if (sr_gid_is_ipv4(path->dst)) {
		put_ipv4(grh + IPV4_AT, path, len);
		return;
	}
	grh[0] = (uint8_t)(0x60 | path->tclass >> 4);
	grh[1] = (uint8_t)(path->tclass << 4);
	put_be16(grh + 4, len);
	grh[6] = PROTOCOL_UDP;
	grh[7] = path->ttl;
	memcpy(grh + 8, path->dst, 16);
	memcpy(grh + 24, path->src, 16);
}

static void ud_receive(struct sr_qp *qp, const struct sr_packet *packet)
{
	uint32_t headers = sizeof(struct sr_bth) + sizeof(struct sr_deth) +
			   (packet->kind & SR_PKT_IMM ? SR_IMM_LEN : 0);
	uint8_t grh[GRH_LEN];
	struct sr_sge_pos pos = { 0 };
	struct sr_sge_list list;

	if (qp->state == IBV_QPS_ERR)
		return;
	if (packet->qkey != qp->attr.qkey) {
		qp->nic->counters.dropped_bad_qkey++;
		return;
	}
	if (packet->payload_len > qp->mtu) {
		qp->nic->counters.dropped_message++;
		return;
	}
	if (!sr_receive_take(qp)) {
		qp->nic->counters.dropped_no_receive++;
		return;
	}
	if (packet->payload_len + GRH_LEN > qp->resp.rwqe->length) {
		sr_unreliable_receive_failed(qp, IBV_WC_LOC_LEN_ERR);
		return;
	}
	put_grh(grh, packet, headers);
	list = (struct sr_sge_list) { qp->resp.rwqe->sge, qp->resp.rwqe->num_sge };
	if (sr_sge_scatter(qp->pd_recv, list, &pos, grh, GRH_LEN) ||
	    sr_sge_scatter(qp->pd_recv, list, &pos, packet->payload, packet->payload_len))
		sr_unreliable_receive_failed(qp, IBV_WC_LOC_PROT_ERR);
	else
		sr_complete_message(qp, packet, IBV_WC_RECV, packet->payload_len + GRH_LEN);
}

/* A datagram is as long as the port's packets may be. */
static void ud_reset(struct sr_qp *qp)
{
	sr_unreliable_reset(qp);
	qp->mtu_shift = (uint8_t)(7 + qp->nic->config.active_mtu);
	qp->mtu = 1u << qp->mtu_shift;
}

const struct sr_service sr_service_ud = {
	.type = IBV_QPT_UD,
	.opcode_class = SR_CLASS_UD,
	.anyone = true,
	.survives = true,
	.post = ud_post,
	.receive = ud_receive,
	.transmit = ud_transmit,
	.pending = sr_unreliable_pending,
	.expired = sr_unreliable_expired,
	.drain = sr_unreliable_drain,
	.silence = sr_unreliable_silence,
	.reset = ud_reset,
};
