/* SPDX-License-Identifier: BSD-3-Clause */
/* ports.h - the RDMA ports of this host as sysfs lists them, and what is known of each one's
 * switch */
#ifndef HAWSER_TOOLS_SWITCHES_PORTS_H
#define HAWSER_TOOLS_SWITCHES_PORTS_H

#include <net/if.h>
#include <stdbool.h>

#include "rdma/topo/switches.h"

#define SWITCHES_INTERFACES 8 /* of one port: a bond's members */

enum switches_answer {
	SWITCHES_NOT_ASKED, /* no source could be asked about this port */
	SWITCHES_NONE,      /* no switch is at the other end */
	SWITCHES_SEVERAL,   /* more than one: the port survives the loss of either */
	SWITCHES_FOUND,
};

struct switches_port {
	struct ha_switches_line line; /* who it is, and with SWITCHES_FOUND on which switch */
	bool is_infiniband;
	bool link_is_up; /* of InfiniBand's physical link */
	unsigned interfaces;
	char interface[SWITCHES_INTERFACES][IFNAMSIZ];
	enum switches_answer answer;
	char why[256]; /* not SWITCHES_FOUND */
};

struct switches_list {
	int n;
	struct switches_port port[HA_TOPO_PORTS_MAX];
};

/* All ports, in the order of their names. root: as of rdma/topo/sysfs.h. */
void switches_list_ports(const char *root, struct switches_list *list);

#endif
