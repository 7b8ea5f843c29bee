/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * qp.h - queue pairs: the state every transport service shares, and the two halves of a connection
 */
#ifndef SOFTROCE_ENGINE_QP_H
#define SOFTROCE_ENGINE_QP_H

#include "softroce/engine/cq.h"
#include "softroce/engine/limits.h"
#include "softroce/engine/packet.h"
#include "softroce/engine/sge.h"
#include "softroce/engine/srq.h"

struct sr_service;

/* work without a packet (a window) that was done and waits for its turn to complete */
#define SR_SEND_DONE 0x80u

/* A posted send. Its packets' sequence numbers are given out when it is posted. */
struct sr_swqe {
	uint64_t wr_id;
	uint64_t remote_addr;
	uint64_t swap_add; /* swap operand, or what to add */
	uint64_t compare;
	uint32_t rkey;
	__be32 imm;
	uint32_t length;
	uint32_t first_psn, last_psn;
	uint8_t opcode; /* enum ibv_wr_opcode */
	uint8_t flags;  /* enum ibv_send_flags, SIGNALED also by sq_sig_all; SR_SEND_DONE */
	uint8_t num_sge;
	/* enum ibv_wc_status: a local error found while sending; reported when it is the oldest */
	uint8_t status;
	struct ibv_sge sge[]; /* or the inline bytes */
};

/* Indices run freely; tail <= cur <= head. */
struct sr_sq {
	char *ring;
	uint32_t stride, mask;
	uint32_t head;       /* next to be posted */
	uint32_t cur;        /* being sent */
	uint32_t tail;       /* oldest not completed */
	uint32_t retired;    /* places given back by polling */
	uint32_t unreported; /* completed without a completion since the last one */
};

/* The sending half: what was sent and what of it is acknowledged. */
struct sr_requester {
	uint32_t post_psn; /* first of the next work request to be posted */
	uint32_t next_psn; /* next to be sent */
	uint32_t una_psn;  /* oldest not acknowledged */
	uint32_t max_psn;  /* one behind the newest ever sent: no acknowledgement can be as far */
	struct sr_sge_pos send_pos;  /* next byte of `cur` */
	struct sr_sge_pos place_pos; /* next byte a read response fills in `tail` */
	/* Reads and atomics on the way, by the last PSN of each: a ring of max_rd_atomic. */
	uint32_t rd_last[SR_MAX_RD_ATOMIC];
	uint32_t rd_head, rd_tail;
	uint32_t implied_psn;  /* una_psn of the last implied NAK, so that a gap is answered once */
	bool implied;          /* implied_psn counts */
	bool rnr_wait;         /* the peer asked to wait; the timer ends it */
	bool drained_reported; /* SQ_DRAINED was raised for this SQD */
	uint8_t retry_left, rnr_left;
};

enum sr_reply { SR_REPLY_NONE, SR_REPLY_ACK, SR_REPLY_DUP_ACK, SR_REPLY_NAK, SR_REPLY_FATAL_NAK };

/*
 * A read or atomic that was executed or is being answered; kept for duplicates until
 * max_dest_rd_atomic more came.
 */
struct sr_resource {
	uint32_t index; /* as the responder counts them */
	uint32_t first_psn, last_psn;
	/* first response of this answer: a duplicate request may begin in the middle */
	uint32_t start_psn;
	uint32_t next_psn; /* next response to be sent; behind last_psn = all sent */
	uint32_t msn;
	bool atomic, pending;
	bool again; /* was answered before */
	uint32_t rkey;
	uint32_t length;
	uint64_t va;     /* read: address of the first byte */
	uint64_t result; /* atomic: what was there before */
};

enum sr_incoming { SR_IN_NONE, SR_IN_SEND, SR_IN_WRITE };

/* The receiving half. */
struct sr_responder {
	uint32_t epsn;    /* expected */
	uint32_t msn;     /* messages completed, 24 bits */
	bool nak_sent;    /* what follows is out of sequence until epsn arrives: silence */
	bool established; /* COMM_EST was raised */
	enum sr_reply reply;
	uint32_t unanswered; /* packets executed since the last one was sent */
	bool stream;         /* the last one was for several packets */
	uint8_t syndrome;
	uint32_t reply_psn; /* for NAKs and DUP_ACK */
	/* The message being received. */
	enum sr_incoming incoming;
	struct sr_rwqe *rwqe; /* taken for it, or NULL */
	struct sr_sge_pos pos;
	uint32_t received; /* bytes so far */
	uint32_t rkey;
	uint64_t va;
	uint32_t expected; /* RETH length */
	/* resources taken ever; the newest max_dest_rd_atomic of them are kept */
	uint32_t res_head;
	uint32_t res_pending; /* those with responses to be sent */
	uint32_t res_oldest;  /* no older one than this index is pending */
	struct sr_resource res[SR_MAX_RD_ATOMIC];
};

struct sr_qp {
	struct sr_nic *nic;
	struct sr_pd *pd;
	struct sr_pd *pd_recv; /* of the receives: the shared receive queue's, or pd */
	const struct sr_service *service;
	struct sr_cq *send_cq, *recv_cq;
	struct sr_srq *srq;
	void *user;
	uint32_t qpn;
	enum ibv_qp_type type;
	enum ibv_qp_state state;
	bool sig_all;
	bool active, owing; /* on the NIC's lists of these names */
	uint8_t mtu_shift;
	uint32_t mtu;
	uint32_t max_inflight;
	uint32_t read_packets; /* longest read request, in response packets */
	/* an acknowledgement is asked for where the PSN + 1 is zero under this mask */
	uint32_t ack_mask;
	TAILQ_ENTRY(sr_qp) active_link, owing_link, all_link;
	struct sr_path path;
	struct ibv_qp_cap cap;
	struct ibv_qp_attr attr;
	struct sr_timer timer; /* retransmission, or the end of an RNR wait */
	struct sr_sq sq;
	struct sr_rq rq;
	struct sr_requester req;
	struct sr_responder resp;
	struct sr_rwqe *taken; /* copy of the shared receive in use */
};

/* Where a datagram goes: copied when it is posted, behind its buffers. */
struct sr_ud_dest {
	struct sr_path path;
	uint32_t qpn, qkey;
};

static inline struct sr_ud_dest *sr_ud_dest(const struct sr_sq *sq, const struct sr_swqe *wqe)
{
	return (struct sr_ud_dest *)(void *)((char *)(uintptr_t)wqe + sq->stride -
					     sizeof(struct sr_ud_dest));
}

static inline struct sr_swqe *sr_sq_at(const struct sr_sq *sq, uint32_t index)
{
	return (struct sr_swqe *)(sq->ring + (size_t)(index & sq->mask) * sq->stride);
}

/* Puts the queue pair in the line of those that have something to send. */
static inline void sr_qp_activate(struct sr_qp *qp)
{
	if (!qp->active) {
		qp->active = true;
		TAILQ_INSERT_TAIL(&qp->nic->active, qp, active_link);
	}
}

/* Puts it in the line of those that owe an acknowledgement. */
static inline void sr_qp_owe(struct sr_qp *qp)
{
	if (!qp->owing) {
		qp->owing = true;
		TAILQ_INSERT_TAIL(&qp->nic->owing, qp, owing_link);
	}
}

/* Takes it out of that line, if it is in it. */
static inline void sr_qp_owe_nothing(struct sr_qp *qp)
{
	if (qp->owing) {
		qp->owing = false;
		TAILQ_REMOVE(&qp->nic->owing, qp, owing_link);
	}
}

#endif
