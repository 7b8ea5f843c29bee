/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * neighbour.h - where a host is, by the kernel's tables: route, neighbour, and behind a bridge its
 * forwarding table
 */
#ifndef INA_NEIGHBOUR_H
#define INA_NEIGHBOUR_H

#include <stdbool.h>
#include <stdint.h>

struct ina_neighbour {
	int ifindex;    /* the port it is behind; of a bridge the bridge's port */
	uint8_t mac[6]; /* of the next hop */
};

/*
 * addr: host byte order. 0; -EAGAIN: the kernel asks for its MAC address (ARP) or the bridge has
 * not seen it yet, ask again soon;
 * -ENETUNREACH: there is no route; -EADDRINUSE: it is an address of this machine; other errnos of
 * netlink.
 */
int ina_neighbour_find(uint32_t addr, struct ina_neighbour *n);
/*
 * The next hop from interface ifindex to addr (host byte order): a gateway's address, or addr
 * itself where it is on the link or nobody knows.
 */
uint32_t ina_neighbour_hop(uint32_t addr, int ifindex);
/* The kernel's neighbour table has it. */
bool ina_neighbour_mac(uint32_t hop, int ifindex, uint8_t mac[6]);

#endif
