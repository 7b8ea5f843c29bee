/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/plugin/oob_mem.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ha_oob_conn {
	struct oob_mem *net;
	LIST_ENTRY(ha_oob_conn) link;       /* in the net's list */
	uint16_t port;                      /* of a listener; 0 = a stream */
	STAILQ_HEAD(, ha_oob_conn) waiting; /* a listener: the oldest first */
	STAILQ_ENTRY(ha_oob_conn) waits;
	struct ha_oob_conn *peer; /* NULL: it has closed its end */
	uint8_t *in;
	size_t in_len;
	bool connected, ended; /* ended: the peer said no more will come */
	int error;
};

static struct ha_oob_conn *conn_new(struct oob_mem *net, struct oob_mem_conns *list)
{
	struct ha_oob_conn *c = calloc(1, sizeof(*c));

	c->net = net;
	STAILQ_INIT(&c->waiting);
	LIST_INSERT_HEAD(list, c, link);
	net->open++;
	return c;
}

static void conn_free(struct ha_oob_conn *c)
{
	LIST_REMOVE(c, link);
	c->net->open--;
	free(c->in);
	free(c);
}

static int mem_listen(void *arg, struct ha_oob_conn **listener, struct ha_wire_addr *addr)
{
	struct oob_mem *net = arg;

	*listener = conn_new(net, &net->listeners);
	(*listener)->port = ++net->next_port;
	*addr = (struct ha_wire_addr) { .family = 4,
					.port = net->next_port,
					.ip = { 127, 0, 0, 1 } };
	return 0;
}

static int mem_accept(struct ha_oob_conn *l, struct ha_oob_conn **conn)
{
	int err = l->net->accept_error;

	l->net->accept_error = 0;
	if (err)
		return err;
	if (STAILQ_EMPTY(&l->waiting))
		return -EAGAIN;
	*conn = STAILQ_FIRST(&l->waiting);
	STAILQ_REMOVE_HEAD(&l->waiting, waits);
	return 0;
}

static struct ha_oob_conn *listener_at(struct oob_mem *net, uint16_t port)
{
	struct ha_oob_conn *l;

	LIST_FOREACH(l, &net->listeners, link)
		if (l->port == port)
			return l;
	return NULL;
}

static void join_ends(struct ha_oob_conn *l, struct ha_oob_conn *ours)
{
	struct ha_oob_conn *theirs = conn_new(l->net, &l->net->streams);

	ours->peer = theirs;
	theirs->peer = ours;
	ours->connected = theirs->connected = true;
	STAILQ_INSERT_TAIL(&l->waiting, theirs, waits);
}

static int mem_connect(void *arg, const struct ha_wire_addr *addr, struct ha_oob_conn **conn)
{
	struct oob_mem *net = arg;
	struct ha_oob_conn *l = listener_at(net, addr->port);

	if (net->refuse)
		return net->refuse;
	*conn = conn_new(net, &net->streams);
	if (net->silent)
		return 0;
	if (l)
		join_ends(l, *conn);
	else
		(*conn)->error = -ECONNREFUSED;
	return 0;
}

static int mem_connected(struct ha_oob_conn *c)
{
	if (c->error)
		return c->error;
	return c->connected ? 0 : -EAGAIN;
}

/* Without a rhythm, or two ends that take turns would starve one of them. */
static bool is_stalled(struct oob_mem *net)
{
	return net->stall && (++net->calls * UINT64_C(0x9e3779b97f4a7c15) >> 40) % net->stall == 0;
}

static void put_byte(struct ha_oob_conn *to, uint8_t byte)
{
	struct oob_mem *net = to->net;

	if (++net->bytes == net->flip_at)
		byte ^= net->flip;
	to->in = realloc(to->in, to->in_len + 1);
	to->in[to->in_len++] = byte;
	if (net->bytes == net->cut_at)
		oob_mem_cut(net, net->cut_error);
}

static ssize_t mem_send(struct ha_oob_conn *c, const void *data, size_t size)
{
	if (c->error)
		return c->error;
	if (!c->peer)
		return -EPIPE;
	if (!c->connected || is_stalled(c->net))
		return -EAGAIN;
	if (c->net->piece && size > c->net->piece)
		size = c->net->piece;
	for (size_t i = 0; i < size && !c->ended; i++)
		put_byte(c->peer, ((const uint8_t *)data)[i]);
	return (ssize_t)size;
}

static ssize_t mem_recv(struct ha_oob_conn *c, void *data, size_t size)
{
	if (is_stalled(c->net))
		return -EAGAIN;
	if (!c->in_len && c->error)
		return c->error;
	if (!c->in_len)
		return c->ended || !c->peer ? 0 : -EAGAIN;
	if (c->net->piece && size > c->net->piece)
		size = c->net->piece;
	if (size > c->in_len)
		size = c->in_len;
	memcpy(data, c->in, size);
	c->in_len -= size;
	memmove(c->in, c->in + size, c->in_len);
	return (ssize_t)size;
}

static void mem_close(struct ha_oob_conn *c)
{
	struct ha_oob_conn *conn;

	while ((conn = STAILQ_FIRST(&c->waiting))) {
		STAILQ_REMOVE_HEAD(&c->waiting, waits);
		mem_close(conn);
	}
	if (c->peer)
		c->peer->peer = NULL;
	conn_free(c);
}

static int mem_fd(struct ha_oob_conn *c)
{
	return -1;
}

static void mem_peer(struct ha_oob_conn *c, char name[HA_OOB_NAME_MAX])
{
	snprintf(name, HA_OOB_NAME_MAX, "memory");
}

const struct ha_oob_ops oob_mem_ops = {
	.name = "memory",
	.listen = mem_listen,
	.accept = mem_accept,
	.connect = mem_connect,
	.connected = mem_connected,
	.send = mem_send,
	.recv = mem_recv,
	.close = mem_close,
	.fd = mem_fd,
	.peer = mem_peer,
};

struct ha_oob_conn *oob_mem_dial(struct oob_mem *net, const struct ha_wire_addr *addr)
{
	struct ha_oob_conn *l = listener_at(net, addr->port), *c;

	if (!l)
		return NULL;
	c = conn_new(net, &net->streams);
	join_ends(l, c);
	return c;
}

void oob_mem_cut(struct oob_mem *net, int error)
{
	struct ha_oob_conn *c;

	LIST_FOREACH(c, &net->streams, link) {
		c->ended = true;
		c->error = error;
	}
}
