/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ports.h - the ports of this host that flows leave by, and what their counters say
 *
 * A port is found by its IPv4 address: as a GID of an RDMA device (which names the network
 * interface too), else as the address of a network interface. Counters are summed from every source
 * that exists; drivers name theirs differently, and the table in ports.c has the names that we
 * know.
 */
#ifndef HA_AGENT_PORTS_H
#define HA_AGENT_PORTS_H

#include <stdbool.h>
#include <stdint.h>

#define HA_PORTS_MAX 64
#define HA_PORTS_ADDRESSES 256
/* the tables of addresses are read again for one that is not in them, no more often than this */
#define HA_PORTS_AGAIN_NS UINT64_C(5000000000)

enum ha_port_counter {
	HA_PORT_TX_BYTES,
	HA_PORT_RX_BYTES,
	HA_PORT_ECN,         /* packets that came marked */
	HA_PORT_CNP,         /* congestion notifications, sent and received */
	HA_PORT_PAUSES,      /* pause frames received, global and per priority */
	HA_PORT_DISCARDS,    /* packets that the port threw away */
	HA_PORT_RETRANSMITS, /* signs of lost packets: sequence errors, time-outs, repetitions */
	HA_PORT_COUNTERS
};

struct ha_port {
	char device[64];    /* of RDMA; "" = none */
	int number;         /* of the port */
	char interface[32]; /* of the network; "" = none */
	bool up;
	uint64_t mbps; /* 0 = unknown */
	uint64_t count[HA_PORT_COUNTERS];
	/* since the look before; 0 at the first, and where a counter went back */
	uint64_t delta[HA_PORT_COUNTERS];
	uint64_t at, span; /* ns: the last look, and since the one before; 0 = there was none */
	unsigned looks;
};

/* An address that was found; its port stays the same when the tables lose it. */
struct ha_port_address {
	uint32_t ip;
	int port;
};

/* An address of this host as the tables of GIDs and interfaces have it. */
struct ha_port_place {
	uint32_t ip;        /* network byte order */
	char device[64];    /* of RDMA; "" = none */
	int number, gid;    /* of the device's port, and in its table */
	char interface[32]; /* where there is no device */
};

struct ha_ports {
	char root[256]; /* stands for / in sysfs; "" = the live system */
	struct ha_port port[HA_PORTS_MAX];
	unsigned n;
	struct ha_port_address address[HA_PORTS_ADDRESSES];
	unsigned naddresses;
	struct ha_port_place *place;
	unsigned nplaces, room;
	bool tables_read;
	uint64_t read_at; /* ns: the tables */
};

extern const char *const ha_port_counter_names[HA_PORT_COUNTERS];

void ha_ports_open(struct ha_ports *ports, const char *root);
void ha_ports_close(struct ha_ports *ports);
/* Index of the port with this address (network byte order), or -1. */
int ha_ports_find(struct ha_ports *ports, uint32_t ip, uint64_t now);
/* Read every port that was found. now: ns. */
void ha_ports_look(struct ha_ports *ports, uint64_t now);

#endif
