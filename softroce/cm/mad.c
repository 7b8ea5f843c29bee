/* SPDX-License-Identifier: BSD-3-Clause */
/* mad.c - one table says where each number lies, for both directions; see mad.h */
#include "softroce/cm/mad.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#define HEADER 24u /* common MAD header; offsets below are behind it */
#define CLASS_CM 7
#define CLASS_VERSION 2
#define METHOD_SEND 3

struct field {
	uint8_t type;
	uint16_t bit; /* from the start of the data, high bits first */
	uint8_t bits;
	uint16_t member;
};

#define FIELD(type, byte, shift, bits, name)                                           \
	{                                                                              \
		SR_MAD_##type, (byte)*8 + (shift), bits, offsetof(struct sr_mad, name) \
	}

static const struct field fields[] = {
	FIELD(REQ, 0, 0, 32, local_id),
	FIELD(REQ, 8, 0, 64, service),
	FIELD(REQ, 16, 0, 64, guid),
	FIELD(REQ, 28, 0, 32, qkey),
	FIELD(REQ, 32, 0, 24, qpn),
	FIELD(REQ, 35, 0, 8, responder_resources),
	FIELD(REQ, 39, 0, 8, initiator_depth),
	FIELD(REQ, 43, 0, 5, timing.remote_timeout),
	FIELD(REQ, 43, 5, 2, transport),
	FIELD(REQ, 43, 7, 1, flow_control),
	FIELD(REQ, 44, 0, 24, psn),
	FIELD(REQ, 47, 0, 5, timing.local_timeout),
	FIELD(REQ, 47, 5, 3, retry_count),
	FIELD(REQ, 48, 0, 16, path.pkey),
	FIELD(REQ, 50, 0, 4, path.mtu),
	FIELD(REQ, 50, 5, 3, rnr_retry),
	FIELD(REQ, 51, 0, 4, timing.max_retries),
	FIELD(REQ, 51, 4, 1, srq),
	FIELD(REQ, 91, 2, 6, path.rate),
	FIELD(REQ, 92, 0, 8, path.tclass),
	FIELD(REQ, 93, 0, 8, path.hops),
	FIELD(REQ, 94, 4, 1, path.subnet_local),
	FIELD(REQ, 95, 0, 5, ack_timeout),
	FIELD(MRA, 0, 0, 32, local_id),
	FIELD(MRA, 4, 0, 32, remote_id),
	FIELD(MRA, 8, 0, 2, about),
	FIELD(MRA, 9, 0, 5, timing.local_timeout),
	FIELD(REJ, 0, 0, 32, local_id),
	FIELD(REJ, 4, 0, 32, remote_id),
	FIELD(REJ, 8, 0, 2, about),
	FIELD(REJ, 10, 0, 16, reason),
	FIELD(REP, 0, 0, 32, local_id),
	FIELD(REP, 4, 0, 32, remote_id),
	FIELD(REP, 8, 0, 32, qkey),
	FIELD(REP, 12, 0, 24, qpn),
	FIELD(REP, 20, 0, 24, psn),
	FIELD(REP, 24, 0, 8, responder_resources),
	FIELD(REP, 25, 0, 8, initiator_depth),
	FIELD(REP, 26, 0, 5, ack_timeout),
	FIELD(REP, 26, 7, 1, flow_control),
	FIELD(REP, 27, 0, 3, rnr_retry),
	FIELD(REP, 27, 3, 1, srq),
	FIELD(REP, 28, 0, 64, guid),
	FIELD(RTU, 0, 0, 32, local_id),
	FIELD(RTU, 4, 0, 32, remote_id),
	FIELD(DREQ, 0, 0, 32, local_id),
	FIELD(DREQ, 4, 0, 32, remote_id),
	FIELD(DREQ, 8, 0, 24, qpn),
	FIELD(DREP, 0, 0, 32, local_id),
	FIELD(DREP, 4, 0, 32, remote_id),
	FIELD(SIDR_REQ, 0, 0, 32, local_id),
	FIELD(SIDR_REQ, 4, 0, 16, path.pkey),
	FIELD(SIDR_REQ, 8, 0, 64, service),
	FIELD(SIDR_REP, 0, 0, 32, remote_id),
	FIELD(SIDR_REP, 4, 0, 8, status),
	FIELD(SIDR_REP, 8, 0, 24, qpn),
	FIELD(SIDR_REP, 12, 0, 64, service),
	FIELD(SIDR_REP, 20, 0, 32, qkey),
};

#define N_FIELDS (sizeof(fields) / sizeof(fields[0]))

/* Private data: from here to the end of the 232 bytes, or as long as it says. */
static const struct {
	uint8_t at, len;
} rooms[] = {
	/* NOLINTNEXTLINE(misc-redundant-expression): as the others */
	[SR_MAD_REQ - SR_MAD_REQ] = { 140, SR_MAD_REQ_DATA },
	[SR_MAD_MRA - SR_MAD_REQ] = { 10, 222 },
	[SR_MAD_REJ - SR_MAD_REQ] = { 84, 148 },
	[SR_MAD_REP - SR_MAD_REQ] = { 36, 196 },
	[SR_MAD_RTU - SR_MAD_REQ] = { 8, 224 },
	[SR_MAD_DREQ - SR_MAD_REQ] = { 12, 220 },
	[SR_MAD_DREP - SR_MAD_REQ] = { 8, 224 },
	[SR_MAD_SIDR_REQ - SR_MAD_REQ] = { 16, 216 },
	[SR_MAD_SIDR_REP - SR_MAD_REQ] = { 96, 136 },
};

static uint64_t bits_get(const uint8_t *data, unsigned bit, unsigned n)
{
	uint64_t value = 0;

	for (unsigned i = bit; i < bit + n; i++)
		value = value << 1 | (data[i / 8] >> (7 - i % 8) & 1);
	return value;
}

static void bits_put(uint8_t *data, unsigned bit, unsigned n, uint64_t value)
{
	for (unsigned i = bit + n; i-- > bit; value >>= 1)
		data[i / 8] = (uint8_t)((data[i / 8] & ~(1u << (7 - i % 8))) |
					(value & 1) << (7 - i % 8));
}

unsigned sr_mad_room(enum sr_mad_type type)
{
	return type >= SR_MAD_REQ && type <= SR_MAD_SIDR_REP ? rooms[type - SR_MAD_REQ].len : 0;
}

void sr_mad_encode(const struct sr_mad *mad, uint8_t out[SR_MAD_LEN])
{
	uint8_t *data = out + HEADER;

	memset(out, 0, SR_MAD_LEN);
	out[0] = 1;
	out[1] = CLASS_CM;
	out[2] = CLASS_VERSION;
	out[3] = METHOD_SEND;
	bits_put(out, 8 * 8, 64, mad->tid);
	bits_put(out, 16 * 8, 16, mad->type);
	for (unsigned i = 0; i < N_FIELDS; i++)
		if (fields[i].type == mad->type)
			bits_put(data, fields[i].bit, fields[i].bits,
				 *(const uint64_t *)((const char *)mad + fields[i].member));
	if (mad->type == SR_MAD_REQ) {
		bits_put(data, 52 * 8, 32, 0xffffffff); /* local identifiers, which RoCE has not */
		memcpy(data + 56, mad->path.sgid, 16);
		memcpy(data + 72, mad->path.dgid, 16);
	}
	memcpy(data + rooms[mad->type - SR_MAD_REQ].at, mad->data,
	       rooms[mad->type - SR_MAD_REQ].len);
}

int sr_mad_decode(struct sr_mad *mad, const uint8_t *in, uint32_t len)
{
	const uint8_t *data = in + HEADER;

	memset(mad, 0, sizeof(*mad));
	if (len < SR_MAD_LEN || in[0] != 1 || in[1] != CLASS_CM || in[2] != CLASS_VERSION ||
	    in[3] != METHOD_SEND)
		return -EBADMSG;
	mad->tid = bits_get(in, 8 * 8, 64);
	mad->type = (enum sr_mad_type)bits_get(in, 16 * 8, 16);
	mad->data_len = sr_mad_room(mad->type);
	if (!mad->data_len)
		return -EBADMSG;
	for (unsigned i = 0; i < N_FIELDS; i++)
		if (fields[i].type == mad->type)
			*(uint64_t *)(void *)((char *)mad + fields[i].member) =
				bits_get(data, fields[i].bit, fields[i].bits);
	if (mad->type == SR_MAD_REQ) {
		memcpy(mad->path.sgid, data + 56, 16);
		memcpy(mad->path.dgid, data + 72, 16);
	}
	memcpy(mad->data, data + rooms[mad->type - SR_MAD_REQ].at, mad->data_len);
	return 0;
}
