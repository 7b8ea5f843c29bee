/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * neighbors.h - what a host's LLDP daemon knows of its neighbors, and which of them is a port's
 * switch
 *
 * A switch is known by its chassis ID, written as lldpd does: "mac:00:53:00:aa:bb:cc",
 * "local:leaf1". So two hosts name it alike whichever daemon they have.
 */
#ifndef HAWSER_TOOLS_SWITCHES_NEIGHBORS_H
#define HAWSER_TOOLS_SWITCHES_NEIGHBORS_H

#include "tools/switches/ports.h"

#define SWITCHES_NEIGHBORS 512

struct switches_neighbor {
	char interface[IFNAMSIZ];
	struct ha_topo_switch at;
	/* It says that it forwards, as a bridge or a router, or says nothing about that. */
	bool forwards;
};

struct switches_neighbors {
	const char *source; /* "lldpd" */
	unsigned n;
	struct switches_neighbor neighbor[SWITCHES_NEIGHBORS];
	/* The interfaces on which it listens; those of neighbors are among them. */
	unsigned interfaces;
	char interface[SWITCHES_NEIGHBORS][IFNAMSIZ];
	char why[256]; /* why it could not be asked; "": it was */
};

/* An interface on which the daemon listens. */
void switches_add_interface(struct switches_neighbors *all, const char *interface);
/* NULL: there is no room for another one. */
struct switches_neighbor *switches_add_neighbor(struct switches_neighbors *all,
						const char *interface);
/* "mac:" and so on before the value; cut off, and made visible ASCII. */
void switches_set_id(struct ha_topo_switch *at, const char *kind, const char *value, size_t len);

/* The port's answer: of the first daemon that found a switch, or several; else of the first that
 * listens on all its interfaces. Where none does, why not. */
void switches_choose(struct switches_port *port, const struct switches_neighbors *daemon,
		     unsigned n);

/* lldpd's, by its program lldpcli; socket: NULL, or lldpd's. */
void switches_ask_lldpd(const char *socket, struct switches_neighbors *all);
/* What lldpcli prints about neighbors and about interfaces, as JSON. False: it is none. */
bool switches_take_lldpd(const char *neighbors, const char *interfaces,
			 struct switches_neighbors *all);
/* systemd-networkd's, of these ports' interfaces. */
void switches_ask_networkd(const char *root, const struct switches_list *list,
			   struct switches_neighbors *all);
/* A file of networkd's: frames as they came, each behind its length. False: it is cut off, or a
 * frame is no LLDP frame; what came before it is taken. */
bool switches_take_networkd(const unsigned char *data, size_t size, const char *interface,
			    struct switches_neighbors *all);
/* An Ethernet frame of LLDP (IEEE 802.1AB). False: it is none. */
bool switches_take_frame(const unsigned char *frame, size_t size, const char *interface,
			 struct switches_neighbors *all);

#endif
