/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * frame.h - one packet of in-network aggregation: the old frame (NetCCL's, IP protocol 254) and the
 * extended one (253)
 *
 * Both are Ethernet and IPv4 (no tag, no options, DF), a header, and 64 big-endian 32-bit words or
 * none. The byte tables are in docs/ina.md. A frame from a rank is a contribution, one from the
 * switch an answer; of the old kind only the addresses show which.
 */
#ifndef INA_FRAME_H
#define INA_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INA_PROTOCOL_OLD 254
#define INA_PROTOCOL_EXTENDED 253
#define INA_VERSION 1 /* of the extended frame */

#define INA_WORDS 64
#define INA_PAYLOAD_BYTES (4 * INA_WORDS)
#define INA_ETHERNET_BYTES 14
#define INA_IP_BYTES 20
#define INA_HEADER_BYTES 10   /* both kinds */
#define INA_EXTENSION_BYTES 8 /* before it, of the extended one */
#define INA_FRAME_MAX                                                                 \
	(INA_ETHERNET_BYTES + INA_IP_BYTES + INA_EXTENSION_BYTES + INA_HEADER_BYTES + \
	 INA_PAYLOAD_BYTES)

#define INA_RANKS_MAX 32
#define INA_WORKERS_MAX 64 /* the DSCP has six bits */

enum ina_coll {
	INA_ALL_REDUCE = 1,
	INA_REDUCE,         /* the sum is root's */
	INA_BROADCAST,      /* root's words are everybody's */
	INA_REDUCE_SCATTER, /* as reduce; each packet names the rank that its words are for */
	INA_ALL_GATHER,     /* as broadcast; each packet names the rank that its words are from */
	INA_COLLS
};

enum ina_ecn { INA_NOT_ECT, INA_ECT1, INA_ECT0, INA_CE }; /* RFC 3168 */

/* Of the extended frame. */
#define INA_F_ANSWER 0x01   /* from the switch */
#define INA_F_OVERFLOW 0x02 /* some word was saturated: the sum is not exact */
/* some contribution held an infinity or a NaN: the block has no value */
#define INA_F_NONFINITE 0x04
#define INA_F_ABORT 0x08 /* the group's incarnation of this epoch is over */
#define INA_F_PROBE 0x10 /* to the switch: what have you of this packet? */
#define INA_F_HELD 0x20  /* answer: your contribution, and not yet all others' */
#define INA_F_NEED 0x40  /* answer: not your contribution; send it again */
#define INA_F_KNOWN 0x7f

/* What cannot stand in one frame with words. */
#define INA_F_BARE (INA_F_ABORT | INA_F_PROBE | INA_F_HELD | INA_F_NEED)

/* a word m of a block with exponent field e is m * 2^(e - 149); 2^-149 is the least float32 */
#define INA_EXPONENT_BIAS 149

struct ina_frame {
	uint8_t dst_mac[6], src_mac[6];
	uint32_t dst, src; /* IPv4 */
	uint8_t worker;    /* DSCP */
	uint8_t ecn;       /* enum ina_ecn */
	bool extended;
	/* Of both kinds. */
	uint8_t coll; /* enum ina_coll */
	uint8_t group, rank, root;
	uint16_t agg_addr; /* slot of the switch */
	uint32_t psn;
	/* Of the extended one; 0 in the old one. */
	uint8_t flags;    /* INA_F_* */
	uint8_t exponent; /* biased */
	uint32_t epoch;
	/*
	 * INA_PAYLOAD_BYTES as on the wire, inside the frame that was decoded; NULL = header only
	 */
	const uint8_t *words;
};

/* What stands beside a block's words. */
struct ina_block {
	uint8_t exponent; /* biased */
	uint8_t flags;    /* INA_F_OVERFLOW, INA_F_NONFINITE */
};

/* Why something that came is not taken. Each has a counter where frames are received. */
#define INA_FAULT_LIST(X)                                                                  \
	X(NONE, "none", "sound")                                                           \
	X(NOT_OURS, "not-ours", "another Ethernet type or IP protocol: for others")        \
	X(SHORT, "short", "ends inside its headers")                                       \
	X(IP, "ip", "not IPv4 without options, or its time to live is over")               \
	X(CHECKSUM, "checksum", "the IPv4 header checksum is wrong")                       \
	X(FRAGMENT, "fragment", "a fragment, or DF is not set")                            \
	X(LENGTH, "length", "the IPv4 length fits no frame, or not the Ethernet frame's")  \
	X(VERSION, "version", "an extended frame of a version that is not supported here") \
	X(COLLECTIVE, "collective", "no such collective")                                  \
	X(RANGE, "range", "group 0, or rank or root is not below 32")                      \
	X(FLAGS, "flags",                                                                  \
	  "flags that are unknown or exclude each other, or a reserved byte is not 0")     \
	X(WORDS, "words", "words where there can be none")

enum ina_fault {
#define X(id, name, help) INA_FAULT_##id,
	INA_FAULT_LIST(X)
#undef X
		INA_FAULTS
};

/* "checksum"; *help, if not NULL, is a sentence about it. */
const char *ina_fault_name(enum ina_fault fault, const char **help);

/*
 * Looks at no byte beyond len; len may pass the frame's end by Ethernet's padding (to 60) and check
 * sequence. *f is whole only with INA_FAULT_NONE.
 */
enum ina_fault ina_frame_decode(const void *bytes, size_t len, struct ina_frame *f);
/*
 * Writes the frame and returns its bytes, at most INA_FRAME_MAX. f must be one that decode would
 * take: it is not checked.
 */
size_t ina_frame_encode(const struct ina_frame *f, void *bytes);

/*
 * Of an extended frame's flags. Words go with data only; of the bare kinds there is one at a time,
 * and each goes in its own direction.
 */
static inline enum ina_fault ina_frame_flags_fault(uint8_t flags, uint8_t exponent, bool words)
{
	uint8_t bare = flags & INA_F_BARE;
	bool answer = flags & INA_F_ANSWER;

	if (words && !(flags & ~(INA_F_ANSWER | INA_F_OVERFLOW | INA_F_NONFINITE))) /* nearly all */
		return INA_FAULT_NONE;
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

/*
 * Does this rank bring words, and does it get some? Every rank sends every packet, with words or
 * without.
 */
static inline bool ina_coll_brings(uint8_t coll, uint8_t root, uint8_t rank)
{
	return (coll != INA_BROADCAST && coll != INA_ALL_GATHER) || rank == root;
}

static inline bool ina_coll_gets(uint8_t coll, uint8_t root, uint8_t rank)
{
	switch (coll) {
	case INA_REDUCE:
	case INA_REDUCE_SCATTER:
		return rank == root;
	case INA_BROADCAST:
	case INA_ALL_GATHER:
		return rank != root;
	}
	return true;
}

#endif
