/* SPDX-License-Identifier: BSD-3-Clause */
/* Whatever reaches queue pair 1, the connection manager keeps its books: a listener and connections
 * in every state get messages, changed ones among them, in any order; the port below is not
 * there. */
#include "softroce/cm/manager.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PORT 7471
#define CONNECTIONS 5
#define MESSAGES 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct sr_cm_port port = { .mtu = IBV_MTU_1024, .gid = { [10] = 0xff, 0xff, 127, 0, 0, 1 } };
static const uint8_t peer[16] = { [10] = 0xff, 0xff, 127, 0, 0, 2 };

int sr_cm_ports_open(struct sr_cm_port ports[SR_CM_PORTS])
{
	return -ENODEV;
}

void sr_cm_port_close(struct sr_cm_port *p)
{
}

void sr_cm_port_rearm(struct sr_cm_port *p)
{
}

bool sr_cm_port_receive(struct sr_cm_port *p, struct sr_mad *mad, uint8_t gid[16])
{
	return false;
}

/* What is sent is whole, and to the peer. */
void sr_cm_port_send(struct sr_cm_port *p, const uint8_t gid[16], const uint8_t bytes[SR_MAD_LEN])
{
	struct sr_mad mad;

	if (p != &port || memcmp(gid, peer, 16) || sr_mad_decode(&mad, bytes, SR_MAD_LEN))
		abort();
}

static void id_begin(int fd, unsigned i)
{
	static const enum sr_cm_state states[CONNECTIONS + 2] = { SR_CM_LISTENING, SR_CM_ASKING,
								  SR_CM_REPLIED,   SR_CM_ANSWERED,
								  SR_CM_CONNECTED, SR_CM_LEAVING,
								  SR_CM_LISTENING };
	bool datagram = i > CONNECTIONS;
	struct sr_cm_id *id =
		sr_cm_id_new(sr_cm_channel_of(fd), i + 1, datagram ? RDMA_PS_UDP : RDMA_PS_TCP,
			     datagram ? IBV_QPT_UD : IBV_QPT_RC);

	if (!id)
		abort();
	id->state = states[i];
	id->port = &port;
	id->local_id = i;
	id->remote_id = i;
	id->tid = i;
	memcpy(id->gid, peer, 16);
	sr_cm_sockaddr(&id->src, port.gid, PORT);
	sr_mad_encode(&(struct sr_mad) { .type = SR_MAD_RTU }, id->repeat.sent);
}

/* One message from the input: a good one of its numbers, or its bytes as they are. Bytes used. */
static size_t message_make(const uint8_t *data, size_t size, struct sr_mad *mad)
{
	uint8_t bytes[SR_MAD_LEN] = { 1, 7, 2, 3 };
	size_t used = size < 12 ? size : 12;

	if (size && data[0] & 0x80) {
		used = size - 1 < SR_MAD_LEN ? size - 1 : SR_MAD_LEN;
		memcpy(bytes, data + 1, used);
		return sr_mad_decode(mad, bytes, SR_MAD_LEN) ? 0 : used + 1;
	}
	memset(mad, 0, sizeof(*mad));
	if (used < 12)
		return 0;
	mad->type = SR_MAD_REQ + data[0] % 9;
	mad->tid = data[1];
	mad->local_id = data[2] % 8;
	mad->remote_id = data[3] % 8;
	mad->service =
		(uint64_t)(data[4] & 1 ? RDMA_PS_TCP : RDMA_PS_UDP) << 16 | (PORT + (data[4] & 2));
	mad->qpn = data[5] & 1 ? 0 : data[5];
	mad->path.mtu = data[6];
	mad->status = data[7];
	mad->transport = data[8] & 3;
	mad->data[0] = data[9] & 1;
	mad->data_len = sr_mad_room(mad->type);
	return used;
}

static unsigned ids_count(void)
{
	const struct sr_cm_id *id;
	unsigned n = 0;

	LIST_FOREACH(id, &sr_cm_ids, link)
		n++;
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = sr_cm_open();
	struct sr_cm_note *note;
	uint64_t now = 1;

	if (fd < 0)
		abort();
	for (unsigned i = 0; i < CONNECTIONS + 2; i++)
		id_begin(fd, i);
	for (unsigned n = 0; n < MESSAGES && size; n++) {
		struct sr_mad mad;
		size_t used = message_make(data, size, &mad);

		if (!used)
			break;
		sr_cm_message(&port, peer, &mad);
		if (data[0] & 0x40) {
			now += 300000000;
			sr_cm_timers(now);
		}
		while (data[0] & 0x20 && (note = sr_cm_take(sr_cm_channel_of(fd))) != NULL) {
			if (note->event.event > SR_CM_DISCONNECTED || !note->event.uid)
				abort();
			free(note);
		}
		data += used;
		size -= used;
		if (ids_count() > CONNECTIONS + 2 + MESSAGES)
			abort();
	}
	if (!sr_cm_close(fd) || !LIST_EMPTY(&sr_cm_ids))
		abort();
	sr_cm_early_forget();
	return 0;
}
