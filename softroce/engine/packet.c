/* SPDX-License-Identifier: BSD-3-Clause */
/* packet.c - the parser: nobody reads a header before it has checked that the packet is long enough for it */
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

/* By opcode; 0 = not known here. */
static const uint16_t kinds[256] = {
	[SR_OP_SEND_FIRST] = REQ | SR_PKT_SEND | FIRST | DATA,
	[SR_OP_SEND_MIDDLE] = REQ | SR_PKT_SEND | DATA,
	[SR_OP_SEND_LAST] = REQ | SR_PKT_SEND | LAST | DATA,
	[SR_OP_SEND_LAST_IMM] = REQ | SR_PKT_SEND | LAST | DATA | SR_PKT_IMM,
	[SR_OP_SEND_ONLY] = REQ | SR_PKT_SEND | ONLY | DATA,
	[SR_OP_SEND_ONLY_IMM] = REQ | SR_PKT_SEND | ONLY | DATA | SR_PKT_IMM,
	[SR_OP_WRITE_FIRST] = REQ | SR_PKT_WRITE | FIRST | DATA,
	[SR_OP_WRITE_MIDDLE] = REQ | SR_PKT_WRITE | DATA,
	[SR_OP_WRITE_LAST] = REQ | SR_PKT_WRITE | LAST | DATA,
	[SR_OP_WRITE_LAST_IMM] = REQ | SR_PKT_WRITE | LAST | DATA | SR_PKT_IMM,
	[SR_OP_WRITE_ONLY] = REQ | SR_PKT_WRITE | ONLY | DATA,
	[SR_OP_WRITE_ONLY_IMM] = REQ | SR_PKT_WRITE | ONLY | DATA | SR_PKT_IMM,
	[SR_OP_READ_REQUEST] = REQ | SR_PKT_READ | ONLY,
	[SR_OP_READ_FIRST] = RSP | SR_PKT_READ | FIRST | DATA | SR_PKT_AETH,
	[SR_OP_READ_MIDDLE] = RSP | SR_PKT_READ | DATA,
	[SR_OP_READ_LAST] = RSP | SR_PKT_READ | LAST | DATA | SR_PKT_AETH,
	[SR_OP_READ_ONLY] = RSP | SR_PKT_READ | ONLY | DATA | SR_PKT_AETH,
	[SR_OP_ACK] = RSP | ONLY | SR_PKT_AETH,
	[SR_OP_ATOMIC_ACK] = RSP | SR_PKT_ATOMIC | ONLY | SR_PKT_AETH,
	[SR_OP_CMP_SWAP] = REQ | SR_PKT_ATOMIC | ONLY,
	[SR_OP_FETCH_ADD] = REQ | SR_PKT_ATOMIC | ONLY,
};

static uint32_t header_length(unsigned kind)
{
	uint32_t len = sizeof(struct sr_bth);

	if (kind & SR_PKT_AETH)
		len += SR_AETH_LEN;
	if (kind & SR_PKT_ATOMIC)
		len += kind & REQ ? sizeof(struct sr_atomiceth) : SR_ATOMICACK_LEN;
	else if ((kind & REQ) && (kind & FIRST) && (kind & (SR_PKT_WRITE | SR_PKT_READ)))
		len += sizeof(struct sr_reth);
	if (kind & SR_PKT_IMM)
		len += SR_IMM_LEN;
	return len;
}

static uint32_t get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return be32toh(v);
}

static uint64_t get64(const uint8_t *p)
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
		packet->msn = get32(p) & 0xffffff;
		p += SR_AETH_LEN;
	}
	if (kind & SR_PKT_ATOMIC) {
		if (kind & REQ) {
			packet->va = get64(p + offsetof(struct sr_atomiceth, va));
			packet->rkey = get32(p + offsetof(struct sr_atomiceth, rkey));
			packet->swap_add = get64(p + offsetof(struct sr_atomiceth, swap_add));
			packet->compare = get64(p + offsetof(struct sr_atomiceth, compare));
			return;
		}
		packet->original = get64(p);
	} else if ((kind & REQ) && (kind & FIRST) && (kind & (SR_PKT_WRITE | SR_PKT_READ))) {
		packet->va = get64(p + offsetof(struct sr_reth, va));
		packet->rkey = get32(p + offsetof(struct sr_reth, rkey));
		packet->length = get32(p + offsetof(struct sr_reth, length));
		p += sizeof(struct sr_reth);
	}
	if (kind & SR_PKT_IMM)
		memcpy(&packet->imm, p, SR_IMM_LEN);
}

int sr_packet_parse(struct sr_packet *packet, const void *data, uint32_t len)
{
	const uint8_t *p = data;
	uint32_t hdr, pad, apsn;
	struct sr_bth bth;

	if (len < sizeof(bth))
		return -EBADMSG;
	memcpy(&bth, p, sizeof(bth));
	packet->kind = kinds[bth.opcode];
	/* The full/limited membership bit of the partition key does not count for a match (10.9.3). */
	if (!packet->kind || (bth.flags & SR_BTH_TVER) || (be16toh(bth.pkey) & 0x7fff) != (SR_PKEY & 0x7fff))
		return -EBADMSG;
	hdr = header_length(packet->kind);
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
