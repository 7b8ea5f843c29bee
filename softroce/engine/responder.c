/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * responder.c - the receiving half of a reliable connection: the peer's requests are checked in the
 * order of IBTA vol. 1, 9.7.4.1 (sequence, opcode order, resources, rights, length), executed, and
 * answered
 *
 * Answers are not sent here but owed: the next sr_nic_progress() sends read and atomic responses in
 * order and behind them at most one acknowledgement, which covers everything received until then.
 * So a batch of packets costs one answer.
 */
#include "softroce/engine/completion.h"
#include "softroce/engine/place.h"
#include "softroce/engine/psn.h"
#include "softroce/engine/qp_state.h"
#include "softroce/engine/rc.h"
#include <string.h>

static void owe_reply(struct sr_qp *qp, enum sr_reply reply, uint8_t syndrome, uint32_t psn)
{
	qp->resp.reply = reply;
	qp->resp.syndrome = syndrome;
	qp->resp.reply_psn = psn;
	qp->nic->urgent = true;
	sr_qp_owe(qp);
}

/* It may wait when it is for one small packet; of a stream, the sender needs it to go on. */
static void owe_ack(struct sr_qp *qp, const struct sr_packet *packet)
{
	bool urgent = qp->nic->urgent || qp->resp.stream || qp->resp.unanswered > 1 ||
		      packet->payload_len > SR_ACK_WAITS_MAX;

	owe_reply(qp, SR_REPLY_ACK, SR_AETH_ACK, 0);
	qp->nic->urgent = urgent;
}

/*
 * A request that can not be: the peer learns why, and this queue pair is of no use any more
 * (9.9.3.1, class C).
 */
static void refuse_request(struct sr_qp *qp, uint8_t syndrome, enum ibv_event_type event)
{
	qp->nic->counters.refused_request++;
	owe_reply(qp, SR_REPLY_FATAL_NAK, syndrome, qp->resp.epsn);
	sr_nic_async(qp->nic, event, qp->user);
	sr_qp_enter_error(qp);
}

static void refuse_invalid(struct sr_qp *qp)
{
	refuse_request(qp, SR_NAK_INVALID, IBV_EVENT_QP_REQ_ERR);
}

static void refuse_access(struct sr_qp *qp)
{
	refuse_request(qp, SR_NAK_ACCESS, IBV_EVENT_QP_ACCESS_ERR);
}

/* The fault is in the receive that was posted: it completes with the reason, the peer receives only
 * that (9.9.3.1, class A). */
static void receive_failed(struct sr_qp *qp, enum ibv_wc_status status, uint8_t syndrome)
{
	const struct sr_received what = { .opcode = IBV_WC_RECV };

	owe_reply(qp, SR_REPLY_FATAL_NAK, syndrome, qp->resp.epsn);
	sr_complete_receive(qp, status, &what);
	sr_qp_enter_error(qp);
}

static void receiver_not_ready(struct sr_qp *qp)
{
	qp->nic->counters.send_rnr_err++;
	qp->resp.nak_sent = true;
	owe_reply(qp, SR_REPLY_NAK, (uint8_t)(SR_AETH_RNR | qp->attr.min_rnr_timer), qp->resp.epsn);
}

/* The packet at epsn was executed. */
static void advance_expected(struct sr_qp *qp, const struct sr_packet *packet, uint32_t psns)
{
	struct sr_responder *resp = &qp->resp;

	resp->epsn = sr_psn_add(resp->epsn, psns);
	resp->unanswered++;
	if (packet->kind & SR_PKT_LAST)
		resp->msn++;
	if (packet->kind & (SR_PKT_READ | SR_PKT_ATOMIC))
		return;
	if (packet->ack_request)
		owe_ack(qp, packet);
	else
		qp->nic->counters.ack_deferred++;
}

/* Where the peer's bytes lie, if it may do this to them. */
static char *translate_remote(const struct sr_qp *qp, uint32_t rkey, uint64_t va, uint64_t length,
			      int access)
{
	char *at = sr_mr_translate(qp->nic, qp->pd, rkey, va, length, access, qp->qpn);

	qp->nic->counters.dropped_bad_key += !at;
	return at;
}

static void receive_send(struct sr_qp *qp, const struct sr_packet *packet)
{
	struct sr_responder *resp = &qp->resp;
	struct sr_sge_list list;

	if (packet->kind & SR_PKT_FIRST) {
		if (!sr_receive_take(qp)) {
			receiver_not_ready(qp);
			return;
		}
		resp->incoming = SR_IN_SEND;
		resp->received = 0;
		resp->pos = (struct sr_sge_pos) { 0 };
	}
	if (packet->payload_len > resp->rwqe->length - resp->received) {
		receive_failed(qp, IBV_WC_LOC_LEN_ERR, SR_NAK_INVALID);
		return;
	}
	list = (struct sr_sge_list) { resp->rwqe->sge, resp->rwqe->num_sge };
	if (sr_sge_scatter(qp->pd_recv, list, &resp->pos, packet->payload, packet->payload_len)) {
		receive_failed(qp, IBV_WC_LOC_PROT_ERR, SR_NAK_OPERATION);
		return;
	}
	if ((packet->kind & SR_PKT_INV) &&
	    sr_mw_invalidate(qp->nic, qp->pd, qp->qpn, packet->imm)) {
		qp->nic->counters.dropped_bad_key++;
		refuse_access(qp);
		return;
	}
	resp->received += packet->payload_len;
	advance_expected(qp, packet, 1);
	if (packet->kind & SR_PKT_LAST) {
		resp->incoming = SR_IN_NONE;
		sr_complete_message(qp, packet, IBV_WC_RECV, resp->received);
	}
}

/* The RETH of a write's first packet: the whole range is checked. False when it was refused. */
static bool begin_write(struct sr_qp *qp, const struct sr_packet *packet, char **to)
{
	struct sr_responder *resp = &qp->resp;

	if (!(qp->attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE) ||
	    packet->length > SR_MAX_MESSAGE) {
		refuse_invalid(qp);
		return false;
	}
	if (packet->length) {
		*to = translate_remote(qp, packet->rkey, packet->va, packet->length,
				       IBV_ACCESS_REMOTE_WRITE);
		if (!*to) {
			refuse_access(qp);
			return false;
		}
	}
	resp->received = 0;
	resp->va = packet->va;
	resp->rkey = packet->rkey;
	resp->expected = packet->length;
	return true;
}

static void receive_write(struct sr_qp *qp, const struct sr_packet *packet)
{
	struct sr_responder *resp = &qp->resp;
	uint32_t len = packet->payload_len, left;
	char *to = NULL;

	if ((packet->kind & SR_PKT_FIRST) && !begin_write(qp, packet, &to))
		return;
	left = resp->expected - resp->received;
	if (packet->kind & SR_PKT_LAST ? len != left : len >= left) {
		refuse_invalid(qp);
		return;
	}
	if (len && !to) {
		/*
		 * Looked up for every packet: the region may have been deregistered since the
		 * first.
		 */
		to = translate_remote(qp, resp->rkey, resp->va + resp->received, len,
				      IBV_ACCESS_REMOTE_WRITE);
		if (!to) {
			refuse_access(qp);
			return;
		}
	}
	if ((packet->kind & SR_PKT_IMM) && !sr_receive_take(qp)) {
		receiver_not_ready(qp);
		return;
	}
	if (len) {
		qp->nic->events.placing(qp->nic->config.user, to, packet->payload, len);
		sr_place(to, packet->payload, len);
	}
	resp->received += len;
	resp->incoming = packet->kind & SR_PKT_LAST ? SR_IN_NONE : SR_IN_WRITE;
	advance_expected(qp, packet, 1);
	if (packet->kind & SR_PKT_IMM)
		sr_complete_message(qp, packet, IBV_WC_RECV_RDMA_WITH_IMM, resp->received);
}

static struct sr_resource *resource_at(struct sr_responder *resp, uint32_t index)
{
	return &resp->res[index % SR_MAX_RD_ATOMIC];
}

/*
 * Room for one more read or atomic, or NULL: the peer has more outstanding than was agreed
 * (9.7.4.1.3). One that waits to be answered a second time makes room: the peer would not ask for
 * this one if it still needed that answer.
 */
static struct sr_resource *new_resource(struct sr_qp *qp)
{
	struct sr_responder *resp = &qp->resp;
	uint32_t max = qp->attr.max_dest_rd_atomic;
	struct sr_resource *oldest;

	if (!max)
		return NULL;
	if (resp->res_head >= max) {
		oldest = resource_at(resp, resp->res_head - max);
		if (oldest->pending && !oldest->again)
			return NULL;
		resp->res_pending -= oldest->pending;
		oldest->pending = false;
	}
	return resource_at(resp, resp->res_head);
}

static void owe_response(struct sr_qp *qp, struct sr_resource *res)
{
	struct sr_responder *resp = &qp->resp;

	if (!resp->res_pending || (int32_t)(res->index - resp->res_oldest) < 0)
		resp->res_oldest = res->index;
	if (!res->pending) {
		res->pending = true;
		resp->res_pending++;
	}
	sr_qp_activate(qp);
}

static void receive_read(struct sr_qp *qp, const struct sr_packet *packet)
{
	struct sr_resource *res = new_resource(qp);
	uint32_t psns;

	if (!(qp->attr.qp_access_flags & IBV_ACCESS_REMOTE_READ) ||
	    packet->length > SR_MAX_MESSAGE || !res) {
		refuse_invalid(qp);
		return;
	}
	if (packet->length && !translate_remote(qp, packet->rkey, packet->va, packet->length,
						IBV_ACCESS_REMOTE_READ)) {
		refuse_access(qp);
		return;
	}
	psns = (packet->length + qp->mtu - 1) >> qp->mtu_shift;
	psns += !psns;
	*res = (struct sr_resource) {
		.index = qp->resp.res_head++,
		.first_psn = packet->psn,
		.last_psn = sr_psn_add(packet->psn, psns - 1),
		.start_psn = packet->psn,
		.next_psn = packet->psn,
		.rkey = packet->rkey,
		.length = packet->length,
		.va = packet->va,
	};
	advance_expected(qp, packet, psns);
	res->msn = qp->resp.msn;
	owe_response(qp, res);
}

/* Atomic also towards this machine's processors, so IBV_ATOMIC_GLOB. */
static uint64_t execute_atomic(uint64_t *at, const struct sr_packet *packet)
{
	uint64_t old = packet->compare;

	if (packet->opcode == SR_OP_FETCH_ADD)
		return __atomic_fetch_add(at, packet->swap_add, __ATOMIC_SEQ_CST);
	/* Writes what it found into `old` when it differs, and leaves it when it was equal: the old
	 * value either way. */
	__atomic_compare_exchange_n(at, &old, packet->swap_add, false, __ATOMIC_SEQ_CST,
				    __ATOMIC_SEQ_CST);
	return old;
}

static void receive_atomic(struct sr_qp *qp, const struct sr_packet *packet)
{
	struct sr_resource *res = new_resource(qp);
	char *at;

	if (!(qp->attr.qp_access_flags & IBV_ACCESS_REMOTE_ATOMIC) || (packet->va & 7) || !res) {
		refuse_invalid(qp);
		return;
	}
	at = translate_remote(qp, packet->rkey, packet->va, sizeof(uint64_t),
			      IBV_ACCESS_REMOTE_ATOMIC);
	if (!at || ((uintptr_t)at & 7)) {
		refuse_access(qp);
		return;
	}
	*res = (struct sr_resource) {
		.index = qp->resp.res_head++,
		.first_psn = packet->psn,
		.last_psn = packet->psn,
		.next_psn = packet->psn,
		.atomic = true,
		.result = execute_atomic((uint64_t *)(void *)at, packet),
	};
	advance_expected(qp, packet, 1);
	res->msn = qp->resp.msn;
	owe_response(qp, res);
}

bool sr_responder_in_order(const struct sr_qp *qp, const struct sr_packet *packet)
{
	enum sr_incoming incoming = qp->resp.incoming;

	if (packet->kind & SR_PKT_FIRST) {
		if (incoming != SR_IN_NONE)
			return false;
	} else if (incoming != (packet->kind & SR_PKT_SEND ? SR_IN_SEND : SR_IN_WRITE)) {
		return false;
	}
	if (!(packet->kind & SR_PKT_LAST))
		return packet->payload_len == qp->mtu;
	return packet->payload_len <= qp->mtu &&
	       (packet->payload_len || (packet->kind & SR_PKT_FIRST));
}

/* The answer to an earlier read or atomic, if it is still kept. */
static struct sr_resource *find_resource(struct sr_qp *qp, uint32_t psn)
{
	struct sr_responder *resp = &qp->resp;

	for (uint32_t i = 1; i <= qp->attr.max_dest_rd_atomic && i <= resp->res_head; i++) {
		struct sr_resource *res = resource_at(resp, resp->res_head - i);

		if (sr_psn_diff(psn, res->first_psn) >= 0 && sr_psn_diff(psn, res->last_psn) <= 0)
			return res;
	}
	return NULL;
}

/*
 * Up to where a repeated request may be acknowledged: everything so far, but not past a read or
 * atomic behind it. An acknowledgement that passes one would mean to the requester that its answer
 * is lost, when it may only be on the way.
 */
static uint32_t duplicate_ack_psn(struct sr_qp *qp, uint32_t psn)
{
	struct sr_responder *resp = &qp->resp;
	uint32_t ack = sr_psn_add(resp->epsn, SR_PSN_MASK);

	for (uint32_t i = 1; i <= qp->attr.max_dest_rd_atomic && i <= resp->res_head; i++) {
		struct sr_resource *res = resource_at(resp, resp->res_head - i);

		/* Between the repeated request and now; anything else is from long ago, perhaps
		 * half the number space. */
		if (sr_psn_add(res->first_psn, -psn) >= sr_psn_add(resp->epsn, -psn))
			break;
		ack = sr_psn_add(res->first_psn, SR_PSN_MASK);
	}
	return ack;
}

/*
 * Executed before (9.7.5.1.4): reads are read again, atomics answered from what was stored, the
 * rest acknowledged.
 */
static void handle_duplicate(struct sr_qp *qp, const struct sr_packet *packet)
{
	struct sr_responder *resp = &qp->resp;
	struct sr_resource *res;

	qp->nic->counters.duplicate_request++;
	if (!(packet->kind & (SR_PKT_READ | SR_PKT_ATOMIC))) {
		if (resp->reply == SR_REPLY_NONE)
			owe_reply(qp, SR_REPLY_DUP_ACK, SR_AETH_ACK,
				  duplicate_ack_psn(qp, packet->psn));
		return;
	}
	res = find_resource(qp, packet->psn);
	if (!res || res->atomic != !!(packet->kind & SR_PKT_ATOMIC))
		return;
	if (!res->pending)
		res->again = true;
	if (!res->pending || sr_psn_diff(packet->psn, res->next_psn) < 0)
		res->start_psn = res->next_psn = packet->psn;
	owe_response(qp, res);
}

void sr_responder_receive(struct sr_qp *qp, const struct sr_packet *packet)
{
	struct sr_responder *resp = &qp->resp;
	int32_t ahead = sr_psn_diff(packet->psn, resp->epsn);

	if (qp->state == IBV_QPS_ERR)
		return;
	if (!resp->established) {
		resp->established = true;
		if (qp->state == IBV_QPS_RTR)
			sr_nic_async(qp->nic, IBV_EVENT_COMM_EST, qp->user);
	}
	if (ahead < 0) {
		handle_duplicate(qp, packet);
		return;
	}
	if (ahead > 0) {
		qp->nic->counters.out_of_seq_request++;
		if (!resp->nak_sent) {
			resp->nak_sent = true;
			owe_reply(qp, SR_REPLY_NAK, SR_NAK_SEQUENCE, resp->epsn);
		}
		return;
	}
	resp->nak_sent = false;
	if (resp->reply == SR_REPLY_NAK)
		resp->reply = SR_REPLY_NONE; /* what it would have asked for is here */
	if (!sr_responder_in_order(qp, packet))
		refuse_invalid(qp);
	else if (packet->kind & SR_PKT_SEND)
		receive_send(qp, packet);
	else if (packet->kind & SR_PKT_WRITE)
		receive_write(qp, packet);
	else if (packet->kind & SR_PKT_READ)
		receive_read(qp, packet);
	else
		receive_atomic(qp, packet);
}

bool sr_responder_pending(const struct sr_qp *qp)
{
	return qp->resp.res_pending || qp->resp.reply != SR_REPLY_NONE;
}

/* There is one. */
static struct sr_resource *oldest_pending(struct sr_qp *qp)
{
	struct sr_responder *resp = &qp->resp;

	while (!resource_at(resp, resp->res_oldest)->pending)
		resp->res_oldest++;
	return resource_at(resp, resp->res_oldest);
}

static uint8_t read_opcode(bool first, bool last)
{
	if (first)
		return last ? SR_OP_READ_ONLY : SR_OP_READ_FIRST;
	return last ? SR_OP_READ_LAST : SR_OP_READ_MIDDLE;
}

/* One read response. 0, or -EFAULT when the region is gone since the request was checked. */
static int build_read_response(struct sr_qp *qp, const struct sr_resource *res,
			       struct sr_frame *frame)
{
	uint32_t offset = sr_psn_add(res->next_psn, -res->first_psn) << qp->mtu_shift;
	uint32_t length = res->length - offset < qp->mtu ? res->length - offset : qp->mtu;
	bool first = res->next_psn == res->start_psn, last = res->next_psn == res->last_psn;
	void *at = sr_rc_frame(qp, frame, read_opcode(first, last), res->next_psn);

	if (first || last)
		at = sr_rc_aeth(at, SR_AETH_ACK, res->msn);
	sr_rc_finish(frame, at, length);
	frame->stable = false;
	if (length) {
		char *from = translate_remote(qp, res->rkey, res->va + offset, length,
					      IBV_ACCESS_REMOTE_READ);

		if (!from)
			return -1;
		frame->iov[frame->iov_n++] = (struct iovec) { from, length };
	}
	return 0;
}

static void build_atomic_response(struct sr_qp *qp, const struct sr_resource *res,
				  struct sr_frame *frame)
{
	char *at = sr_rc_frame(qp, frame, SR_OP_ATOMIC_ACK, res->first_psn);
	uint64_t original = htobe64(res->result);

	at = sr_rc_aeth(at, SR_AETH_ACK, res->msn);
	memcpy(at, &original, sizeof(original));
	frame->stable = true;
	sr_rc_finish(frame, at + sizeof(original), 0);
}

/* A read's memory was deregistered under it: the peer gets what a fresh request would get. */
static void read_failed(struct sr_qp *qp, const struct sr_resource *res)
{
	uint32_t psn = res->next_psn;

	for (unsigned i = 0; i < SR_MAX_RD_ATOMIC; i++)
		qp->resp.res[i].pending = false;
	qp->resp.res_pending = 0;
	refuse_access(qp);
	qp->resp.reply_psn = psn;
}

/* One response of the oldest read or atomic that is owed. False when it could not be sent. */
static bool send_response(struct sr_qp *qp)
{
	struct sr_resource *res = oldest_pending(qp);
	struct sr_frame frame;

	if (res->atomic) {
		build_atomic_response(qp, res, &frame);
	} else if (build_read_response(qp, res, &frame)) {
		read_failed(qp, res);
		return false;
	}
	if (!sr_nic_emit(qp->nic, &frame))
		return false;
	if (res->next_psn == res->last_psn) {
		res->pending = false;
		qp->resp.res_pending--;
	}
	res->next_psn = sr_psn_add(res->next_psn, 1);
	return true;
}

static bool send_reply(struct sr_qp *qp)
{
	struct sr_responder *resp = &qp->resp;
	uint32_t psn =
		resp->reply == SR_REPLY_ACK ? sr_psn_add(resp->epsn, SR_PSN_MASK) : resp->reply_psn;
	struct sr_frame frame;
	void *at = sr_rc_frame(qp, &frame, SR_OP_ACK, psn);

	frame.stable = true;
	sr_rc_finish(&frame, sr_rc_aeth(at, resp->syndrome, resp->msn), 0);
	if (!sr_nic_emit(qp->nic, &frame))
		return false;
	resp->reply = SR_REPLY_NONE;
	resp->stream = resp->unanswered > 1;
	resp->unanswered = 0;
	return true;
}

bool sr_responder_acknowledge(struct sr_qp *qp)
{
	if (qp->resp.res_pending) { /* not past the answers to what came before */
		sr_qp_activate(qp);
		sr_qp_owe_nothing(qp);
		return false;
	}
	if (qp->resp.reply != SR_REPLY_NONE && !send_reply(qp))
		return false;
	sr_qp_owe_nothing(qp);
	return true;
}

unsigned sr_responder_transmit(struct sr_qp *qp, unsigned burst)
{
	unsigned n = 0;

	while (n < burst && !qp->nic->wire_full && sr_responder_pending(qp))
		n += qp->resp.res_pending ? send_response(qp) : send_reply(qp);
	return n;
}
