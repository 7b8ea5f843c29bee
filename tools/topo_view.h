/* SPDX-License-Identifier: BSD-3-Clause */
/* topo_view.h - what `ha topo` shows of a discovered machine, apart from how it was discovered */
#ifndef HAWSER_TOOLS_TOPO_VIEW_H
#define HAWSER_TOOLS_TOPO_VIEW_H

#include <stdbool.h>
#include <stdio.h>

#include "rdma/topo/device.h"
#include "rdma/topo/standby.h"

enum topo_failover {
	TOPO_FAILOVER_LATER, /* this version does not fail over */
	TOPO_FAILOVER_OFF,   /* switched off by HA_NCCL_ENABLE_BACKUP=0 */
	TOPO_FAILOVER_ON,
};

struct topo_view {
	const struct ha_topo *topo;
	const struct ha_standby *standby;
	enum topo_failover failover;
	bool utf8; /* draw with box characters */
};

/* NUMA node > PCI switch > card > port, with the state, speed and address of each port. */
void topo_tree_print(const struct topo_view *view, FILE *out);
/*
 * For each reported port the standby it has or would have, and what the list is worth in this
 * version.
 */
void topo_pairs_print(const struct topo_view *view, FILE *out);
enum topo_nics {
	TOPO_NICS_ONE,   /* one port, or several functions behind one cable */
	TOPO_NICS_PORTS, /* ports of one card */
	TOPO_NICS_CARDS, /* two cards, or software NICs */
};

/* What the ports of one link layer that are up have in common. */
struct topo_protection {
	int ports;
	enum topo_nics nics;
	int leaves;                           /* leaf switches; 0: not known */
	const struct ha_topo_device *unknown; /* a port whose switch is not known; NULL: none */
	const struct ha_topo_device *first;
};

/* False: no port of this link layer is up. */
bool topo_protection(const struct topo_view *view, bool is_ethernet, struct topo_protection *p);
/* A line for each link layer: what connections of this host survive. */
void topo_protection_print(const struct topo_view *view, FILE *out);
/* All of it as one JSON object. 0; -ENOMEM; -EIO: `out` did not take it. */
int topo_json_print(const struct topo_view *view, FILE *out);

/*
 * "PCI switch 0000:3b:00.0": the last thing that the port shares with its neighbours; "" for a
 * software NIC.
 */
const char *topo_place_text(const struct ha_topo_device *dev, char *buf, size_t len);
/* "0000:3d:00": where its card sits (of a virtual function, the card's); "" for a software NIC. */
const char *topo_card_text(const struct ha_topo_device *dev, char *buf, size_t len);
/* What the pairs are worth, in a sentence. */
const char *topo_failover_text(enum topo_failover failover);

#endif
