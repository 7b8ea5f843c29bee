/* SPDX-License-Identifier: BSD-3-Clause */
#include "softroce/cm/port.h"
#include "softroce/verbs/objects.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECEIVES 128
#define SENDS 64
#define GRH 40u
#define SLOT (GRH + SR_MAD_LEN)
#define NOT_A_SLOT RECEIVES /* of a send */

static int receive_post(struct sr_cm_port *port, unsigned slot)
{
	struct ibv_sge list = { (uintptr_t)port->ring + slot * SLOT, SLOT, port->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &list, .num_sge = 1 }, *bad;

	return ibv_post_recv(port->qp, &wr, &bad);
}

static int queue_pair_start(struct sr_cm_port *port)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = SR_MAD_QKEY };

	if (ibv_modify_qp(port->qp, &attr,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY))
		return -errno;
	for (unsigned i = 0; i < RECEIVES; i++)
		if (receive_post(port, i))
			return -EIO;
	attr.qp_state = IBV_QPS_RTR;
	if (ibv_modify_qp(port->qp, &attr, IBV_QP_STATE))
		return -errno;
	attr.qp_state = IBV_QPS_RTS;
	return ibv_modify_qp(port->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) ? -errno : 0;
}

static int objects_create(struct sr_cm_port *port)
{
	struct ibv_qp_init_attr init = { .cap = { SENDS, RECEIVES, 1, 1, SR_MAD_LEN },
					 .qp_type = IBV_QPT_UD };

	port->ring = calloc(RECEIVES, SLOT);
	port->pd = ibv_alloc_pd(port->context);
	port->channel = ibv_create_comp_channel(port->context);
	if (!port->ring || !port->pd || !port->channel)
		return -ENOMEM;
	port->mr =
		ibv_reg_mr(port->pd, port->ring, (size_t)RECEIVES * SLOT, IBV_ACCESS_LOCAL_WRITE);
	port->cq = ibv_create_cq(port->context, RECEIVES + SENDS, NULL, port->channel, 0);
	if (!port->mr || !port->cq)
		return -ENOMEM;
	init.send_cq = init.recv_cq = port->cq;
	port->qp = sr_qp_create_gsi(port->pd, &init);
	return port->qp ? queue_pair_start(port) : -errno;
}

static int port_open(struct sr_cm_port *port, struct ibv_device *device)
{
	struct ibv_port_attr attr;
	union ibv_gid gid;
	int err = -EIO;

	memset(port, 0, sizeof(*port));
	port->context = ibv_open_device(device);
	if (!port->context)
		return -errno;
	port->guid = ibv_get_device_guid(device);
	if (!ibv_query_gid(port->context, 1, 0, &gid) &&
	    !sr_query_port_verb(port->context, 1, &attr, sizeof(attr)))
		err = objects_create(port);
	if (!err)
		err = ibv_req_notify_cq(port->cq, 0);
	if (err) {
		sr_cm_port_close(port);
		return err;
	}
	port->fd = port->channel->fd;
	memcpy(port->gid, gid.raw, 16);
	port->mtu = attr.active_mtu;
	return 0;
}

int sr_cm_ports_open(struct sr_cm_port ports[SR_CM_PORTS])
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	int n = 0;

	if (!list)
		return -errno;
	for (int i = 0; list[i] && n < SR_CM_PORTS; i++)
		n += !port_open(&ports[n], list[i]);
	ibv_free_device_list(list);
	return n;
}

void sr_cm_port_close(struct sr_cm_port *port)
{
	if (port->qp)
		ibv_destroy_qp(port->qp);
	if (port->cq)
		ibv_destroy_cq(port->cq);
	if (port->mr)
		ibv_dereg_mr(port->mr);
	if (port->channel)
		ibv_destroy_comp_channel(port->channel);
	if (port->pd)
		ibv_dealloc_pd(port->pd);
	free(port->ring);
	if (port->context)
		ibv_close_device(port->context);
	memset(port, 0, sizeof(*port));
}

void sr_cm_port_send(struct sr_cm_port *port, const uint8_t gid[16], const uint8_t mad[SR_MAD_LEN])
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1, .grh.hop_limit = 64 };
	struct ibv_sge list = { (uintptr_t)mad, SR_MAD_LEN, 0 };
	struct ibv_send_wr wr = {
		.wr_id = NOT_A_SLOT, .sg_list = &list, .num_sge = 1, .opcode = IBV_WR_SEND,
		/* a place is free again when its completion was taken */
		.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED,
		.wr.ud = { .remote_qpn = 1, .remote_qkey = SR_MAD_QKEY },
	}, *bad;

	memcpy(attr.grh.dgid.raw, gid, 16);
	wr.wr.ud.ah = ibv_create_ah(port->pd, &attr);
	if (!wr.wr.ud.ah)
		return; /* no address that a packet can be sent to: nobody will answer */
	ibv_post_send(port->qp, &wr, &bad);
	ibv_destroy_ah(wr.wr.ud.ah); /* where it goes was copied */
}

void sr_cm_port_rearm(struct sr_cm_port *port)
{
	struct pollfd fd = { port->fd, POLLIN, 0 };
	struct ibv_cq *cq;
	void *context;

	if (poll(&fd, 1, 0) == 1 && !ibv_get_cq_event(port->channel, &cq, &context))
		ibv_ack_cq_events(cq, 1);
	ibv_req_notify_cq(port->cq, 0);
}

/*
 * The 40 bytes in front of a datagram: an IPv6 header, or an IPv4 header in the last 20 (annex
 * A17.4.5.1).
 */
static void sender_of(const uint8_t *grh, uint8_t gid[16])
{
	if (grh[0] >> 4 == 6) {
		memcpy(gid, grh + 8, 16);
		return;
	}
	memset(gid, 0, 10);
	memset(gid + 10, 0xff, 2);
	memcpy(gid + 12, grh + 20 + 12, 4);
}

/* Takes a completion of a receive without being the NIC: that is somebody else's work. */
static bool completion_take(struct sr_cm_port *port, struct ibv_wc *wc)
{
	struct sr_vcq *cq = (struct sr_vcq *)port->cq;
	int n = 0;

	if (!sr_context_enter(cq->context))
		return false;
	do
		n = sr_cq_poll(cq->engine, 1, wc);
	while (n == 1 && wc->wr_id == NOT_A_SLOT);
	sr_context_leave(cq->context);
	return n == 1;
}

bool sr_cm_port_receive(struct sr_cm_port *port, struct sr_mad *mad, uint8_t gid[16])
{
	struct ibv_wc wc;

	while (completion_take(port, &wc)) {
		const uint8_t *slot = port->ring + wc.wr_id * SLOT;
		bool good = wc.status == IBV_WC_SUCCESS && wc.byte_len >= GRH;

		if (good) {
			sender_of(slot, gid);
			good = !sr_mad_decode(mad, slot + GRH, wc.byte_len - GRH);
		}
		receive_post(port, (unsigned)wc.wr_id);
		if (good)
			return true;
	}
	return false;
}

/* ---- which port ---- */

struct sr_cm_port *sr_cm_port_of(struct sr_cm_port *ports, int n, const uint8_t gid[16])
{
	for (int i = 0; i < n; i++)
		if (!memcmp(ports[i].gid, gid, 16))
			return &ports[i];
	return NULL;
}

/* The source address the kernel would choose, which is a port's or is not. */
static bool route_source(const uint8_t to[16], uint8_t from[16])
{
	struct sockaddr_in6 address = { .sin6_family = AF_INET6, .sin6_port = htons(SR_UDP_PORT) };
	socklen_t len = sizeof(address);
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0), off = 0;
	bool ok;

	if (fd < 0)
		return false;
	memcpy(&address.sin6_addr, to, 16);
	setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	ok = !connect(fd, (struct sockaddr *)&address, sizeof(address)) &&
	     !getsockname(fd, (struct sockaddr *)&address, &len);
	close(fd);
	memcpy(from, &address.sin6_addr, 16);
	return ok;
}

/* A loopback subnet's addresses are all the machine's own, and no route tells them apart. */
static bool in_subnet_of(const struct sr_cm_port *port, const uint8_t gid[16])
{
	const struct sr_device_spec *spec = &sr_context_of(port->context)->adapter->spec;
	uint32_t mask = spec->prefix ? ~0u << (32 - spec->prefix) : 0;

	return spec->kind == SR_DEVICE_SUBNET && sr_gid_ipv4(gid) &&
	       (sr_gid_ipv4(gid) & mask) == (sr_gid_ipv4(spec->gid) & mask);
}

struct sr_cm_port *sr_cm_port_towards(struct sr_cm_port *ports, int n, const uint8_t gid[16])
{
	uint8_t from[16];

	for (int i = 0; i < n; i++)
		if (in_subnet_of(&ports[i], gid))
			return &ports[i];
	return route_source(gid, from) ? sr_cm_port_of(ports, n, from) : NULL;
}
