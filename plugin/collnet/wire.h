/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wire.h - what the ranks of a CollNet communicator say to each other over their rails
 *
 * Little-endian, like plugin/channel/wire.h. In NCCL's handle (128 bytes) the core's listen handle
 * comes first; ours follows it.
 */
#ifndef HA_COLLNET_WIRE_H
#define HA_COLLNET_WIRE_H

#include "include/hawser/ina.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HA_COLLNET_MAGIC 0x4e434148u /* "HACN" */
#define HA_COLLNET_VERSION 1
#define HA_COLLNET_HANDLE_AT 96 /* bytes into NCCL's handle */

struct ha_collnet_handle {
	uint32_t magic;
	uint32_t version;
	uint32_t address; /* of this host's backend, host order; 0: there is none */
	uint32_t reserved;
	uint64_t nonce; /* the communicator is known by rank 0's */
};
static_assert(sizeof(struct ha_collnet_handle) == 24, "wire layout");

enum ha_collnet_type {
	/* on every lane, first */
	HA_COLLNET_HELLO = 1, /* id: rank 0's nonce; a: lane; b: version */
	/* control lanes */
	/* id: epoch; a: all operations up to this one have the switch's result, here and at the
	 * ranks counted so far */
	HA_COLLNET_HAVE,
	HA_COLLNET_BREAK, /* id: epoch; I have left the switch's group, do so too */
	/* id: attempt; a: 1 = the payload is a ticket, 0 = there is none to be had */
	HA_COLLNET_OFFER,
	HA_COLLNET_AGREE_JOIN, /* id: attempt; a: 1 = joined; b: the last operation posted */
	/* id: epoch; a: the last operation posted to the switch; b: the last that all ranks have */
	HA_COLLNET_AGREE_BREAK,
	/* id: operation; payload: one struct ha_collnet_vote for each segment, or none: all of
	 * it was mine */
	HA_COLLNET_AGREE_OWN,
	HA_COLLNET_BYE, /* a: the last operation that is done; no more comes from here */
	/* the data lane */
	HA_COLLNET_SUM,  /* id: operation; a: offset into it in bytes; b: whose part it is; hop */
	HA_COLLNET_GIVE, /* id: operation; a: offset; b: the rank whose bytes these are; hop */
	HA_COLLNET_TYPES
};

struct ha_collnet_msg {
	uint32_t magic;
	uint16_t type;
	uint16_t hop; /* how many ranks have handed it on; control: the round, which is the lane */
	uint32_t length; /* of the payload, bytes */
	uint32_t from;   /* rank */
	uint64_t id, a, b;
};
static_assert(sizeof(struct ha_collnet_msg) == 40, "wire layout");

/* What is known of a segment: the lowest rank that has the switch's result at hand, and whether all
 * have (had) it. */
struct ha_collnet_vote {
	uint8_t owner; /* HA_COLLNET_NOBODY */
	uint8_t all;
};
#define HA_COLLNET_NOBODY 255

/* of one operation: its votes fit into a control message */
#define HA_COLLNET_BYTES_MAX (UINT64_C(1) << 30)
#define HA_COLLNET_SEGMENTS_MAX (HA_COLLNET_BYTES_MAX / HA_INA_SEGMENT)
#define HA_COLLNET_CONTROL_SLOT 2048  /* bytes; a multiple of a cache line */
#define HA_COLLNET_PIECE (128u << 10) /* payload of a data message, at most */
static_assert(sizeof(struct ha_collnet_msg) +
			      HA_COLLNET_SEGMENTS_MAX * sizeof(struct ha_collnet_vote) <=
		      HA_COLLNET_CONTROL_SLOT,
	      "the votes on the largest operation fit");
static_assert(sizeof(struct ha_collnet_msg) + HA_INA_TICKET <= HA_COLLNET_CONTROL_SLOT,
	      "a ticket fits");

#endif
