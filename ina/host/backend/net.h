/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net.h - where a backend's packets go: a table, so that the same workers run on DPDK, on a plain
 * packet socket, and on nothing
 *
 *   net_packet.c    AF_PACKET sockets: any interface of the kernel's, no package
 *   net_dpdk.c      a port of DPDK's (ina/frame/port)
 *   net_loopback.c  no network: the slot core answers as if this rank were all ranks
 *                   (NETCCL_PACKET_LOOPBACK)
 *
 * Each worker has a queue; a queue is called by its worker's thread alone. What comes into it are
 * this worker's frames (by DSCP), and maybe others.
 */
#ifndef INA_BACKEND_NET_H
#define INA_BACKEND_NET_H

#include "ina/frame/frame.h"

#define HA_NET_BURST 64

struct ha_net;

struct ha_net_packet {
	const uint8_t *bytes;
	uint32_t len;
};

struct ha_net_ops {
	const char *name;
	/* From the worker's thread, before and after all else; may be NULL. */
	void (*begin)(struct ha_net *net, unsigned worker);
	void (*end)(struct ha_net *net, unsigned worker);
	/* At most n packets, good until the next receive. */
	unsigned (*receive)(struct ha_net *net, unsigned worker, struct ha_net_packet *packet,
			    unsigned n);
	/* The frame's words are good until it returns. What cannot be sent is lost. */
	void (*send)(struct ha_net *net, unsigned worker, const struct ina_frame *frame);
	/* What was sent goes now. */
	void (*flush)(struct ha_net *net, unsigned worker);
	/* Readable when something has come; -1: there is no such thing, look from time to time. */
	int (*fd)(struct ha_net *net, unsigned worker);
	/*
	 * The link-layer address that packets to `addr` go to. May wait for some seconds. From any
	 * one thread. 0; or a negative errno and why.
	 */
	int (*neighbour)(struct ha_net *net, uint32_t addr, uint8_t mac[6], char *why, size_t size);
	/* Some times a second, from control's thread; may be NULL. */
	void (*tick)(struct ha_net *net);
	/* Packets lost at the card or on the way to it. Any thread. */
	uint64_t (*lost)(struct ha_net *net);
	void (*close)(struct ha_net *net);
};

struct ha_net {
	const struct ha_net_ops *ops;
	unsigned workers;
	uint32_t addr; /* IPv4, host byte order */
	uint8_t mac[6];
	int node;        /* the card's NUMA node, -1: not known */
	bool loopback;   /* answers come from here: no controller, no switch */
	char device[64]; /* for people */
};

/* Each: NULL, and why. */
struct ha_net *ha_net_loopback_open(unsigned workers, uint32_t addr, char *why, size_t size);
/* Such a group has so many ranks; 0: it is over. */
void ha_net_loopback_group(struct ha_net *net, uint8_t group, unsigned ranks);
/* The interface that has addr; ifname: that one, where several have; NULL: any. */
struct ha_net *ha_net_packet_open(unsigned workers, uint32_t addr, const char *ifname, char *why,
				  size_t size);

static inline void ha_net_close(struct ha_net *net)
{
	net->ops->close(net);
}

#endif
