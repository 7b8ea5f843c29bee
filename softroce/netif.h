/* SPDX-License-Identifier: BSD-3-Clause */
/* netif.h - the network interface under a device: its addresses, MTU, speed and whether it runs */
#ifndef SOFTROCE_NETIF_H
#define SOFTROCE_NETIF_H

#include "softroce/devices.h"

#include <infiniband/verbs.h>
#include <stdbool.h>

#define SR_NETIF_GIDS 2

struct sr_netif {
	unsigned ifindex; /* 0: there is no such interface or address now */
	char ifname[IFNAMSIZ];
	bool up; /* administratively up and with a carrier */
	bool loopback;
	unsigned mtu;   /* bytes */
	unsigned speed; /* Mbit/s; 0 unknown */
	/* IPv4 or global IPv6 address, then link-local; all-zero = none */
	uint8_t gid[SR_NETIF_GIDS][16];
};

/*
 * Look up the interface of a device now. For an address, and for the address a subnet device has
 * taken (`taken`), the interface is the one that owns it. 0, -ENODEV when there is none
 * (link->ifindex is 0 then),
 * -errno.
 */
int sr_netif_read(struct sr_netif *link, const struct sr_device_spec *spec,
		  const uint8_t taken[16]);

/*
 * The InfiniBand MTU that fits into the interface's (RoCEv2 headers take at most 108 bytes with
 * IPv6).
 */
enum ibv_mtu sr_netif_ib_mtu(const struct sr_netif *link);
/*
 * Width and speed codes of struct ibv_port_attr (IBTA PortInfo) nearest below this speed, Mbit/s;
 * 0: unknown.
 */
void sr_netif_ib_speed(unsigned interface_mbps, uint8_t *width, uint8_t *speed);

/*
 * A descriptor that becomes readable when an interface or an address of the machine changes;
 * -errno.
 */
int sr_netif_watch_open(void);
/* Read what the descriptor holds; true when anything was there. */
bool sr_netif_watch_drain(int fd);

#endif
