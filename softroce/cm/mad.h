/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mad.h - the messages of the connection manager (IBTA vol. 1, 12.6 and 12.11): 256 bytes, sent to
 * queue pair 1
 */
#ifndef SOFTROCE_CM_MAD_H
#define SOFTROCE_CM_MAD_H

#include <stdint.h>

#define SR_MAD_LEN 256
#define SR_MAD_QKEY 0x80010000u /* of queue pair 1 (IBTA vol. 1, 10.2.5) */
#define SR_MAD_DATA_MAX 224     /* private data of the message that carries most */
#define SR_MAD_REQ_DATA 92

/* Attribute identifiers; also which message an MRA or REJ is about. */
enum sr_mad_type {
	SR_MAD_REQ = 0x10,
	SR_MAD_MRA,
	SR_MAD_REJ,
	SR_MAD_REP,
	SR_MAD_RTU,
	SR_MAD_DREQ,
	SR_MAD_DREP,
	SR_MAD_SIDR_REQ,
	SR_MAD_SIDR_REP,
};

/* Reasons of a REJ (12.6.7.2) and statuses of a SIDR_REP (12.11.2.1) in use. */
enum {
	SR_REJ_TIMEOUT = 4,
	SR_REJ_NO_SERVICE = 8,
	SR_REJ_CONSUMER = 28,
	SR_SIDR_UNSUPPORTED = 1,
	SR_SIDR_REJECT = 2,
};

/* How long an answer may take, 4.096 us * 2^n, and how often the connection manager asks; of REQ.
 */
struct sr_mad_timing {
	uint64_t remote_timeout, local_timeout, max_retries; /* local: of MRA, too */
};

/* The way to the peer; of REQ, and the key of SIDR_REQ. */
struct sr_mad_path {
	uint64_t pkey, mtu, tclass, hops, subnet_local, rate;
	uint8_t sgid[16], dgid[16];
};

/* Numbers in the processor's order. A message has those of its type; the others are 0. */
struct sr_mad {
	enum sr_mad_type type;
	uint64_t tid;
	/* the sender's and the receiver's name for the connection; of SIDR the request */
	uint64_t local_id, remote_id;
	uint64_t service, guid, qkey, qpn, psn;
	uint64_t responder_resources, initiator_depth;
	struct sr_mad_timing timing;
	uint64_t transport; /* 0: RC */
	uint64_t flow_control, retry_count, rnr_retry, srq, ack_timeout;
	struct sr_mad_path path;
	uint64_t about, reason; /* MRA and REJ */
	uint64_t status;        /* SIDR_REP */
	uint8_t data[SR_MAD_DATA_MAX];
	unsigned data_len; /* what the type has room for */
};

/* Bytes of private data in messages of this type; 0: no such type. */
unsigned sr_mad_room(enum sr_mad_type type);
void sr_mad_encode(const struct sr_mad *mad, uint8_t out[SR_MAD_LEN]);
/* 0, or -EBADMSG: no message of the connection manager. */
int sr_mad_decode(struct sr_mad *mad, const uint8_t *in, uint32_t len);

#endif
