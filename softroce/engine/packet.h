/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * packet.h - what a RoCEv2 packet looks like from the BTH on (IBTA vol. 1, chapter 9), and the one
 * parser
 */
#ifndef SOFTROCE_ENGINE_PACKET_H
#define SOFTROCE_ENGINE_PACKET_H

#include <assert.h>
#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct sr_path;

#define SR_PKEY 0xffffu /* default partition, full member */

/* Base transport header, 9.2. */
struct sr_bth {
	uint8_t opcode;
	uint8_t flags; /* solicited event, MigReq, pad count, version */
	uint16_t pkey;
	uint32_t qpn;  /* reserved 8 (FECN, BECN), destination queue pair 24 */
	uint32_t apsn; /* AckReq 1, reserved 7, sequence number 24 */
};
#define SR_BTH_SE 0x80u
#define SR_BTH_MIGREQ 0x40u
#define SR_BTH_PAD_SHIFT 4
#define SR_BTH_TVER 0x0fu
#define SR_BTH_ACKREQ 0x80000000u

/* RDMA extended transport header, 9.3.3: its 64-bit field is unaligned behind the BTH. */
struct sr_reth {
	uint64_t va;
	uint32_t rkey;
	uint32_t length;
} __attribute__((packed));

/* Atomic extended transport header, 9.3.4. */
struct sr_atomiceth {
	uint64_t va;
	uint32_t rkey;
	uint64_t swap_add;
	uint64_t compare;
} __attribute__((packed));

/* Datagram extended transport header, 9.3.2. */
struct sr_deth {
	uint32_t qkey;
	uint32_t src_qp; /* reserved 8, source queue pair 24 */
};

static_assert(sizeof(struct sr_bth) == 12, "IBTA 9.2");
static_assert(sizeof(struct sr_deth) == 8, "IBTA 9.3.2");
static_assert(sizeof(struct sr_reth) == 16, "IBTA 9.3.3");
static_assert(sizeof(struct sr_atomiceth) == 28, "IBTA 9.3.4");

#define SR_AETH_LEN 4u      /* syndrome 8, message sequence number 24; 9.3.5 */
#define SR_ATOMICACK_LEN 8u /* 9.3.6 */
#define SR_IMM_LEN 4u       /* immediate data, 9.3.7; or the key to invalidate, 9.3.8 */

/* AETH syndromes, table 44 and 45. */
#define SR_AETH_ACK 0x1fu /* acknowledged, no end-to-end credits */
#define SR_AETH_RNR 0x20u /* | timer code */
#define SR_AETH_KIND 0x60u
#define SR_NAK_SEQUENCE 0x60u
#define SR_NAK_INVALID 0x61u
#define SR_NAK_ACCESS 0x62u
#define SR_NAK_OPERATION 0x63u

/* Opcodes of the reliable connection class, table 38. Unreliable classes use the same low bits. */
enum sr_opcode {
	SR_OP_SEND_FIRST = 0x00,
	SR_OP_SEND_MIDDLE = 0x01,
	SR_OP_SEND_LAST = 0x02,
	SR_OP_SEND_LAST_IMM = 0x03,
	SR_OP_SEND_ONLY = 0x04,
	SR_OP_SEND_ONLY_IMM = 0x05,
	SR_OP_WRITE_FIRST = 0x06,
	SR_OP_WRITE_MIDDLE = 0x07,
	SR_OP_WRITE_LAST = 0x08,
	SR_OP_WRITE_LAST_IMM = 0x09,
	SR_OP_WRITE_ONLY = 0x0a,
	SR_OP_WRITE_ONLY_IMM = 0x0b,
	SR_OP_READ_REQUEST = 0x0c,
	SR_OP_READ_FIRST = 0x0d,
	SR_OP_READ_MIDDLE = 0x0e,
	SR_OP_READ_LAST = 0x0f,
	SR_OP_READ_ONLY = 0x10,
	SR_OP_ACK = 0x11,
	SR_OP_ATOMIC_ACK = 0x12,
	SR_OP_CMP_SWAP = 0x13,
	SR_OP_FETCH_ADD = 0x14,
	SR_OP_SEND_LAST_INV = 0x16,
	SR_OP_SEND_ONLY_INV = 0x17,
};
#define SR_OPCODE_CLASS_SHIFT 5
#define SR_CLASS_RC 0u
#define SR_CLASS_UC 1u
#define SR_CLASS_UD 3u
#define SR_OP_OF(class, op) ((class) << SR_OPCODE_CLASS_SHIFT | (op))

/* What an opcode means. */
#define SR_PKT_REQUEST 0x001u
#define SR_PKT_RESPONSE 0x002u
#define SR_PKT_FIRST 0x004u /* begins a message */
#define SR_PKT_LAST 0x008u  /* ends one; FIRST and LAST together: "only" */
#define SR_PKT_SEND 0x010u
#define SR_PKT_WRITE 0x020u
#define SR_PKT_READ 0x040u
#define SR_PKT_ATOMIC 0x080u
#define SR_PKT_IMM 0x100u
#define SR_PKT_AETH 0x200u
#define SR_PKT_PAYLOAD 0x400u
#define SR_PKT_DETH 0x800u
#define SR_PKT_INV 0x1000u /* a key to invalidate where others have immediate data */

/* A parsed packet, numbers in host order. Fields of headers that are not there are undefined. */
struct sr_packet {
	const struct sr_path *path; /* of its arrival */
	uint16_t kind;              /* SR_PKT_* */
	uint8_t opcode;
	uint8_t syndrome;
	bool solicited, ack_request;
	uint32_t qpn, psn, msn;
	__extension__ union {
		struct {
			uint64_t va;
			uint32_t rkey;
			uint32_t length; /* RETH */
			uint64_t swap_add, compare;
		};
		uint64_t original; /* AtomicAckETH */
		struct {
			uint32_t qkey, src_qp; /* DETH */
		};
	};
	/* network order, as completions have it; with SR_PKT_INV a key in host order */
	uint32_t imm;
	const uint8_t *payload;
	uint32_t payload_len;
};

/* Checks version, partition, opcode and length, then reads the headers. 0 or -EBADMSG. */
int sr_packet_parse(struct sr_packet *packet, const void *data, uint32_t len);

/* Of the form ::ffff:a.b.c.d. */
static inline bool sr_gid_is_ipv4(const uint8_t gid[16])
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid, prefix, sizeof(prefix));
}

#endif
