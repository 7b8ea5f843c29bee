/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/frame.h"

#include "ina/bytes.h"

#define ETHERTYPE_IPV4 0x0800
#define ETHERNET_MIN 60 /* what is shorter comes padded */
#define FCS 4		/* some NICs leave it on */
#define IP_VERSION_IHL 0x45
#define IP_DF 0x4000
#define IP_TTL 64
#define IP_AT INA_ETHERNET_BYTES
#define INA_AT (IP_AT + INA_IP_BYTES)

const char *ina_fault_name(enum ina_fault fault, const char **help)
{
	static const char *const table[INA_FAULTS][2] = {
#define X(id, name, help) { name, help },
		INA_FAULT_LIST(X)
#undef X
	};
	bool known = (unsigned)fault < INA_FAULTS;

	if (help)
		*help = known ? table[fault][1] : "?";
	return known ? table[fault][0] : "?";
}

/* RFC 1071, of the 20 bytes of a header without options. 0 over a sound one, whose checksum is among them. */
static uint16_t ip_checksum(const uint8_t *ip)
{
	uint32_t sum = 0;

	for (int i = 0; i < INA_IP_BYTES; i += 2)
		sum += ina_get16(ip + i);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static size_t header_bytes(bool extended)
{
	return INA_HEADER_BYTES + (extended ? INA_EXTENSION_BYTES : 0);
}

size_t ina_frame_bytes(const struct ina_frame *f)
{
	return INA_AT + header_bytes(f->extended) + (f->words ? INA_PAYLOAD_BYTES : 0);
}

/* ---- decode ---- */

/* Everything up to the end of the IPv4 header. */
static enum ina_fault decode_ip(const uint8_t *b, size_t len, struct ina_frame *f, bool *words)
{
	const uint8_t *ip = b + IP_AT;
	size_t total, bare;

	if (len < IP_AT)
		return INA_FAULT_SHORT;
	if (ina_get16(b + 12) != ETHERTYPE_IPV4)
		return INA_FAULT_NOT_OURS;
	if (len < INA_AT)
		return INA_FAULT_SHORT;
	if (ip[9] != INA_PROTOCOL_OLD && ip[9] != INA_PROTOCOL_EXTENDED)
		return INA_FAULT_NOT_OURS;
	if (ip[0] != IP_VERSION_IHL || !ip[8])
		return INA_FAULT_IP;
	if (ip_checksum(ip))
		return INA_FAULT_CHECKSUM;
	if (ina_get16(ip + 6) != IP_DF)
		return INA_FAULT_FRAGMENT;
	f->extended = ip[9] == INA_PROTOCOL_EXTENDED;
	total = ina_get16(ip + 2);
	bare = INA_IP_BYTES + header_bytes(f->extended);
	if (total > len - IP_AT || (total != bare && total != bare + INA_PAYLOAD_BYTES))
		return INA_FAULT_LENGTH;
	if (len > IP_AT + total + FCS && len > ETHERNET_MIN + FCS)
		return INA_FAULT_LENGTH;
	*words = total != bare;
	memcpy(f->dst_mac, b, 6);
	memcpy(f->src_mac, b + 6, 6);
	f->worker = ip[1] >> 2;
	f->ecn = ip[1] & 3;
	f->src = ina_get32(ip + 12);
	f->dst = ina_get32(ip + 16);
	return INA_FAULT_NONE;
}

/* Words go with data only; of the bare kinds there is one at a time, and each goes in its own direction. */
static enum ina_fault check_flags(uint8_t flags, uint8_t exponent, bool words)
{
	uint8_t bare = flags & INA_F_BARE;
	bool answer = flags & INA_F_ANSWER;

	if (flags & ~INA_F_KNOWN || bare & (bare - 1))
		return INA_FAULT_FLAGS;
	if ((bare == INA_F_PROBE && answer) || (bare & (INA_F_HELD | INA_F_NEED) && !answer))
		return INA_FAULT_FLAGS;
	if (bare && words)
		return INA_FAULT_WORDS;
	if (!words && (exponent || flags & (INA_F_OVERFLOW | INA_F_NONFINITE)))
		return INA_FAULT_FLAGS;
	return INA_FAULT_NONE;
}

static enum ina_fault decode_extension(const uint8_t *at, struct ina_frame *f, bool words)
{
	if (at[0] != INA_VERSION)
		return INA_FAULT_VERSION;
	if (at[3])
		return INA_FAULT_FLAGS;
	f->flags = at[1];
	f->exponent = at[2];
	f->epoch = ina_get32(at + 4);
	return check_flags(f->flags, f->exponent, words);
}

enum ina_fault ina_frame_decode(const void *bytes, size_t len, struct ina_frame *f)
{
	const uint8_t *b = bytes, *at = b + INA_AT;
	enum ina_fault fault;
	bool words;

	fault = decode_ip(b, len, f, &words);
	if (fault)
		return fault;
	f->flags = f->exponent = 0;
	f->epoch = 0;
	if (f->extended) {
		fault = decode_extension(at, f, words);
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

static void encode_ip(const struct ina_frame *f, uint8_t *b, size_t total)
{
	uint8_t *ip = b + IP_AT;

	memcpy(b, f->dst_mac, 6);
	memcpy(b + 6, f->src_mac, 6);
	ina_put16(b + 12, ETHERTYPE_IPV4);
	ip[0] = IP_VERSION_IHL;
	ip[1] = (uint8_t)(f->worker << 2 | f->ecn);
	ina_put16(ip + 2, (uint16_t)total);
	ina_put16(ip + 4, 0); /* never fragmented: RFC 6864 */
	ina_put16(ip + 6, IP_DF);
	ip[8] = IP_TTL;
	ip[9] = f->extended ? INA_PROTOCOL_EXTENDED : INA_PROTOCOL_OLD;
	ina_put16(ip + 10, 0);
	ina_put32(ip + 12, f->src);
	ina_put32(ip + 16, f->dst);
	ina_put16(ip + 10, ip_checksum(ip));
}

size_t ina_frame_encode(const struct ina_frame *f, void *bytes)
{
	size_t len = ina_frame_bytes(f);
	uint8_t *b = bytes, *at = b + INA_AT;

	encode_ip(f, b, len - IP_AT);
	if (f->extended) {
		at[0] = INA_VERSION;
		at[1] = f->flags;
		at[2] = f->exponent;
		at[3] = 0;
		ina_put32(at + 4, f->epoch);
		at += INA_EXTENSION_BYTES;
	}
	at[0] = f->coll;
	at[1] = f->group;
	at[2] = f->rank;
	at[3] = f->root;
	ina_put16(at + 4, f->agg_addr);
	ina_put32(at + 6, f->psn);
	if (f->words)
		memcpy(at + INA_HEADER_BYTES, f->words, INA_PAYLOAD_BYTES);
	return len;
}
