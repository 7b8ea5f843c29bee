/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wire.h - a frame's bytes, inline: what frame.c and the hot path of a switch
 * (ina/switch/switchd/aggregate.c) are made of
 *
 * For everybody else there is frame.h.
 */
#ifndef INA_WIRE_H
#define INA_WIRE_H

#include "ina/frame/bytes.h"
#include "ina/frame/frame.h"
#include "ina/frame/ip.h"

INA_WIRE size_t ina_wire_bytes(const struct ina_frame *f)
{
	return INA_WIRE_AT + ina_wire_header(f->extended) + (f->words ? INA_PAYLOAD_BYTES : 0);
}

/* ---- decode ---- */

/*
 * Is it a frame with words and nothing behind them, as nearly all are, and nothing wrong with it?
 * Few looks, and one branch.
 */
INA_WIRE bool ina_wire_is_plain(const uint8_t *b, size_t len)
{
	uint64_t middle; /* length, identification, fragment, time to live, protocol */
	uint32_t type;   /* and version, header length, TOS */
	size_t with;

	if (len < INA_WIRE_AT)
		return false;
	type = ina_get32(b + 12);
	memcpy(&middle, b + 16, sizeof(middle));
	middle = __builtin_bswap64(middle);
	with = INA_WIRE_IP_AT + INA_IP_BYTES + INA_PAYLOAD_BYTES +
	       ina_wire_header((uint8_t)middle == INA_PROTOCOL_EXTENDED);
	return (type >> 8 == (INA_WIRE_IPV4 << 8 | INA_WIRE_IHL)) &
	       ((uint8_t)(middle - INA_PROTOCOL_EXTENDED) < 2) & !!(middle & 0xff00) &
	       ((middle >> 16 & 0xffff) == INA_WIRE_DF) & (middle >> 48 == with - INA_WIRE_IP_AT) &
	       (len == with) & ina_wire_checks(b + INA_WIRE_IP_AT);
}

_Static_assert(INA_PROTOCOL_OLD == INA_PROTOCOL_EXTENDED + 1, "compared as one range");

INA_WIRE enum ina_fault ina_wire_decode_ip(const uint8_t *b, size_t len, struct ina_frame *f,
					   bool *words)
{
	const uint8_t *ip = b + INA_WIRE_IP_AT;
	enum ina_fault fault;

	*words = ina_wire_is_plain(b, len);
	if (__builtin_expect(!*words, 0)) {
		fault = ina_wire_ip_fault(b, len);
		if (fault)
			return fault;
		*words = ina_get16(ip + 2) !=
			 INA_IP_BYTES + ina_wire_header(ip[9] == INA_PROTOCOL_EXTENDED);
	}
	ina_copy_mac(f->dst_mac, b);
	ina_copy_mac(f->src_mac, b + 6);
	f->extended = ip[9] == INA_PROTOCOL_EXTENDED;
	f->worker = ip[1] >> 2;
	f->ecn = ip[1] & 3;
	f->src = ina_get32(ip + 12);
	f->dst = ina_get32(ip + 16);
	return INA_FAULT_NONE;
}

INA_WIRE enum ina_fault ina_wire_decode_extension(const uint8_t *at, struct ina_frame *f,
						  bool words)
{
	if (at[0] != INA_VERSION)
		return INA_FAULT_VERSION;
	if (at[3])
		return INA_FAULT_FLAGS;
	f->flags = at[1];
	f->exponent = at[2];
	f->epoch = ina_get32(at + 4);
	return ina_frame_flags_fault(f->flags, f->exponent, words);
}

INA_WIRE enum ina_fault ina_wire_decode(const void *bytes, size_t len, struct ina_frame *f)
{
	const uint8_t *b = bytes, *at = b + INA_WIRE_AT;
	enum ina_fault fault;
	bool words;

	fault = ina_wire_decode_ip(b, len, f, &words);
	if (fault)
		return fault;
	f->flags = f->exponent = 0;
	f->epoch = 0;
	if (f->extended) {
		fault = ina_wire_decode_extension(at, f, words);
		if (fault)
			return fault;
		at += INA_EXTENSION_BYTES;
	}
	f->coll = at[0];
	f->group = at[1];
	f->rank = at[2];
	f->root = at[3];
	f->agg_addr = ina_get16(at + 4);
	f->psn = ina_get32(at + 6);
	f->words = words ? at + INA_HEADER_BYTES : NULL;
	if (f->coll < INA_ALL_REDUCE || f->coll >= INA_COLLS)
		return INA_FAULT_COLLECTIVE;
	if (!f->group || f->rank >= INA_RANKS_MAX || f->root >= INA_RANKS_MAX)
		return INA_FAULT_RANGE;
	return INA_FAULT_NONE;
}

/* ---- encode ---- */

/*
 * A head as it is for every rank that it goes to: words of eight bytes as they will lie, without
 * what is the rank's alone. Nothing but numbers, which a compiler keeps in registers.
 */
struct ina_wire_head {
	/*
	 * two bytes of the source's Ethernet address above six of the destination's; four, type,
	 * version and TOS above
	 */
	uint64_t src_first, src_rest;
	uint64_t total; /* to protocol */
	uint64_t src;   /* below a checksum, above half of the destination */
	/* below the other half: the extension's beginning; nothing in the old frame */
	uint64_t middle;
	/* collective to slot, and before it the end of the extension */
	uint64_t who;
	uint64_t sum; /* of the header as far as it is known, for the checksum */
	uint32_t psn;
	bool extended;
};

/* f's destination, rank and ECN are left out. */
INA_WIRE struct ina_wire_head ina_wire_make(const struct ina_frame *f)
{
	uint64_t total = ina_wire_bytes(f) - INA_WIRE_IP_AT, tos = (uint64_t)f->worker << 2,
		 src_addr = f->src;
	uint64_t rest = INA_WIRE_TTL << 8 |
			(f->extended ? INA_PROTOCOL_EXTENDED : INA_PROTOCOL_OLD),
		 type = (uint64_t)INA_WIRE_IPV4 << 16 | INA_WIRE_IHL << 8 | tos;
	uint64_t who = (uint64_t)f->coll << 40 | (uint64_t)f->group << 32 |
		       (uint64_t)f->root << 16 | f->agg_addr;
	uint64_t src = ina_get_mac(f->src_mac);

	return (struct ina_wire_head) {
		.src_first = src << 48,
		.src_rest = src >> 16 | (uint64_t)__builtin_bswap32((uint32_t)type) << 32,
		/* identification 0: never fragmented (RFC 6864) */
		.total = __builtin_bswap64(total << 48 | INA_WIRE_DF << 16 | rest),
		.src = src_addr << 16,
		.middle = f->extended ? (uint64_t)INA_VERSION << 40 | (uint64_t)f->flags << 32 |
						(uint64_t)f->exponent << 24 | f->epoch >> 16
				      : who,
		.who = f->extended ? (uint64_t)f->epoch << 48 | who : 0,
		.psn = __builtin_bswap32(f->psn),
		.sum = (INA_WIRE_IHL << 8 | tos) + total + INA_WIRE_DF + rest + (src_addr >> 16) +
		       (src_addr & 0xffff),
		.extended = f->extended,
	};
}

INA_WIRE void ina_put64(uint8_t *at, uint64_t v)
{
	v = __builtin_bswap64(v);
	memcpy(at, &v, sizeof(v));
}

/* RFC 1071, of a header as it is made, without reading again what was just written. */
INA_WIRE uint64_t ina_wire_checksum(const struct ina_wire_head *h, uint64_t dst, uint64_t ecn)
{
	uint64_t sum = h->sum + ecn + (dst >> 16) + (dst & 0xffff);

	sum = (sum & 0xffff) + (sum >> 16);
	return ~((sum & 0xffff) + (sum >> 16)) & 0xffff;
}

/*
 * Eight bytes at a time: made of what lies in registers, and read by whoever copies them without
 * waiting for smaller ones. mac: in the lower 48 bits, as its bytes lie.
 * checksum false: IPv4's is left 0. How long it is.
 */
INA_WIRE size_t ina_wire_write(const struct ina_wire_head *h, uint64_t mac, uint64_t dst,
			       uint64_t rank, uint64_t ecn, bool checksum, void *bytes)
{
	uint64_t first = (mac & 0xffffffffffff) | h->src_first, second = h->src_rest | ecn << 56,
		 who = rank << 24;
	uint8_t *b = bytes;

	memcpy(b, &first, sizeof(first));
	memcpy(b + 8, &second, sizeof(second));
	memcpy(b + 16, &h->total, sizeof(h->total));
	ina_put64(b + 24,
		  (checksum ? ina_wire_checksum(h, dst, ecn) << 48 : 0) | h->src | dst >> 16);
	if (!h->extended) {
		ina_put64(b + 32, dst << 48 | h->middle | who);
		memcpy(b + 40, &h->psn, sizeof(h->psn));
		return INA_WIRE_AT + INA_HEADER_BYTES;
	}
	ina_put64(b + 32, dst << 48 | h->middle);
	ina_put64(b + 40, h->who | who);
	memcpy(b + 48, &h->psn, sizeof(h->psn));
	return INA_WIRE_AT + INA_EXTENSION_BYTES + INA_HEADER_BYTES;
}

INA_WIRE size_t ina_wire_encode_head(const struct ina_frame *f, bool checksum, void *bytes)
{
	struct ina_wire_head h = ina_wire_make(f);

	return ina_wire_write(&h, ina_get_mac(f->dst_mac), f->dst, f->rank, f->ecn, checksum,
			      bytes);
}

#endif
