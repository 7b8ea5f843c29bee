/* SPDX-License-Identifier: BSD-3-Clause */
/* command.c - the commands of librdmacm; see command.h */
#include "softroce/cm/command.h"
#include "softroce/cm/manager.h"
#include "softroce/verbs/objects.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define EPHEMERAL_FIRST 32768u
#define EPHEMERAL_COUNT 28232u

/* A command's body, as long as the caller's librdmacm knows it, and where its answer goes. */
struct body {
	struct sr_cm_channel *channel;
	const void *in;
	size_t in_len, out_len;
};

static void body_read(const struct body *body, void *to, size_t size)
{
	memset(to, 0, size);
	memcpy(to, body->in, body->in_len < size ? body->in_len : size);
}

static int answer_write(const struct body *body, uint64_t response, const void *from, size_t size)
{
	if (!response)
		return -EFAULT;
	memcpy((void *)(uintptr_t)response, from, body->out_len < size ? body->out_len : size);
	return 0;
}

#define READ(type, name)  \
	struct type name; \
	body_read(body, &name, sizeof(name))

/* The id of a command; only its own channel may name it. */
#define FIND(id, number)                           \
	struct sr_cm_id *id = sr_cm_id_of(number); \
	if (!id || id->channel != body->channel)   \
	return -ENOENT

static int create_id(const struct body *body)
{
	READ(rdma_ucm_create_id, cmd);
	struct rdma_ucm_create_id_resp resp = { 0 };
	struct sr_cm_id *id;

	if (cmd.ps != RDMA_PS_TCP && cmd.ps != RDMA_PS_UDP && cmd.ps != RDMA_PS_IPOIB &&
	    cmd.ps != RDMA_PS_IB)
		return -EPROTONOSUPPORT;
	id = sr_cm_id_new(body->channel, cmd.uid, cmd.ps, cmd.qp_type);
	if (!id)
		return -ENOMEM;
	resp.id = id->handle;
	return answer_write(body, cmd.response, &resp, sizeof(resp));
}

static int destroy_id(const struct body *body)
{
	READ(rdma_ucm_destroy_id, cmd);
	FIND(id, cmd.id);
	struct rdma_ucm_destroy_id_resp resp = { .events_reported = id->events };

	sr_cm_id_free(id);
	return answer_write(body, cmd.response, &resp, sizeof(resp));
}

/* ---- addresses ---- */

static bool known_family(const struct sockaddr_in6 *address)
{
	return address->sin6_family == AF_INET || address->sin6_family == AF_INET6;
}

static bool port_taken(const struct sr_cm_id *id, uint16_t number)
{
	const struct sr_cm_id *other;

	LIST_FOREACH(other, &sr_cm_ids, link)
		if (other != id && other->chosen && other->ps == id->ps &&
		    sr_cm_portnum(&other->src) == number &&
		    (!other->port || !id->port || other->port == id->port))
			return true;
	return false;
}

static int number_take(struct sr_cm_id *id)
{
	uint16_t number = sr_cm_portnum(&id->src);
	uint32_t start = 0;

	if (number) {
		if (port_taken(id, number))
			return -EADDRINUSE;
		id->chosen = true;
		return 0;
	}
	if (getrandom(&start, sizeof(start), 0) != sizeof(start))
		start = id->handle;
	for (uint32_t i = 0; i < EPHEMERAL_COUNT; i++) {
		number = (uint16_t)(EPHEMERAL_FIRST + (start + i) % EPHEMERAL_COUNT);
		if (port_taken(id, number))
			continue;
		id->src.sin6_port = htons(number);
		id->chosen = true;
		return 0;
	}
	return -EADDRNOTAVAIL;
}

static bool is_loopback(const uint8_t gid[16])
{
	return sr_gid_ipv4(gid) == INADDR_LOOPBACK || !memcmp(gid, &in6addr_loopback, 16);
}

static int bind_to(struct sr_cm_id *id, const struct sockaddr_in6 *address)
{
	struct sr_cm_port *ports;
	uint8_t gid[16];
	int n, err;

	if (id->state != SR_CM_IDLE)
		return -EINVAL;
	if (!known_family(address))
		return -EAFNOSUPPORT;
	n = sr_cm_ports(&ports);
	if (n < 0)
		return n;
	id->src = *address;
	sr_cm_gid_of(address, gid);
	/* neither names a device; so it is in the kernel (cma_any_addr) */
	if (!sr_cm_any(address) && !is_loopback(gid)) {
		id->port = sr_cm_port_of(ports, n, gid);
		if (!id->port)
			return -EADDRNOTAVAIL;
	}
	err = number_take(id);
	if (err)
		id->port = NULL;
	else
		id->state = SR_CM_BOUND;
	return err;
}

static int bind_ip(const struct body *body)
{
	READ(rdma_ucm_bind_ip, cmd);
	FIND(id, cmd.id);

	return bind_to(id, &cmd.addr);
}

/* librdmacm asks so whether addresses of InfiniBand (AF_IB) are known: they are not. */
static int bind_any_family(const struct body *body)
{
	READ(rdma_ucm_bind, cmd);
	FIND(id, cmd.id);

	return bind_to(id, (const struct sockaddr_in6 *)(const void *)&cmd.addr);
}

static int resolve_addresses(struct sr_cm_id *id, const struct sockaddr_in6 *src,
			     const struct sockaddr_in6 *dst)
{
	struct sr_cm_port *ports;
	int n = sr_cm_ports(&ports), err;
	uint16_t number;

	if (n < 0)
		return n;
	if (id->state == SR_CM_IDLE && known_family(src)) {
		err = bind_to(id, src);
		if (err)
			return err;
	}
	if ((id->state != SR_CM_IDLE && id->state != SR_CM_BOUND) || !known_family(dst))
		return -EINVAL;
	sr_cm_gid_of(dst, id->gid);
	if (!id->port)
		id->port = sr_cm_port_towards(ports, n, id->gid);
	if (!id->port) {
		sr_cm_post_event(id, SR_CM_ADDR_ERROR, -ENODEV);
		return 0;
	}
	number = id->state == SR_CM_BOUND ? sr_cm_portnum(&id->src) : 0;
	id->dst = *dst;
	sr_cm_sockaddr(&id->src, id->port->gid, number);
	err = number ? 0 : number_take(id);
	if (err)
		return err;
	id->state = SR_CM_RESOLVED;
	sr_cm_post_event(id, SR_CM_ADDR_RESOLVED, 0);
	return 0;
}

static int resolve_ip(const struct body *body)
{
	READ(rdma_ucm_resolve_ip, cmd);
	FIND(id, cmd.id);

	return resolve_addresses(id, &cmd.src_addr, &cmd.dst_addr);
}

static int resolve_addr(const struct body *body)
{
	READ(rdma_ucm_resolve_addr, cmd);
	FIND(id, cmd.id);

	return resolve_addresses(id, (const struct sockaddr_in6 *)(const void *)&cmd.src_addr,
				 (const struct sockaddr_in6 *)(const void *)&cmd.dst_addr);
}

static int resolve_route(const struct body *body)
{
	READ(rdma_ucm_resolve_route, cmd);
	FIND(id, cmd.id);

	if (id->state != SR_CM_RESOLVED)
		return -EINVAL;
	id->routed = true; /* the kernel's routes are IP's, and we send through IP */
	sr_cm_post_event(id, SR_CM_ROUTE_RESOLVED, 0);
	return 0;
}

static void route_fill(const struct sr_cm_id *id, struct ib_user_path_rec *path)
{
	memcpy(path->sgid, id->port->gid, 16);
	memcpy(path->dgid, id->gid, 16);
	path->pkey = htons(0xffff);
	path->mtu = id->port->mtu;
	path->hop_limit = 64;
	path->traffic_class = id->terms.tos;
	path->reversible = path->numb_path = 1;
	/* exactly */
	path->mtu_selector = path->rate_selector = path->packet_life_time_selector = 2;
	path->rate = IBV_RATE_100_GBPS;
	path->packet_life_time = 14;
}

static int query_route(const struct body *body)
{
	READ(rdma_ucm_query, cmd);
	FIND(id, cmd.id);
	struct rdma_ucm_query_route_resp resp = { .ibdev_index = UINT32_MAX };

	resp.src_addr = id->src;
	resp.dst_addr = id->dst;
	if (id->port) {
		resp.node_guid = id->port->guid;
		resp.port_num = 1;
	}
	if (id->routed) {
		resp.num_paths = 1;
		route_fill(id, &resp.ib_route[0]);
	}
	return answer_write(body, cmd.response, &resp, sizeof(resp));
}

/* ---- connections ---- */

static int connect_id(const struct body *body)
{
	READ(rdma_ucm_connect, cmd);
	FIND(id, cmd.id);

	return sr_cm_connect(id, &cmd.conn_param);
}

static int listen_id(const struct body *body)
{
	static const struct sockaddr_in6 any = { .sin6_family = AF_INET6 };
	READ(rdma_ucm_listen, cmd);
	FIND(id, cmd.id);

	if (id->state == SR_CM_IDLE) {
		int err = bind_to(id, &any);

		if (err)
			return err;
	}
	if (id->state != SR_CM_BOUND)
		return -EINVAL;
	id->state = SR_CM_LISTENING;
	return 0;
}

static int accept_id(const struct body *body)
{
	READ(rdma_ucm_accept, cmd);
	FIND(id, cmd.id);
	uint64_t before = id->uid;
	int err;

	if (cmd.conn_param.valid)
		id->uid = cmd.uid;
	err = sr_cm_accept(id, &cmd.conn_param);
	if (err)
		id->uid = before;
	return err;
}

static int reject_id(const struct body *body)
{
	READ(rdma_ucm_reject, cmd);
	FIND(id, cmd.id);

	return sr_cm_reject(id, cmd.private_data, cmd.private_data_len);
}

static int disconnect_id(const struct body *body)
{
	READ(rdma_ucm_disconnect, cmd);
	FIND(id, cmd.id);

	return sr_cm_disconnect(id);
}

static int notify_id(const struct body *body)
{
	READ(rdma_ucm_notify, cmd);
	FIND(id, cmd.id);

	if (cmd.event != IBV_EVENT_COMM_EST)
		return -EINVAL;
	sr_cm_established(id);
	return 0;
}

/* ---- what the queue pair must be given ---- */

static void to_init(const struct sr_cm_id *id, struct ib_uverbs_qp_attr *attr)
{
	attr->qp_attr_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	attr->port_num = 1;
	if (sr_cm_is_datagram(id)) {
		attr->qp_attr_mask |= IBV_QP_QKEY;
		attr->qkey = SR_CM_QKEY;
		return;
	}
	attr->qp_attr_mask |= IBV_QP_ACCESS_FLAGS;
	attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	if (id->terms.responder_resources)
		attr->qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
}

static void to_rtr(const struct sr_cm_id *id, struct ib_uverbs_qp_attr *attr)
{
	attr->qp_attr_mask = IBV_QP_STATE;
	if (sr_cm_is_datagram(id))
		return;
	attr->qp_attr_mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	memcpy(attr->ah_attr.grh.dgid, id->gid, 16);
	attr->ah_attr.grh.hop_limit = 64;
	attr->ah_attr.grh.traffic_class = id->terms.tos;
	attr->ah_attr.is_global = attr->ah_attr.port_num = 1;
	attr->path_mtu = id->terms.mtu;
	attr->dest_qp_num = id->remote_qpn;
	attr->rq_psn = id->psn;
	if (id->qp_type == IBV_QPT_UC)
		return;
	attr->qp_attr_mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	attr->max_dest_rd_atomic = id->terms.responder_resources;
}

static void to_rts(const struct sr_cm_id *id, struct ib_uverbs_qp_attr *attr)
{
	attr->qp_attr_mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	attr->sq_psn = id->remote_psn;
	if (sr_cm_is_datagram(id) || id->qp_type == IBV_QPT_UC)
		return;
	attr->qp_attr_mask |=
		IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	attr->timeout = id->terms.ack_timeout;
	attr->retry_cnt = id->terms.retry_count;
	attr->rnr_retry = id->terms.rnr_retry;
	attr->max_rd_atomic = id->terms.initiator_depth;
}

static int init_qp_attr(const struct body *body)
{
	READ(rdma_ucm_init_qp_attr, cmd);
	FIND(id, cmd.id);
	struct ib_uverbs_qp_attr attr = { .qp_state = cmd.qp_state };

	if (!id->port)
		return -EINVAL;
	if (cmd.qp_state == IBV_QPS_INIT)
		to_init(id, &attr);
	else if (cmd.qp_state == IBV_QPS_RTR)
		to_rtr(id, &attr);
	else if (cmd.qp_state == IBV_QPS_RTS)
		to_rts(id, &attr);
	else
		return -EINVAL;
	return answer_write(body, cmd.response, &attr, sizeof(attr));
}

/* ---- the rest ---- */

static int set_option(const struct body *body)
{
	READ(rdma_ucm_set_option, cmd);
	FIND(id, cmd.id);
	uint8_t value = 0;

	if (!cmd.optval || !cmd.optlen)
		return -EINVAL;
	memcpy(&value, (const void *)(uintptr_t)cmd.optval, 1);
	if (cmd.level != RDMA_OPTION_ID)
		return -ENOSYS;
	if (cmd.optname == RDMA_OPTION_ID_TOS)
		id->terms.tos = value;
	else if (cmd.optname == RDMA_OPTION_ID_ACK_TIMEOUT)
		id->terms.ack_timeout = value & 31;
	else if (cmd.optname != RDMA_OPTION_ID_REUSEADDR && cmd.optname != RDMA_OPTION_ID_AFONLY)
		/* those two change nothing where a port number belongs to one process */
		return -ENOSYS;
	return 0;
}

static int migrate_id(const struct body *body)
{
	READ(rdma_ucm_migrate_id, cmd);
	struct sr_cm_channel *from = sr_cm_channel_of((int)cmd.fd);
	struct sr_cm_id *id = sr_cm_id_of(cmd.id);
	struct rdma_ucm_migrate_resp resp;

	if (!from || !id || id->channel != from)
		return -ENOENT;
	sr_cm_id_migrate(id, body->channel);
	resp.events_reported = id->events;
	return answer_write(body, cmd.response, &resp, sizeof(resp));
}

static int get_event(const struct body *body)
{
	READ(rdma_ucm_get_event, cmd);
	struct sr_cm_note *note = sr_cm_take(body->channel);
	int err;

	if (!note)
		return -EAGAIN;
	err = answer_write(body, cmd.response, &note->event, sizeof(note->event));
	free(note);
	return err;
}

static int refuse_command(const struct body *body)
{
	return -EOPNOTSUPP; /* multicast, and queries by InfiniBand address */
}

static int (*const commands[])(const struct body *body) = {
	[RDMA_USER_CM_CMD_CREATE_ID] = create_id,
	[RDMA_USER_CM_CMD_DESTROY_ID] = destroy_id,
	[RDMA_USER_CM_CMD_BIND_IP] = bind_ip,
	[RDMA_USER_CM_CMD_RESOLVE_IP] = resolve_ip,
	[RDMA_USER_CM_CMD_RESOLVE_ROUTE] = resolve_route,
	[RDMA_USER_CM_CMD_QUERY_ROUTE] = query_route,
	[RDMA_USER_CM_CMD_CONNECT] = connect_id,
	[RDMA_USER_CM_CMD_LISTEN] = listen_id,
	[RDMA_USER_CM_CMD_ACCEPT] = accept_id,
	[RDMA_USER_CM_CMD_REJECT] = reject_id,
	[RDMA_USER_CM_CMD_DISCONNECT] = disconnect_id,
	[RDMA_USER_CM_CMD_INIT_QP_ATTR] = init_qp_attr,
	[RDMA_USER_CM_CMD_GET_EVENT] = get_event,
	[RDMA_USER_CM_CMD_GET_OPTION] = refuse_command,
	[RDMA_USER_CM_CMD_SET_OPTION] = set_option,
	[RDMA_USER_CM_CMD_NOTIFY] = notify_id,
	[RDMA_USER_CM_CMD_JOIN_IP_MCAST] = refuse_command,
	[RDMA_USER_CM_CMD_LEAVE_MCAST] = refuse_command,
	[RDMA_USER_CM_CMD_MIGRATE_ID] = migrate_id,
	[RDMA_USER_CM_CMD_QUERY] = refuse_command,
	[RDMA_USER_CM_CMD_BIND] = bind_any_family,
	[RDMA_USER_CM_CMD_RESOLVE_ADDR] = resolve_addr,
	[RDMA_USER_CM_CMD_JOIN_MCAST] = refuse_command,
};

/*
 * incarnation: of the channel that a first try met; 0 before it. -EIDRM: that one is closed.
 * *waits: whoever finds no event is to wait (asked while the channel cannot be closed).
 */
static int command_run(int fd, uint64_t *incarnation, const struct rdma_ucm_cmd_hdr *hdr,
		       const void *in, bool *waits)
{
	struct body body = { .in = in, .in_len = hdr->in, .out_len = hdr->out };
	int err = *incarnation ? -EIDRM : -EBADF;

	pthread_mutex_lock(&sr_cm_lock);
	body.channel = sr_cm_channel_of(fd);
	if (body.channel && *incarnation && *incarnation != body.channel->incarnation)
		body.channel = NULL;
	if (body.channel) {
		*incarnation = body.channel->incarnation;
		err = commands[hdr->cmd](&body);
		*waits = err == -EAGAIN && hdr->cmd == RDMA_USER_CM_CMD_GET_EVENT &&
			 !(fcntl(fd, F_GETFL) & O_NONBLOCK);
	}
	pthread_mutex_unlock(&sr_cm_lock);
	return err;
}

ssize_t softroce_cm_write(int fd, const void *command, size_t len)
{
	struct rdma_ucm_cmd_hdr hdr;
	struct pollfd wait = { fd, POLLIN, 0 };
	uint64_t incarnation = 0;
	int err;

	errno = EINVAL;
	if (len < sizeof(hdr))
		return -1;
	memcpy(&hdr, command, sizeof(hdr));
	if (hdr.cmd >= sizeof(commands) / sizeof(commands[0]) || len < sizeof(hdr) + hdr.in)
		return -1;
	for (;;) {
		bool waits = false;

		err = command_run(fd, &incarnation, &hdr, (const char *)command + sizeof(hdr),
				  &waits);
		if (!waits)
			break;
		if (poll(&wait, 1, -1) < 0)
			return -1; /* a signal, most likely */
	}
	/*
	 * closed by another thread: the kernel's call holds the file, and waits on for what never
	 * comes
	 */
	if (err == -EIDRM)
		return pause();
	if (!err)
		return (ssize_t)len;
	errno = -err;
	return -1;
}

int softroce_cm_open(void)
{
	int fd = sr_cm_open();

	if (fd >= 0)
		return fd;
	errno = -fd;
	return -1;
}

int softroce_cm_close(int fd)
{
	return sr_cm_close(fd) ? 0 : -1;
}
