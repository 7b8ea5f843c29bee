/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * packet.c - the parser: nobody reads a header before it has checked that the packet is long enough
 * for it
 */
#include "softroce/engine/packet.h"
#include <errno.h>
#include <stddef.h>
#include <string.h>

#define REQ SR_PKT_REQUEST
#define RSP SR_PKT_RESPONSE
#define FIRST SR_PKT_FIRST
#define LAST SR_PKT_LAST
#define ONLY (SR_PKT_FIRST | SR_PKT_LAST)
#define DATA SR_PKT_PAYLOAD

/* What an opcode means and how long its headers are; kind 0 = not known here. */
struct layout {
	uint16_t kind;
	uint16_t headers;
};

#define BTH sizeof(struct sr_bth)
#define RETH sizeof(struct sr_reth)
#define DETH sizeof(struct sr_deth)
#define IMM(bits) ((bits) & (SR_PKT_IMM | SR_PKT_INV) ? SR_IMM_LEN : 0)
#define SEND(bits)                                                 \
	{                                                          \
		REQ | SR_PKT_SEND | DATA | (bits), BTH + IMM(bits) \
	}
#define DATAGRAM(bits)                                                                  \
	{                                                                               \
		REQ | SR_PKT_SEND | SR_PKT_DETH | DATA | (bits), BTH + DETH + IMM(bits) \
	}
#define UC(op) SR_OP_OF(SR_CLASS_UC, op)
#define UD(op) SR_OP_OF(SR_CLASS_UD, op)
#define WRITE(bits)                                                                             \
	{                                                                                       \
		REQ | SR_PKT_WRITE | DATA | (bits), BTH + ((bits)&FIRST ? RETH : 0) + IMM(bits) \
	}
#define RESPONSE(bits, more)                                           \
	{                                                              \
		RSP | SR_PKT_AETH | (bits), BTH + SR_AETH_LEN + (more) \
	}

static const struct layout layouts[256] = {
	[SR_OP_SEND_FIRST] = SEND(FIRST),
	[SR_OP_SEND_MIDDLE] = SEND(0),
	[SR_OP_SEND_LAST] = SEND(LAST),
	[SR_OP_SEND_LAST_IMM] = SEND(LAST | SR_PKT_IMM),
	[SR_OP_SEND_ONLY] = SEND(ONLY),
	[SR_OP_SEND_ONLY_IMM] = SEND(ONLY | SR_PKT_IMM),
	[SR_OP_WRITE_FIRST] = WRITE(FIRST),
	[SR_OP_WRITE_MIDDLE] = WRITE(0),
	[SR_OP_WRITE_LAST] = WRITE(LAST),
	[SR_OP_WRITE_LAST_IMM] = WRITE(LAST | SR_PKT_IMM),
	[SR_OP_WRITE_ONLY] = WRITE(ONLY),
	[SR_OP_WRITE_ONLY_IMM] = WRITE(ONLY | SR_PKT_IMM),
	[SR_OP_READ_REQUEST] = { REQ | SR_PKT_READ | ONLY, BTH + RETH },
	[SR_OP_READ_FIRST] = RESPONSE(SR_PKT_READ | FIRST | DATA, 0),
	[SR_OP_READ_MIDDLE] = { RSP | SR_PKT_READ | DATA, BTH },
	[SR_OP_READ_LAST] = RESPONSE(SR_PKT_READ | LAST | DATA, 0),
	[SR_OP_READ_ONLY] = RESPONSE(SR_PKT_READ | ONLY | DATA, 0),
	[SR_OP_ACK] = RESPONSE(ONLY, 0),
	[SR_OP_ATOMIC_ACK] = RESPONSE(SR_PKT_ATOMIC | ONLY, SR_ATOMICACK_LEN),
	[SR_OP_CMP_SWAP] = { REQ | SR_PKT_ATOMIC | ONLY, BTH + sizeof(struct sr_atomiceth) },
	[SR_OP_FETCH_ADD] = { REQ | SR_PKT_ATOMIC | ONLY, BTH + sizeof(struct sr_atomiceth) },
	[SR_OP_SEND_LAST_INV] = SEND(LAST | SR_PKT_INV),
	[SR_OP_SEND_ONLY_INV] = SEND(ONLY | SR_PKT_INV),
	[UC(SR_OP_SEND_FIRST)] = SEND(FIRST),
	[UC(SR_OP_SEND_MIDDLE)] = SEND(0),
	[UC(SR_OP_SEND_LAST)] = SEND(LAST),
	[UC(SR_OP_SEND_LAST_IMM)] = SEND(LAST | SR_PKT_IMM),
	[UC(SR_OP_SEND_ONLY)] = SEND(ONLY),
	[UC(SR_OP_SEND_ONLY_IMM)] = SEND(ONLY | SR_PKT_IMM),
	[UC(SR_OP_WRITE_FIRST)] = WRITE(FIRST),
	[UC(SR_OP_WRITE_MIDDLE)] = WRITE(0),
	[UC(SR_OP_WRITE_LAST)] = WRITE(LAST),
	[UC(SR_OP_WRITE_LAST_IMM)] = WRITE(LAST | SR_PKT_IMM),
	[UC(SR_OP_WRITE_ONLY)] = WRITE(ONLY),
	[UC(SR_OP_WRITE_ONLY_IMM)] = WRITE(ONLY | SR_PKT_IMM),
	[UD(SR_OP_SEND_ONLY)] = DATAGRAM(ONLY),
	[UD(SR_OP_SEND_ONLY_IMM)] = DATAGRAM(ONLY | SR_PKT_IMM),
};

static uint32_t get_be32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return be32toh(v);
}

static uint64_t get_be64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return be64toh(v);
}

/* Reads what follows the BTH; the length was checked. */
static void read_extended(struct sr_packet *packet, const uint8_t *p)
{
	unsigned kind = packet->kind;

	if (kind & SR_PKT_AETH) {
		packet->syndrome = p[0];
		packet->msn = get_be32(p) & 0xffffff;
		p += SR_AETH_LEN;
	}
	if (kind & SR_PKT_ATOMIC) {
		if (kind & REQ) {
			packet->va = get_be64(p + offsetof(struct sr_atomiceth, va));
			packet->rkey = get_be32(p + offsetof(struct sr_atomiceth, rkey));
			packet->swap_add = get_be64(p + offsetof(struct sr_atomiceth, swap_add));
			packet->compare = get_be64(p + offsetof(struct sr_atomiceth, compare));
			return;
		}
		packet->original = get_be64(p);
	} else if (kind & SR_PKT_DETH) {
		packet->qkey = get_be32(p + offsetof(struct sr_deth, qkey));
		packet->src_qp = get_be32(p + offsetof(struct sr_deth, src_qp)) & 0xffffff;
		p += sizeof(struct sr_deth);
	} else if ((kind & REQ) && (kind & FIRST) && (kind & (SR_PKT_WRITE | SR_PKT_READ))) {
		packet->va = get_be64(p + offsetof(struct sr_reth, va));
		packet->rkey = get_be32(p + offsetof(struct sr_reth, rkey));
		packet->length = get_be32(p + offsetof(struct sr_reth, length));
		p += sizeof(struct sr_reth);
	}
	if (kind & SR_PKT_IMM)
		memcpy(&packet->imm, p, SR_IMM_LEN);
	else if (kind & SR_PKT_INV)
		packet->imm = get_be32(p);
}

int sr_packet_parse(struct sr_packet *packet, const void *data, uint32_t len)
{
	const uint8_t *p = data;
	uint32_t hdr, pad, apsn;
	struct sr_bth bth;

	if (len < sizeof(bth))
		return -EBADMSG;
	memcpy(&bth, p, sizeof(bth));
	packet->kind = layouts[bth.opcode].kind;
	/*
	 * The full/limited membership bit of the partition key does not count for a match (10.9.3).
	 */
	if (!packet->kind || (bth.flags & SR_BTH_TVER) ||
	    (be16toh(bth.pkey) & 0x7fff) != (SR_PKEY & 0x7fff))
		return -EBADMSG;
	hdr = layouts[bth.opcode].headers;
	pad = (bth.flags >> SR_BTH_PAD_SHIFT) & 3;
	if (len < hdr + pad || (len & 3))
		return -EBADMSG;
	packet->payload = p + hdr;
	packet->payload_len = len - hdr - pad;
	if (!(packet->kind & DATA) && (packet->payload_len || pad))
		return -EBADMSG;
	apsn = be32toh(bth.apsn);
	packet->opcode = bth.opcode;
	packet->solicited = bth.flags & SR_BTH_SE;
	packet->ack_request = apsn & SR_BTH_ACKREQ;
	packet->qpn = be32toh(bth.qpn) & 0xffffff;
	packet->psn = apsn & 0xffffff;
	read_extended(packet, p + sizeof(bth));
	return 0;
}
