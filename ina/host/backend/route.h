/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * route.h - what the kernel knows of the way to an address: the next hop, and its link-layer
 * address
 */
#ifndef INA_BACKEND_ROUTE_H
#define INA_BACKEND_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The next hop from interface ifindex to addr (host byte order): a gateway's address, or addr
 * itself where it is on the link or nobody knows.
 */
uint32_t ha_route_hop(uint32_t addr, int ifindex);
/* The kernel's neighbour table has it. */
bool ha_route_neighbour(uint32_t hop, int ifindex, uint8_t mac[6]);

#endif
