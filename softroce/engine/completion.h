/* SPDX-License-Identifier: BSD-3-Clause */
/* completion.h - from a finished work request to an entry in a completion queue */
#ifndef SOFTROCE_ENGINE_COMPLETION_H
#define SOFTROCE_ENGINE_COMPLETION_H

#include <infiniband/verbs.h>
#include <stdbool.h>

struct sr_packet;
struct sr_qp;

/* The oldest send is done. Without an entry when it succeeded and nobody asked for one. */
void sr_complete_send(struct sr_qp *qp, enum ibv_wc_status status);

/* What a receive's completion says besides its work request. */
struct sr_received {
	enum ibv_wc_opcode opcode;
	uint32_t byte_len;
	unsigned flags; /* enum ibv_wc_flags */
	bool solicited;
	__be32 imm;      /* or the key that was invalidated */
	uint32_t src_qp; /* of a datagram; a connection knows its peer */
	uint8_t sl;
};

/*
 * Takes the next receive for the message that begins; false when none is posted. It becomes
 * qp->resp.rwqe.
 */
bool sr_receive_take(struct sr_qp *qp);
/* The receive that was taken is done. */
void sr_complete_receive(struct sr_qp *qp, enum ibv_wc_status status,
			 const struct sr_received *what);
/* So did a whole message, whose last packet this is. */
void sr_complete_message(struct sr_qp *qp, const struct sr_packet *packet,
			 enum ibv_wc_opcode opcode, uint32_t length);
/* Every send, then every receive, that is still posted completes as flushed. */
void sr_flush_sends(struct sr_qp *qp);
void sr_flush_receives(struct sr_qp *qp);

#endif
