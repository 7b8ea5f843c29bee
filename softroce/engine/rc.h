/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rc.h - the reliable connection: requester (sends requests), completer (their answers), responder
 * (the peer's requests)
 */
#ifndef SOFTROCE_ENGINE_RC_H
#define SOFTROCE_ENGINE_RC_H

#include "softroce/engine/qp.h"

/* ---- requester.c ---- */
int sr_requester_post(struct sr_qp *qp, const struct ibv_send_wr *wr, struct sr_swqe *wqe);
unsigned sr_requester_transmit(struct sr_qp *qp, unsigned burst);
bool sr_requester_pending(const struct sr_qp *qp);
/* One packet of a SEND or WRITE. 0, or -EFAULT when a local buffer may not be read. */
int sr_requester_build_data(struct sr_qp *qp, const struct sr_swqe *wqe, struct sr_frame *frame);
/* Starts over at the oldest unacknowledged packet. */
void sr_requester_rewind(struct sr_qp *qp);
/* Asks again, and now for an acknowledgement, because nothing may follow that would ask. */
void sr_requester_drain(struct sr_qp *qp);
/* The oldest send failed: it completes with this status, the rest is flushed. */
void sr_requester_fail(struct sr_qp *qp, enum ibv_wc_status status);
/* Reports a drained send queue once per SQD state. */
void sr_requester_check_drained(struct sr_qp *qp);
/* Completes the work without packets that is done and has become the oldest. */
void sr_requester_complete_locals(struct sr_qp *qp);
/* Whether the timer should run, and until when. */
void sr_requester_start_timer(struct sr_qp *qp);

static inline bool sr_wr_is_read(const struct sr_swqe *wqe)
{
	return wqe->opcode == IBV_WR_RDMA_READ;
}

/*
 * Reads and atomics need an answer of their own; an acknowledgement of what follows them is none.
 */
static inline bool sr_wr_needs_response(const struct sr_swqe *wqe)
{
	return wqe->opcode >= IBV_WR_RDMA_READ && wqe->opcode <= IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* Done here, without a packet. */
static inline bool sr_wr_is_local(const struct sr_swqe *wqe)
{
	return wqe->opcode == IBV_WR_BIND_MW || wqe->opcode == IBV_WR_LOCAL_INV;
}

static inline struct sr_sge_list sr_swqe_list(const struct sr_swqe *wqe)
{
	return (struct sr_sge_list) { wqe->sge, wqe->num_sge };
}

/* ---- completer.c ---- */
void sr_completer_receive(struct sr_qp *qp, const struct sr_packet *packet);
void sr_completer_expired(struct sr_qp *qp);

/* ---- responder.c ---- */
void sr_responder_receive(struct sr_qp *qp, const struct sr_packet *packet);
/* The acknowledgement that a queue pair in the NIC's line `owing` owes. True: it leaves the line,
 * and a packet has gone or none was due any more. */
bool sr_responder_acknowledge(struct sr_qp *qp);
unsigned sr_responder_transmit(struct sr_qp *qp, unsigned burst);
bool sr_responder_pending(const struct sr_qp *qp);
/* Whether the message being received and the packet fit together, and the packet is as long as its
 * opcode says (IBTA vol. 1, 9.7.4.1.2). */
bool sr_responder_in_order(const struct sr_qp *qp, const struct sr_packet *packet);

/* Begins a frame of this queue pair: BTH without payload or pad. Returns the place behind it. */
void *sr_rc_frame(const struct sr_qp *qp, struct sr_frame *frame, uint8_t opcode, uint32_t psn);
/* Writes an AETH, returns the place behind it. */
void *sr_rc_aeth(void *at, uint8_t syndrome, uint32_t msn);
/* Says where the headers end, and pads the payload to a multiple of four. */
void sr_rc_finish(struct sr_frame *frame, const void *end, uint32_t payload_len);

#endif
