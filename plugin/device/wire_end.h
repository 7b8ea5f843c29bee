/* SPDX-License-Identifier: BSD-3-Clause */
/* wire_end.h - what one end of a connection writes of its ports and rails for the other: a part of
 * plugin/channel/wire.h */
#ifndef HA_DEVICE_WIRE_END_H
#define HA_DEVICE_WIRE_END_H

#include "rdma/topo/leaf.h"

#include <assert.h>
#include <stdint.h>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	      "hawser's wire structures are little-endian in memory");

/* An IP address and TCP port: family 4 or 6, IPv4 in the first four bytes of ip. */
struct ha_wire_addr {
	uint8_t family;
	uint8_t reserved;
	uint16_t port;
	uint32_t scope;
	uint8_t ip[16];
};
static_assert(sizeof(struct ha_wire_addr) == 24, "wire layout");

/* What one end of a queue pair must know of the other. */
struct ha_wire_qp {
	uint32_t qpn;
	uint32_t psn;
	uint8_t gid[16];
	uint16_t lid;
	uint8_t mtu;        /* enum ibv_mtu */
	uint8_t link_layer; /* IBV_LINK_LAYER_* */
	uint32_t ring_rkey; /* key of the ring memory on this rail's device */
};
static_assert(sizeof(struct ha_wire_qp) == 32, "wire layout");

/* Options of enhanced connection establishment (IBTA 12.11): the connector offers, the listener
 * answers. 0 = none. */
struct ha_wire_ece {
	uint32_t vendor_id, options, comp_mask;
};
static_assert(sizeof(struct ha_wire_ece) == 12, "wire layout");

struct ha_wire_rail {
	struct ha_wire_qp qp;
	uint64_t guid;
	char name[24]; /* device name and port, for the peer's log lines */
	struct ha_wire_ece ece;
	/*
	 * RAIL_ANSWER: changes whenever this end forgets the keys of the rail's device
	 * (HA_FLAG_MOVES). With HA_FLAG_PAIRS that count is the low byte, and above it, in all
	 * messages, is the device's place in the fabric.
	 */
	uint32_t keys;
};
static_assert(sizeof(struct ha_wire_rail) == 80, "wire layout");

/*
 * A place is the number of rdma/topo/leaf.h: equal ones are one leaf switch. A switch goes only to
 * a peer that knows of switches (HA_FLAG_SWITCHES). HELLO leaves before that is settled: in its
 * `keys` a switch is its hash alone, in the bits that with no rail mean "not known" to an old peer.
 */
static inline uint32_t ha_wire_place(uint32_t keys)
{
	return keys >> 20 ? keys >> 8 : 0;
}
static inline uint32_t ha_wire_hello_keys(uint32_t place)
{
	return place & HA_LEAF_SWITCH ? place & HA_LEAF_HASH : place << 8;
}
/* `keys` of HELLO as other messages have them. */
static inline uint32_t ha_wire_keys_of_hello(uint32_t keys)
{
	return keys && !(keys >> 20) ? (HA_LEAF_SWITCH | keys) << 8 : keys;
}

#endif
