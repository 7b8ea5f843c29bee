/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * connect.c - what passes between two connection managers (IBTA vol. 1, 12.9 and 12.11)
 *
 *   RC, UC:     REQ ->   <- REP   RTU ->   ...   DREQ ->   <- DREP
 *               or <- REJ at any time before RTU
 *   datagrams:  SIDR_REQ ->   <- SIDR_REP
 *
 * Whoever waits for an answer repeats what he sent. In front of a request's private data stands
 * whom it is for, by IP address (annex A11).
 */
#include "softroce/cm/manager.h"
#include "softroce/devices.h"
#include "softroce/udp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define REPEAT_NS 500000000ull
/* of REQ, REP and SIDR_REQ, or until the peer says that it needs longer (MRA) */
#define TRIES 20
#define TRIES_LEAVING 6 /* of DREQ */
#define ACK_TIMEOUT 14  /* of the connections: 67 ms; 4.096 us * 2^n */
#define CM_TIMEOUT 20   /* of their managers: 4.3 s */
#define IP_HEADER 36u   /* annex A11.6: version, IP version, port, both addresses */
#define RATE_100_GBPS 16
#define EARLY_MAX 16
#define EARLY_NS 50000000ull

/* ---- sending ---- */

static void send_now(struct sr_cm_id *id, const struct sr_mad *mad)
{
	sr_mad_encode(mad, id->repeat.sent);
	sr_cm_port_send(id->port, id->gid, id->repeat.sent);
	id->repeat.due = 0;
}

static void send_and_repeat(struct sr_cm_id *id, const struct sr_mad *mad, unsigned tries)
{
	struct sr_cm_port *ports;

	send_now(id, mad);
	id->repeat.tries = tries;
	id->repeat.due = sr_now() + REPEAT_NS;
	sr_cm_ports(&ports); /* wakes the thread, which knows of no such time yet */
}

static struct sr_mad make_message(const struct sr_cm_id *id, enum sr_mad_type type)
{
	return (struct sr_mad) {
		.type = type, .tid = id->tid, .local_id = id->local_id, .remote_id = id->remote_id
	};
}

static void data_put(struct sr_mad *mad, unsigned at, const void *data, unsigned len)
{
	unsigned room = sr_mad_room(mad->type) - at;

	if (len)
		memcpy(mad->data + at, data, len < room ? len : room);
}

static uint64_t service_of(const struct sr_cm_id *id, uint16_t port)
{
	return (uint64_t)id->ps << 16 | port;
}

/* The address a request is from and the one it is for. */
static void ip_header_put(const struct sr_cm_id *id, uint8_t data[IP_HEADER])
{
	uint16_t port = htons(sr_cm_portnum(&id->src));
	bool ipv4 = sr_gid_ipv4(id->gid);
	uint8_t gid[16];

	memset(data, 0, IP_HEADER);
	data[1] = ipv4 ? 0x40 : 0x60;
	memcpy(data + 2, &port, 2);
	sr_cm_gid_of(&id->src, gid);
	memcpy(data + 4 + (ipv4 ? 12 : 0), gid + (ipv4 ? 12 : 0), ipv4 ? 4 : 16);
	sr_cm_gid_of(&id->dst, gid);
	memcpy(data + 20 + (ipv4 ? 12 : 0), gid + (ipv4 ? 12 : 0), ipv4 ? 4 : 16);
}

static void params_take(struct sr_cm_id *id, const struct rdma_ucm_conn_param *param)
{
	id->qpn = param->qp_num;
	id->terms.responder_resources = param->responder_resources;
	id->terms.initiator_depth = param->initiator_depth;
}

int sr_cm_connect(struct sr_cm_id *id, const struct rdma_ucm_conn_param *param)
{
	bool datagram = sr_cm_is_datagram(id);
	struct sr_mad mad = make_message(id, datagram ? SR_MAD_SIDR_REQ : SR_MAD_REQ);

	if (id->state != SR_CM_RESOLVED || !id->routed)
		return -EINVAL;
	if (param->private_data_len > sr_mad_room(mad.type) - IP_HEADER)
		return -EINVAL;
	params_take(id, param);
	id->terms.retry_count = param->retry_count & 7;
	id->terms.rnr_retry = param->rnr_retry_count & 7;
	id->terms.mtu = (uint8_t)id->port->mtu;
	mad.service = service_of(id, sr_cm_portnum(&id->dst));
	mad.path.pkey = 0xffff;
	mad.guid = be64toh(id->port->guid);
	mad.qpn = id->qpn;
	mad.psn = id->psn;
	mad.responder_resources = id->terms.responder_resources;
	mad.initiator_depth = id->terms.initiator_depth;
	mad.timing.remote_timeout = mad.timing.local_timeout = CM_TIMEOUT;
	mad.timing.max_retries = 15;
	mad.transport = id->qp_type == IBV_QPT_UC;
	mad.flow_control = param->flow_control & 1;
	mad.retry_count = id->terms.retry_count;
	mad.rnr_retry = id->terms.rnr_retry;
	mad.path.mtu = id->terms.mtu;
	mad.srq = param->srq & 1;
	mad.path.tclass = id->terms.tos;
	mad.path.hops = 64;
	mad.path.rate = RATE_100_GBPS;
	mad.path.subnet_local = 1;
	if (!id->terms.ack_timeout)
		id->terms.ack_timeout = ACK_TIMEOUT;
	mad.ack_timeout = id->terms.ack_timeout;
	memcpy(mad.path.sgid, id->port->gid, 16);
	memcpy(mad.path.dgid, id->gid, 16);
	ip_header_put(id, mad.data);
	data_put(&mad, IP_HEADER, param->private_data, param->private_data_len);
	id->state = SR_CM_ASKING;
	send_and_repeat(id, &mad, TRIES);
	return 0;
}

static int confirm_connection(struct sr_cm_id *id)
{
	struct sr_mad mad = make_message(id, SR_MAD_RTU);

	id->state = SR_CM_CONNECTED;
	send_now(id, &mad);
	return 0;
}

static int datagram_accept(struct sr_cm_id *id, const struct rdma_ucm_conn_param *param)
{
	struct sr_mad mad = make_message(id, SR_MAD_SIDR_REP);

	mad.qpn = param->qp_num;
	mad.qkey = param->qkey ? param->qkey : SR_CM_QKEY;
	mad.service = service_of(id, sr_cm_portnum(&id->src));
	data_put(&mad, 0, param->private_data, param->private_data_len);
	id->state = SR_CM_CONNECTED;
	send_now(id, &mad);
	return 0;
}

int sr_cm_accept(struct sr_cm_id *id, const struct rdma_ucm_conn_param *param)
{
	struct sr_mad mad = make_message(id, SR_MAD_REP);

	if (id->state == SR_CM_ANSWERED)
		return confirm_connection(id);
	if (id->state != SR_CM_ASKED)
		return -EINVAL;
	if (sr_cm_is_datagram(id))
		return datagram_accept(id, param);
	params_take(id, param);
	mad.qpn = id->qpn;
	mad.psn = id->psn;
	mad.responder_resources = id->terms.responder_resources;
	mad.initiator_depth = id->terms.initiator_depth;
	mad.ack_timeout = ACK_TIMEOUT;
	mad.flow_control = param->flow_control & 1;
	mad.rnr_retry = param->rnr_retry_count & 7;
	mad.srq = param->srq & 1;
	mad.guid = be64toh(id->port->guid);
	data_put(&mad, 0, param->private_data, param->private_data_len);
	id->state = SR_CM_REPLIED;
	send_and_repeat(id, &mad, TRIES);
	return 0;
}

static void send_reject(struct sr_cm_id *id, unsigned reason, const void *data, unsigned len)
{
	bool sidr = sr_cm_is_datagram(id);
	struct sr_mad mad = make_message(id, sidr ? SR_MAD_SIDR_REP : SR_MAD_REJ);

	mad.about = id->state == SR_CM_ANSWERED; /* the REP; else the REQ */
	mad.reason = reason;
	mad.status = SR_SIDR_REJECT;
	data_put(&mad, 0, data, len);
	id->state = SR_CM_ENDED;
	send_now(id, &mad);
}

int sr_cm_reject(struct sr_cm_id *id, const void *data, unsigned len)
{
	if (id->state != SR_CM_ASKED && id->state != SR_CM_ANSWERED)
		return -EINVAL;
	send_reject(id, SR_REJ_CONSUMER, data, len);
	return 0;
}

static struct sr_mad make_disconnect(const struct sr_cm_id *id)
{
	struct sr_mad mad = make_message(id, SR_MAD_DREQ);

	mad.qpn = id->remote_qpn;
	return mad;
}

int sr_cm_disconnect(struct sr_cm_id *id)
{
	struct sr_mad mad = make_disconnect(id);

	if (sr_cm_is_datagram(id))
		return -EINVAL;
	if (id->state == SR_CM_CONNECTED || id->state == SR_CM_REPLIED) {
		id->state = SR_CM_LEAVING;
		send_and_repeat(id, &mad, TRIES_LEAVING);
		return 0;
	}
	return id->state == SR_CM_LEAVING || id->state == SR_CM_ENDED ? 0 : -EINVAL;
}

void sr_cm_established(struct sr_cm_id *id)
{
	if (id->state != SR_CM_REPLIED)
		return;
	id->state = SR_CM_CONNECTED;
	id->repeat.due = 0;
	sr_cm_post_event(id, SR_CM_ESTABLISHED, 0);
}

void sr_cm_send_end(struct sr_cm_id *id)
{
	struct sr_mad mad = make_disconnect(id);

	if (!id->port)
		return;
	if (id->state == SR_CM_ASKED || id->state == SR_CM_ANSWERED || id->state == SR_CM_REPLIED)
		send_reject(id, SR_REJ_CONSUMER, NULL, 0);
	else if (id->state == SR_CM_ASKING && !sr_cm_is_datagram(id))
		send_reject(id, SR_REJ_TIMEOUT, NULL, 0);
	else if (id->state == SR_CM_CONNECTED && !sr_cm_is_datagram(id))
		send_now(id, &mad);
	id->state = SR_CM_ENDED;
}

/* ---- time ---- */

static void gave_up(struct sr_cm_id *id)
{
	bool left = id->state == SR_CM_LEAVING;

	id->repeat.due = 0;
	id->state = SR_CM_ENDED;
	sr_cm_post_event(id, left ? SR_CM_DISCONNECTED : SR_CM_UNREACHABLE, left ? 0 : -ETIMEDOUT);
}

static uint64_t repeats_due(uint64_t now)
{
	uint64_t next = UINT64_MAX;
	struct sr_cm_id *id;

	LIST_FOREACH(id, &sr_cm_ids, link) {
		if (id->repeat.due && id->repeat.due <= now && !--id->repeat.tries) {
			gave_up(id);
		} else if (id->repeat.due && id->repeat.due <= now) {
			sr_cm_port_send(id->port, id->gid, id->repeat.sent);
			id->repeat.due = now + REPEAT_NS;
		}
		if (id->repeat.due && id->repeat.due < next)
			next = id->repeat.due;
	}
	return next;
}

/* ---- requests ---- */

static void answer_foreign(struct sr_cm_port *port, const uint8_t gid[16], const struct sr_mad *mad,
			   enum sr_mad_type type)
{
	struct sr_mad out = { .type = type, .tid = mad->tid, .remote_id = mad->local_id };
	uint8_t bytes[SR_MAD_LEN];

	out.local_id = type == SR_MAD_DREP ? mad->remote_id : 0;
	out.reason = SR_REJ_NO_SERVICE;
	out.status = SR_SIDR_UNSUPPORTED;
	out.service = mad->service;
	sr_mad_encode(&out, bytes);
	sr_cm_port_send(port, gid, bytes);
}

static struct sr_cm_id *listener_of(const struct sr_cm_port *port, uint64_t service)
{
	struct sr_cm_id *id;

	LIST_FOREACH(id, &sr_cm_ids, link)
		if (id->state == SR_CM_LISTENING &&
		    service == service_of(id, sr_cm_portnum(&id->src)) &&
		    (!id->port || id->port == port))
			break;
	return id;
}

/* Whose request came before, by the peer's name for it. */
static struct sr_cm_id *known_request(const uint8_t gid[16], const struct sr_mad *mad)
{
	struct sr_cm_id *id;

	LIST_FOREACH(id, &sr_cm_ids, link)
		if (id->state >= SR_CM_ASKED && id->remote_id == mad->local_id &&
		    id->tid == mad->tid &&
		    sr_cm_is_datagram(id) == (mad->type == SR_MAD_SIDR_REQ) &&
		    !memcmp(id->gid, gid, 16))
			break;
	return id;
}

static void request_repeated(struct sr_cm_id *id)
{
	struct sr_mad mad = make_message(id, SR_MAD_MRA);
	uint8_t bytes[SR_MAD_LEN];

	if (id->state == SR_CM_REPLIED || sr_cm_is_datagram(id)) {
		if (id->state != SR_CM_ASKED)
			sr_cm_port_send(id->port, id->gid, id->repeat.sent);
	} else if (id->state == SR_CM_ASKED) {
		/* the program takes its time: the peer shall be patient */
		mad.timing.local_timeout = CM_TIMEOUT;
		sr_mad_encode(&mad, bytes);
		sr_cm_port_send(id->port, id->gid, bytes);
	}
}

/* The peer's view becomes ours: what it can serve is what we may ask. */
static void request_read(struct sr_cm_id *id, const struct sr_mad *mad)
{
	id->remote_id = (uint32_t)mad->local_id;
	id->tid = mad->tid;
	id->remote_qpn = (uint32_t)mad->qpn;
	id->remote_psn = (uint32_t)mad->psn;
	id->terms.responder_resources = (uint8_t)mad->initiator_depth;
	id->terms.initiator_depth = (uint8_t)mad->responder_resources;
	id->terms.retry_count = (uint8_t)mad->retry_count;
	id->terms.rnr_retry = (uint8_t)mad->rnr_retry;
	id->terms.ack_timeout = (uint8_t)mad->ack_timeout;
	id->terms.mtu = (uint8_t)(mad->path.mtu < id->port->mtu ? mad->path.mtu : id->port->mtu);
	if (!id->terms.mtu)
		id->terms.mtu = IBV_MTU_1024;
}

static void event_data(struct sr_cm_note *note, const struct sr_cm_id *id, const struct sr_mad *mad,
		       unsigned at)
{
	struct rdma_ucm_conn_param *conn = &note->event.param.conn;
	struct rdma_ucm_ud_param *ud = &note->event.param.ud;
	unsigned len = mad->data_len - at;

	if (sr_cm_is_datagram(id)) {
		ud->private_data_len = (uint8_t)len;
		memcpy(ud->private_data, mad->data + at, len);
		return;
	}
	conn->private_data_len = (uint8_t)len;
	memcpy(conn->private_data, mad->data + at, len);
	conn->qp_num = (uint32_t)mad->qpn;
	conn->srq = (uint8_t)mad->srq;
	conn->responder_resources = id->terms.responder_resources;
	conn->initiator_depth = id->terms.initiator_depth;
	conn->flow_control = (uint8_t)mad->flow_control;
	conn->retry_count = (uint8_t)mad->retry_count;
	conn->rnr_retry_count = (uint8_t)mad->rnr_retry;
}

/*
 * A request that nobody listens for may be early: programs answer one connection and then begin to
 * listen for the next, and here nothing takes as long as the kernel's address resolution. So it is
 * put aside for a moment before it is refused.
 */
static struct early {
	struct sr_cm_port *port; /* NULL: free */
	uint8_t gid[16];
	struct sr_mad mad;
	uint64_t due;
} early[EARLY_MAX];

/* False: it has been put aside before, or there is no room. */
static bool put_aside(struct sr_cm_port *port, const uint8_t gid[16], const struct sr_mad *mad)
{
	struct early *free_one = NULL;

	for (unsigned i = 0; i < EARLY_MAX; i++) {
		if (early[i].port == port && early[i].mad.tid == mad->tid &&
		    !memcmp(early[i].gid, gid, 16))
			return false;
		if (!early[i].port)
			free_one = &early[i];
	}
	if (!free_one)
		return false;
	*free_one = (struct early) { .port = port, .mad = *mad, .due = sr_now() + EARLY_NS };
	memcpy(free_one->gid, gid, 16);
	return true;
}

static void handle_request(struct sr_cm_port *port, const uint8_t gid[16], const struct sr_mad *mad)
{
	struct sr_cm_id *id = known_request(gid, mad), *listener;
	struct sr_cm_note *note;
	uint16_t peer_port;

	if (id) {
		request_repeated(id);
		return;
	}
	listener = listener_of(port, mad->service);
	if (!listener && put_aside(port, gid, mad))
		return;
	if (!listener || mad->data[0] || (mad->type == SR_MAD_REQ && mad->transport > 1)) {
		answer_foreign(port, gid, mad,
			       mad->type == SR_MAD_REQ ? SR_MAD_REJ : SR_MAD_SIDR_REP);
		return;
	}
	if (listener->waiting >= SR_CM_BACKLOG)
		return; /* it will be repeated */
	note = sr_cm_note(listener, SR_CM_CONNECT_REQUEST, 0);
	id = note ? sr_cm_id_new(listener->channel, 0, listener->ps, listener->qp_type) : NULL;
	if (!id) {
		free(note);
		return;
	}
	memcpy(&peer_port, mad->data + 2, 2);
	memcpy(id->gid, gid, 16);
	id->port = port;
	id->state = SR_CM_ASKED;
	id->routed = true;
	sr_cm_sockaddr(&id->src, port->gid, sr_cm_portnum(&listener->src));
	sr_cm_sockaddr(&id->dst, gid, ntohs(peer_port));
	request_read(id, mad);
	event_data(note, id, mad, IP_HEADER);
	note->event.id = id->handle;
	note->fresh = id;
	listener->waiting++;
	sr_cm_push(note);
}

/* ---- answers ---- */

/* The id that a message is for, by our name for it and the peer's address. */
static struct sr_cm_id *find_addressee(const uint8_t gid[16], uint64_t local_id)
{
	struct sr_cm_id *id;

	LIST_FOREACH(id, &sr_cm_ids, link)
		if (id->local_id == local_id && id->state >= SR_CM_ASKING &&
		    !memcmp(id->gid, gid, 16))
			break;
	return id;
}

static void report_with_data(struct sr_cm_id *id, enum sr_cm_event event, int status,
			     const struct sr_mad *mad)
{
	struct sr_cm_note *note = sr_cm_note(id, event, status);

	if (!note)
		return;
	event_data(note, id, mad, 0);
	sr_cm_push(note);
}

static void handle_reply(struct sr_cm_id *id, const struct sr_mad *mad)
{
	if (id->state == SR_CM_CONNECTED && id->remote_id == mad->local_id) {
		sr_cm_port_send(id->port, id->gid, id->repeat.sent); /* the RTU was lost */
		return;
	}
	if (id->state != SR_CM_ASKING)
		return;
	id->remote_id = (uint32_t)mad->local_id;
	id->remote_qpn = (uint32_t)mad->qpn;
	id->remote_psn = (uint32_t)mad->psn;
	id->terms.responder_resources = (uint8_t)mad->initiator_depth;
	id->terms.initiator_depth = (uint8_t)mad->responder_resources;
	id->terms.rnr_retry = (uint8_t)mad->rnr_retry;
	id->state = SR_CM_ANSWERED;
	id->repeat.due = 0;
	report_with_data(id, SR_CM_CONNECT_RESPONSE, 0, mad);
}

static void handle_reject(struct sr_cm_id *id, const struct sr_mad *mad)
{
	if (id->state < SR_CM_ASKING || id->state > SR_CM_ANSWERED)
		return;
	id->state = SR_CM_ENDED;
	id->repeat.due = 0;
	report_with_data(id, SR_CM_REJECTED, (int)mad->reason, mad);
}

static void handle_disconnect(struct sr_cm_id *id, const struct sr_mad *mad)
{
	struct sr_mad out = make_message(id, SR_MAD_DREP);
	bool ended = id->state == SR_CM_ENDED;

	if (mad->qpn != id->qpn || mad->local_id != id->remote_id || id->state < SR_CM_REPLIED)
		return;
	out.tid = mad->tid;
	id->state = SR_CM_ENDED;
	send_now(id, &out);
	if (!ended)
		sr_cm_post_event(id, SR_CM_DISCONNECTED, 0);
}

static void ah_attr_put(const struct sr_cm_id *id, struct ib_uverbs_ah_attr *attr)
{
	memcpy(attr->grh.dgid, id->gid, 16);
	attr->grh.hop_limit = 64;
	attr->grh.traffic_class = id->terms.tos;
	attr->is_global = 1;
	attr->port_num = 1;
}

static void datagram_replied(struct sr_cm_id *id, const struct sr_mad *mad)
{
	struct sr_cm_note *note;

	if (id->state != SR_CM_ASKING || !sr_cm_is_datagram(id))
		return;
	id->repeat.due = 0;
	id->state = mad->status ? SR_CM_ENDED : SR_CM_CONNECTED;
	note = sr_cm_note(id, mad->status ? SR_CM_UNREACHABLE : SR_CM_ESTABLISHED,
			  (int)mad->status);
	if (!note)
		return;
	event_data(note, id, mad, 0);
	note->event.param.ud.qp_num = (uint32_t)mad->qpn;
	note->event.param.ud.qkey = (uint32_t)mad->qkey;
	ah_attr_put(id, &note->event.param.ud.ah_attr);
	sr_cm_push(note);
}

/* A message about an id of ours. */
static void handle_answer(struct sr_cm_id *id, const struct sr_mad *mad)
{
	switch (mad->type) {
	case SR_MAD_REP:
		handle_reply(id, mad);
		break;
	case SR_MAD_RTU:
		if (id->state == SR_CM_REPLIED && id->remote_id == mad->local_id)
			sr_cm_established(id);
		break;
	case SR_MAD_REJ:
		handle_reject(id, mad);
		break;
	case SR_MAD_MRA:
		if (id->repeat.due)
			id->repeat.tries = TRIES;
		break;
	case SR_MAD_DREQ:
		handle_disconnect(id, mad);
		break;
	case SR_MAD_DREP:
		if (id->state == SR_CM_LEAVING) {
			id->state = SR_CM_ENDED;
			id->repeat.due = 0;
			sr_cm_post_event(id, SR_CM_DISCONNECTED, 0);
		}
		break;
	case SR_MAD_SIDR_REP:
		datagram_replied(id, mad);
		break;
	default:
		break;
	}
}

void sr_cm_message(struct sr_cm_port *port, const uint8_t gid[16], const struct sr_mad *mad)
{
	struct sr_cm_id *id;

	if (mad->type == SR_MAD_REQ || mad->type == SR_MAD_SIDR_REQ) {
		handle_request(port, gid, mad);
		return;
	}
	id = find_addressee(gid, mad->remote_id);
	if (id)
		handle_answer(id, mad);
	else if (mad->type == SR_MAD_DREQ)
		/* it has been gone for a while */
		answer_foreign(port, gid, mad, SR_MAD_DREP);
}

/* ---- time, once more ---- */

static uint64_t early_due(uint64_t now)
{
	uint64_t next = UINT64_MAX;

	for (unsigned i = 0; i < EARLY_MAX; i++) {
		if (early[i].port && early[i].due <= now) {
			handle_request(early[i].port, early[i].gid, &early[i].mad);
			early[i].port = NULL;
		}
		if (early[i].port && early[i].due < next)
			next = early[i].due;
	}
	return next;
}

uint64_t sr_cm_timers(uint64_t now)
{
	uint64_t repeats = repeats_due(now), requests = early_due(now);

	return repeats < requests ? repeats : requests;
}

void sr_cm_early_forget(void)
{
	memset(early, 0, sizeof(early));
}
