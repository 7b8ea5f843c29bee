/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/plugin/oob.h"

#include "plugin/channel/wire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* bytes that a socket always takes at once: its buffer never fills up with the few messages of
 * ours */
#define SEND_WHOLE 64

struct chunk {
	STAILQ_ENTRY(chunk) entry;
	uint64_t at; /* when it arrives */
	uint32_t len, taken;
	uint8_t data[];
};

struct ha_oob_conn {
	struct sim_oob *all;
	LIST_ENTRY(ha_oob_conn) entry;
	unsigned host;
	uint16_t port;                     /* of a listener; 0 = a stream */
	TAILQ_HEAD(, ha_oob_conn) waiting; /* streams of a listener, in the order of their coming */
	TAILQ_ENTRY(ha_oob_conn) incoming; /* in `waiting`, of a stream that nobody has accepted */
	struct ha_oob_conn *peer;          /* NULL: it has closed its end */
	STAILQ_HEAD(, chunk) chunks;       /* on their way to us, by time */
	uint64_t ready_at;                 /* connected, or waiting to be accepted, from then on */
	uint64_t last_at;                  /* when the newest chunk arrives */
	/* the peer's end of the stream arrives; 0 = it has not ended */
	uint64_t ended_at;
	uint64_t error_at; /* `error` shows from then on; 0 = there is none */
	int error;
	bool silent; /* nothing passes in either direction any more */
};

static uint64_t now_of(const struct sim_oob *oob)
{
	return oob->now(oob->arg);
}

static uint64_t draw_latency(struct sim_oob *oob)
{
	return oob->latency_ns + sr_rng_below(&oob->rng, oob->jitter_ns + 1);
}

static struct ha_oob_conn *conn_new(struct sim_oob *oob, unsigned host, struct sim_oob_conns *list)
{
	struct ha_oob_conn *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->all = oob;
	c->host = host;
	TAILQ_INIT(&c->waiting);
	STAILQ_INIT(&c->chunks);
	LIST_INSERT_HEAD(list, c, entry);
	oob->open++;
	return c;
}

static void conn_free(struct ha_oob_conn *c)
{
	struct chunk *chunk;

	while ((chunk = STAILQ_FIRST(&c->chunks)) != NULL) {
		STAILQ_REMOVE_HEAD(&c->chunks, entry);
		free(chunk);
	}
	LIST_REMOVE(c, entry);
	c->all->open--;
	free(c);
}

static bool has_failed(const struct ha_oob_conn *c)
{
	return c->error_at && now_of(c->all) >= c->error_at;
}

static void fail_at(struct ha_oob_conn *c, int error, uint64_t at)
{
	if (c->error_at && c->error_at <= at)
		return;
	c->error = error;
	c->error_at = at;
}

static int sim_listen(void *arg, struct ha_oob_conn **listener, struct ha_wire_addr *addr)
{
	struct sim_oob_net *net = arg;

	*listener = conn_new(net->all, net->host, &net->all->listeners);
	if (!*listener)
		return -ENOMEM;
	(*listener)->port = ++net->all->next_port;
	*addr = (struct ha_wire_addr) { .family = 4,
					.port = net->all->next_port,
					.ip = { 192, 168, 0, (uint8_t)(net->host + 1) } };
	return 0;
}

static int sim_accept(struct ha_oob_conn *l, struct ha_oob_conn **conn)
{
	struct ha_oob_conn *c = TAILQ_FIRST(&l->waiting);

	if (!c || now_of(l->all) < c->ready_at)
		return -EAGAIN;
	TAILQ_REMOVE(&l->waiting, c, incoming);
	*conn = c;
	return 0;
}

static struct ha_oob_conn *listener_at(struct sim_oob *oob, uint16_t port)
{
	struct ha_oob_conn *l;

	LIST_FOREACH(l, &oob->listeners, entry)
		if (l->port == port)
			break;
	return l;
}

static void connect_streams(struct ha_oob_conn *l, struct ha_oob_conn *ours,
			    struct ha_oob_conn *theirs)
{
	struct ha_oob_conn *later;

	ours->peer = theirs;
	theirs->peer = ours;
	theirs->ready_at = now_of(l->all) + draw_latency(l->all);
	ours->ready_at = theirs->ready_at + draw_latency(l->all);
	theirs->last_at = theirs->ready_at;
	ours->last_at = ours->ready_at;
	TAILQ_FOREACH(later, &l->waiting, incoming)
		if (later->ready_at > theirs->ready_at)
			break;
	if (later)
		TAILQ_INSERT_BEFORE(later, theirs, incoming);
	else
		TAILQ_INSERT_TAIL(&l->waiting, theirs, incoming);
}

static int sim_connect(void *arg, const struct ha_wire_addr *addr, struct ha_oob_conn **conn)
{
	struct sim_oob_net *net = arg;
	struct sim_oob *oob = net->all;
	struct ha_oob_conn *l = listener_at(oob, addr->port), *theirs;

	*conn = conn_new(oob, net->host, &oob->streams);
	if (!*conn)
		return -ENOMEM;
	if (l && l->silent) {
		fail_at(*conn, -ETIMEDOUT, now_of(oob) + oob->keepalive_ns);
		return 0;
	}
	theirs = l && !net->gone ? conn_new(oob, l->host, &oob->streams) : NULL;
	if (theirs)
		connect_streams(l, *conn, theirs);
	else
		fail_at(*conn, -ECONNREFUSED, now_of(oob) + 2 * draw_latency(oob));
	return 0;
}

static int sim_connected(struct ha_oob_conn *c)
{
	if (has_failed(c))
		return c->error;
	return c->ready_at && now_of(c->all) >= c->ready_at ? 0 : -EAGAIN;
}

/* Now and then nothing, and often less than was asked for. */
static size_t draw_portion(struct sim_oob *oob, size_t size)
{
	if (!oob->piece)
		return size;
	if (!sr_rng_below(&oob->rng, 4))
		return 0;
	return size > oob->piece ? 1 + (size_t)sr_rng_below(&oob->rng, oob->piece) : size;
}

static void append_chunk(struct ha_oob_conn *to, const void *data, size_t size)
{
	struct chunk *chunk = malloc(sizeof(*chunk) + size);
	uint64_t at = now_of(to->all) + draw_latency(to->all);

	if (!chunk)
		abort();
	if (at < to->last_at)
		at = to->last_at;
	to->last_at = at;
	*chunk = (struct chunk) { .at = at, .len = (uint32_t)size };
	memcpy(chunk->data, data, size);
	STAILQ_INSERT_TAIL(&to->chunks, chunk, entry);
}

/* A header that is cut into portions is not counted. */
static void count_messages(struct sim_oob *oob, const char *data, size_t size)
{
	const uint32_t magic = HA_MSG_MAGIC;

	oob->bytes += size;
	while (size >= sizeof(magic)) {
		const char *at = memmem(data, size, &magic, sizeof(magic));

		if (!at)
			return;
		oob->messages++;
		at += sizeof(magic);
		size -= (size_t)(at - data);
		data = at;
	}
}

static ssize_t sim_send(struct ha_oob_conn *c, const void *data, size_t size)
{
	if (has_failed(c))
		return c->error;
	if (!c->peer && !c->silent)
		return -EPIPE;
	if (now_of(c->all) < c->ready_at)
		return -EAGAIN;
	if (size > SEND_WHOLE)
		size = draw_portion(c->all, size);
	if (!size)
		return -EAGAIN;
	count_messages(c->all, data, size);
	if (!c->silent)
		append_chunk(c->peer, data, size);
	return (ssize_t)size;
}

static ssize_t sim_recv(struct ha_oob_conn *c, void *data, size_t size)
{
	struct chunk *chunk = STAILQ_FIRST(&c->chunks);

	if (has_failed(c))
		return c->error;
	if (!chunk || now_of(c->all) < chunk->at)
		return !chunk && c->ended_at && now_of(c->all) >= c->ended_at ? 0 : -EAGAIN;
	size = now_of(c->all) < c->all->sick_until ? 0 : draw_portion(c->all, size);
	if (!size)
		return -EAGAIN;
	if (size > chunk->len - chunk->taken)
		size = chunk->len - chunk->taken;
	memcpy(data, chunk->data + chunk->taken, size);
	chunk->taken += (uint32_t)size;
	if (chunk->taken == chunk->len) {
		STAILQ_REMOVE_HEAD(&c->chunks, entry);
		free(chunk);
	}
	return (ssize_t)size;
}

/*
 * The end of our half: a FIN behind what was sent, or a reset when bytes of the peer's were left
 * unread.
 */
static void send_end(struct ha_oob_conn *c)
{
	const struct chunk *first = STAILQ_FIRST(&c->chunks);
	struct ha_oob_conn *peer = c->peer;
	uint64_t at;

	if (!peer)
		return;
	peer->peer = NULL;
	c->peer = NULL;
	if (c->silent)
		return;
	at = now_of(c->all) + draw_latency(c->all);
	if (at < peer->last_at)
		at = peer->last_at;
	peer->ended_at = at;
	if (first && now_of(c->all) >= first->at)
		fail_at(peer, -ECONNRESET, at);
}

static void sim_close(struct ha_oob_conn *c);

static void close_waiting(struct ha_oob_conn *l)
{
	struct ha_oob_conn *one;

	while ((one = TAILQ_FIRST(&l->waiting)) != NULL) {
		TAILQ_REMOVE(&l->waiting, one, incoming);
		sim_close(one);
	}
}

static void sim_close(struct ha_oob_conn *c)
{
	close_waiting(c);
	send_end(c);
	conn_free(c);
}

static int sim_fd(struct ha_oob_conn *c)
{
	return -1;
}

static void sim_peer(struct ha_oob_conn *c, char name[HA_OOB_NAME_MAX])
{
	snprintf(name, HA_OOB_NAME_MAX, "host %u", c->port ? c->host : 1 - c->host);
}

const struct ha_oob_ops sim_oob_ops = {
	.name = "simulated sockets",
	.listen = sim_listen,
	.accept = sim_accept,
	.connect = sim_connect,
	.connected = sim_connected,
	.send = sim_send,
	.recv = sim_recv,
	.close = sim_close,
	.fd = sim_fd,
	.peer = sim_peer,
};

void sim_oob_init(struct sim_oob *oob, uint64_t seed, uint64_t (*now)(void *arg), void *arg)
{
	*oob = (struct sim_oob) { .now = now, .arg = arg, .rng = { seed } };
	for (unsigned h = 0; h < SIM_HOSTS; h++)
		oob->net[h] = (struct sim_oob_net) { oob, h, false };
}

void sim_oob_fini(struct sim_oob *oob)
{
	while (!LIST_EMPTY(&oob->listeners))
		sim_close(LIST_FIRST(&oob->listeners));
	while (!LIST_EMPTY(&oob->streams))
		sim_close(LIST_FIRST(&oob->streams));
}

void sim_oob_reset(struct sim_oob *oob, unsigned host, bool both)
{
	struct ha_oob_conn *c;

	LIST_FOREACH(c, &oob->streams, entry) {
		c->silent = true;
		fail_at(c, both || c->host == host ? -ECONNRESET : -ETIMEDOUT,
			now_of(oob) + (both || c->host == host ? 0 : oob->keepalive_ns));
	}
}

void sim_oob_silence(struct sim_oob *oob)
{
	struct ha_oob_conn *c;

	LIST_FOREACH(c, &oob->streams, entry) {
		c->silent = true;
		fail_at(c, -ETIMEDOUT, now_of(oob) + oob->keepalive_ns);
	}
}

void sim_oob_die(struct sim_oob *oob, unsigned host, bool power)
{
	struct ha_oob_conn *c, *l;

	if (power)
		sim_oob_silence(oob);
	LIST_FOREACH(c, &oob->streams, entry)
		if (c->host == host) {
			send_end(c);
			fail_at(c, -EPIPE, now_of(oob));
		}
	LIST_FOREACH(l, &oob->listeners, entry)
		if (l->host == host) {
			close_waiting(l);
			l->silent = power;
			if (!power)
				/* nobody is there any more, and the kernel says so */
				l->port = UINT16_MAX;
		}
	oob->net[host].gone = true;
}
