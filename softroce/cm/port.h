/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * port.h - queue pair 1 of a device of this process: where messages of the connection manager leave
 * and arrive
 */
#ifndef SOFTROCE_CM_PORT_H
#define SOFTROCE_CM_PORT_H

#include "softroce/cm/mad.h"

#include <infiniband/verbs.h>
#include <stdbool.h>

#define SR_CM_PORTS 16

struct sr_cm_port {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *ring; /* of receives */
	int fd;        /* readable when a message has come */
	__be64 guid;
	uint8_t gid[16];
	enum ibv_mtu mtu;
};

/*
 * Opens every device of this process that has no other owner of its queue pair 1. How many, or
 * -errno.
 */
int sr_cm_ports_open(struct sr_cm_port ports[SR_CM_PORTS]);
void sr_cm_port_close(struct sr_cm_port *port);

/* Sends one message; a lost one is repeated by who sent it. */
void sr_cm_port_send(struct sr_cm_port *port, const uint8_t gid[16], const uint8_t mad[SR_MAD_LEN]);
/* The next message makes the descriptor readable again. */
void sr_cm_port_rearm(struct sr_cm_port *port);
/* Takes one message and its sender's address. False: there is none. */
bool sr_cm_port_receive(struct sr_cm_port *port, struct sr_mad *mad, uint8_t gid[16]);

/* The port that has this address, or from which that one is reached; NULL: none. */
struct sr_cm_port *sr_cm_port_of(struct sr_cm_port *ports, int n, const uint8_t gid[16]);
struct sr_cm_port *sr_cm_port_towards(struct sr_cm_port *ports, int n, const uint8_t gid[16]);

#endif
