/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bootstrap, and the messages about rails after it, against a peer that says anything. The
 * input is a play: each step is a byte that names what happens, then its arguments. A peer connects
 * to a listener, or takes the place of the listener that a connector dials; it sends bytes, or
 * messages that are sound but for some bytes, in any order; time passes; streams end. The state
 * machine is the real one, over memory. Whatever happens, nothing is left at the end.
 */
#include "base/check.h"
#include "base/log.h"
#include "plugin/bundle.h"
#include "plugin/channel/stream.h"
#include "plugin/connect/accept.h"
#include "tests/plugin/dummy.h"

#include <errno.h>

#define RECVS 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void discard_line(int level, unsigned long flags, const char *file, int line,
			 const char *fmt, ...)
{
}

struct play {
	const uint8_t *data;
	size_t size;
	struct world w;
	char handle[HA_HANDLE_MAX];
	struct ha_listen *listen;
	struct ha_send *send;
	struct ha_recv *recv[RECVS];
	int nrecv, error;
	/* our listener in the place of theirs; the stream that we use */
	struct ha_oob_conn *stage, *conn;
};

static uint8_t next_byte(struct play *p)
{
	if (!p->size)
		return 0;
	p->size--;
	return *p->data++;
}

static void send_bytes(struct play *p, const void *bytes, size_t size)
{
	if (p->conn)
		oob_mem_ops.send(p->conn, bytes, size);
}

/* About a rail, in an epoch that may well be: the input says which, and what else stands there. */
static void compose_rail(struct play *p, union ha_message *m)
{
	m->rail.rail = next_byte(p) % 4;
	m->rail.epoch = next_byte(p) % 4;
	if (m->header.type == HA_MSG_RAIL_OFFER || m->header.type == HA_MSG_RAIL_ANSWER)
		m->incarnation.end.qp = (struct ha_wire_qp) { .qpn = 9, .mtu = 3, .link_layer = 2 };
	else if (m->header.type != HA_MSG_RAIL_ACK && m->header.type != HA_MSG_RAIL_BACK)
		for (uint32_t i = sizeof(m->rail); i < m->header.length; i += 8)
			((uint8_t *)m)[i] = next_byte(p);
}

static void compose_message(struct play *p, uint16_t type, union ha_message *m)
{
	static const uint32_t sizes[HA_MSG_TYPES] = {
		[HA_MSG_REFUSE] = sizeof(m->refuse),
		[HA_MSG_READY] = sizeof(m->ready),
		[HA_MSG_BYE] = sizeof(m->bye),
		[HA_MSG_RAIL_DOWN] = sizeof(m->cause),
		[HA_MSG_RAIL_FENCED] = sizeof(m->fenced),
		[HA_MSG_RAIL_ACK] = sizeof(m->rail),
		[HA_MSG_RAIL_OFFER] = sizeof(m->incarnation),
		[HA_MSG_RAIL_ANSWER] = sizeof(m->incarnation),
		[HA_MSG_RAIL_KEYS] = sizeof(m->keys),
		[HA_MSG_RAIL_KEYS_ACK] = sizeof(m->keys_ack),
		[HA_MSG_ABORT] = sizeof(m->cause),
		[HA_MSG_RAIL_BACK] = sizeof(m->rail),
		[HA_MSG_RAIL_ASK] = sizeof(m->sign),
		[HA_MSG_RAIL_ALIVE] = sizeof(m->sign),
	};
	uint32_t hello = offsetof(struct ha_msg_hello, rail) + sizeof(struct ha_wire_rail);

	memset(m, 0, sizeof(*m));
	m->header = (struct ha_msg_header) { HA_MSG_MAGIC, 1, type,
					     type <= HA_MSG_WELCOME ? hello : sizes[type], 0 };
	m->ready.nonce = p->listen->nonce;
	if (type >= HA_MSG_RAIL_DOWN)
		compose_rail(p, m);
	if (type > HA_MSG_WELCOME)
		return;
	m->hello.flags = next_byte(p) % 8;
	m->hello.ring_addr = 4096;
	m->hello.version = m->hello.version_min = 1;
	m->hello.nrails = 1;
	m->hello.slots = HA_SLOTS;
	m->hello.rail[0].qp = (struct ha_wire_qp) { .qpn = 9, .mtu = 3, .link_layer = 2 };
}

/* A message of a chosen type, some of its bytes replaced, perhaps its end missing. */
static void send_message(struct play *p)
{
	union ha_message m;
	uint32_t length;

	compose_message(p, (uint16_t)(1 + next_byte(p) % (HA_MSG_TYPES - 1)), &m);
	length = m.header.length;
	for (int n = next_byte(p) % 4; n > 0; n--) {
		uint8_t at = next_byte(p);

		((uint8_t *)&m)[at % sizeof(m)] = next_byte(p);
	}
	if (next_byte(p) % 8 == 0)
		length = next_byte(p) % (length + 1);
	send_bytes(p, &m, length);
}

static void send_own_bytes(struct play *p)
{
	size_t n = next_byte(p);

	if (n > p->size)
		n = p->size;
	send_bytes(p, p->data, n);
	p->data += n;
	p->size -= n;
}

static void hang_up(struct play *p)
{
	if (p->conn)
		oob_mem_ops.close(p->conn);
	p->conn = NULL;
}

static void connect_unknown(struct play *p)
{
	struct ha_wire_handle h;

	hang_up(p);
	memcpy(&h, p->handle, sizeof(h));
	if (p->stage)
		oob_mem_ops.accept(p->stage, &p->conn);
	else
		p->conn = oob_mem_dial(&p->w.net, &h.oob);
}

/* Both hosts do what NCCL would. */
static void progress_hosts(struct play *p)
{
	if (!p->send && !p->error)
		p->error = ha_connect(p->w.b, 0, NULL, p->handle, &p->send);
	if (p->listen && p->nrecv < RECVS) {
		CHECK_INT(ha_accept(p->listen, &p->recv[p->nrecv]), 0);
		p->nrecv += p->recv[p->nrecv] != NULL;
	}
	ha_ctx_progress(p->w.a);
	ha_ctx_progress(p->w.b);
}

static void do_action(struct play *p)
{
	switch (next_byte(p) % 8) {
	case 0:
		connect_unknown(p);
		break;
	case 1:
		send_own_bytes(p);
		break;
	case 2:
	case 3:
		send_message(p);
		break;
	case 4:
		progress_hosts(p);
		break;
	case 5:
		hang_up(p);
		break;
	case 6:
		p->w.clock.now += (1 + (uint64_t)next_byte(p)) * 100 * HA_NS_PER_MS;
		break;
	case 7:
		oob_mem_cut(&p->w.net, next_byte(p) & 1 ? -ECONNRESET : 0);
	}
}

/* Put our own listener where the handle leads. */
static void take_the_stage(struct play *p)
{
	struct ha_wire_handle h;

	memcpy(&h, p->handle, sizeof(h));
	oob_mem_ops.listen(&p->w.net, &p->stage, &h.oob);
	memcpy(p->handle, &h, sizeof(h));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct play p;

	memset(&p, 0, sizeof(p));
	p.data = data;
	p.size = size;
	ha_log_set_sink(discard_line);
	world_prepare(&p.w);
	p.w.config.enable_backup = next_byte(&p) & 1;
	CHECK_INT(world_open_over(&p.w, NULL, NULL), 0);
	CHECK_INT(ha_listen(p.w.a, 0, NULL, p.handle, &p.listen), 0);
	if (next_byte(&p) & 1)
		take_the_stage(&p);
	p.w.net.piece = next_byte(&p) % 64;
	for (int i = 0; i < 64 && p.size; i++) {
		do_action(&p);
		progress_hosts(&p);
	}
	hang_up(&p);
	if (p.stage)
		oob_mem_ops.close(p.stage);
	for (int i = 0; i < p.nrecv; i++)
		ha_close_recv(p.recv[i]);
	world_close(&p.w);
	return 0;
}
