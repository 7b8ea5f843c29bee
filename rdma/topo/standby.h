/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standby.h - which other port takes over when a port fails
 *
 * For each port an order of all others that may stand in for it, best first. It is a pure function
 * of the list: the result follows from PCI paths, GUIDs, names, addresses, speeds and which ports
 * are up, never from the order in which the library lists devices; so every process of a host, and
 * `ha topo`, comes to the same one.
 *
 * Who may: every port that is up and of the same link layer. How good, as a class (smaller is
 * better), from four questions in this order of weight:
 *
 * - apart: another card; the other port of the same card (the card takes both with it); the same
 *   wire: a function of the same PCI physical function and port, so that the cable takes both
 *   with it
 * - network: the peer that the primary reaches is reached too: RoCE addresses of one kind (IPv4,
 *   IPv6, link-local) and RoCE version; on InfiniBand the same subnet prefix. A port without an
 *   address yet counts as yes
 * - speed: at least half of the primary's
 * - distance: enum ha_pci_distance, near to far
 *
 * Within a class the load is spread, because what fails together must not land on one card: ports
 * pair up, so that the first standby of A is B and that of B is A, and who is left without a
 * partner takes the card that is the first choice of the fewest. A card takes part in ceil(ports /
 * other cards) pairs of a class at most. The second choices are dealt in the same way, then the
 * third. Of equals the one whose address shares most leading bytes (of its network) is taken, then
 * the same function and port number, then the first in PCI order and name.
 *
 * A flap moves few: pairs are first made over all known ports, up or not; only ports whose partner
 * is down look for another one, and they find the old one again when it comes back. A port that is
 * down keeps its standby.
 */
#ifndef HA_TOPO_STANDBY_H
#define HA_TOPO_STANDBY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rdma/topo/device.h"

enum ha_standby_apart {
	HA_STANDBY_OTHER_CARD, /* or another software NIC */
	HA_STANDBY_OTHER_PORT, /* of the same card */
	HA_STANDBY_SAME_WIRE,
};

struct ha_standby_class {
	enum ha_standby_apart apart;
	bool other_network;
	bool slower; /* less than half the speed */
	enum ha_pci_distance distance;
};

/* What `b` would be to `a`, two different ports (< topo->nports). False: it may not, its link layer
 * is another one. */
bool ha_standby_classify(const struct ha_topo *topo, int a, int b, struct ha_standby_class *class);
/* The class as one number, smaller is better. */
uint8_t ha_standby_rank(const struct ha_standby_class *class);
/* "same switch", "across the system, less than half the speed" and so on. Returns buf. */
const char *ha_standby_class_text(const struct ha_standby_class *class, char *buf, size_t len);

/* The orders of all ports; 16 KiB. Make it anew when ha_topo_refresh says that a port came up or
 * went down. */
struct ha_standby {
	int nports;
	unsigned char count[HA_TOPO_PORTS_MAX]; /* standbys of each port; 0: it has none */
	/* their indices in topo->devices, best first */
	unsigned char order[HA_TOPO_PORTS_MAX][HA_TOPO_PORTS_MAX];
};

/* Reads the list only. 0; -ENOMEM. */
int ha_standby_compute(const struct ha_topo *topo, struct ha_standby *standby);

/* Do they hang on one leaf switch, as far as it is known (leaf.h)? */
bool ha_standby_shares_leaf(const struct ha_topo_device *a, const struct ha_topo_device *b);

/*
 * As a connection takes them whose two ends are on one leaf switch (plugin/failover/choice.c): in
 * each port's order those that share its leaf switch come last, else nothing changes.
 */
void ha_standby_avoid_leaf(const struct ha_topo *topo, struct ha_standby *standby);

/* The first standby of `a` is `b`, and the other way round. */
bool ha_standby_is_pair(const struct ha_standby *standby, int a, int b);

/*
 * For one port alone (dev < topo->nports): up to `max` indices into order[], best first. They may
 * lie beyond topo->ndevices: ports that came up after discovery are standbys though they are not
 * reported. The orders are kept until the list changes: each connection asks, and to make them
 * takes 60,000 instructions. Only the one who refreshes the list may ask. How many; -EINVAL: no
 * such port; -ENOMEM.
 */
int ha_topo_standby(struct ha_topo *topo, int dev, int order[], int max);

#endif
