/* SPDX-License-Identifier: BSD-3-Clause */
#include "gpu/host/messages.h"

#include "base/log.h"
#include "gpu/device/world.h"
#include "gpu/emu/emu.h"
#include "gpu/host/door.h"
#include "gpu/host/stream.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define TAKES_NOTHING_NS UINT64_C(60000000000)
#define PIECE_MS 2000 /* of dialling */

struct packet {
	uint32_t row, pad;
	struct ha_gpu_message message;
};

struct received {
	STAILQ_ENTRY(received) link;
	struct ha_gpu_message message;
};

struct lane {
	SLIST_ENTRY(lane) link;
	struct peer *peer;
	uint32_t row;
	STAILQ_HEAD(, received) received;
};

struct peer {
	pthread_mutex_t lock;
	int fd; /* -1: myself, or gone */
	bool gone;
	SLIST_HEAD(, lane) lanes;
	struct packet in; /* arriving */
	size_t have;
	char *out; /* what the socket has not taken yet */
	size_t out_bytes, out_room;
	uint64_t moved_at; /* when it took something, or there was nothing; ns */
};

struct ha_gpu_messages {
	int rank, size;
	struct peer *peer;
};

/* ---- lanes ---- */

static struct lane *lane_of(struct peer *p, uint32_t row)
{
	struct lane *l;

	SLIST_FOREACH(l, &p->lanes, link)
		if (l->row == row)
			break;
	if (l)
		return l;
	l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	l->peer = p;
	l->row = row;
	STAILQ_INIT(&l->received);
	SLIST_INSERT_HEAD(&p->lanes, l, link);
	return l;
}

static void drop_received(struct lane *l)
{
	struct received *h;

	while ((h = STAILQ_FIRST(&l->received))) {
		STAILQ_REMOVE_HEAD(&l->received, link);
		free(h);
	}
}

/*
 * A word that there is no memory for, or about a row that cannot be, is as bad as a peer that is
 * gone: agents must receive all or nothing.
 */
static void deliver_packet(struct peer *p)
{
	struct lane *l = p->in.row < HA_GPU_ROWS_MAX ? lane_of(p, p->in.row) : NULL;
	struct received *h = l ? malloc(sizeof(*h)) : NULL;

	p->have = 0;
	if (!h) {
		p->gone = true;
		return;
	}
	h->message = p->in.message;
	STAILQ_INSERT_TAIL(&l->received, h, link);
}

static void take_in(struct peer *p)
{
	ssize_t n;

	while (!p->gone) {
		n = recv(p->fd, (char *)&p->in + p->have, sizeof(p->in) - p->have, MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			p->gone = true;
			return;
		}
		p->have += (size_t)n;
		if (p->have == sizeof(p->in))
			deliver_packet(p);
	}
}

/* As much as the socket takes now. */
static void send_out(struct peer *p)
{
	ssize_t n = 0;

	while (!p->gone && p->out_bytes && (n >= 0 || errno == EINTR)) {
		n = send(p->fd, p->out, p->out_bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n <= 0)
			continue;
		p->out_bytes -= (size_t)n;
		memmove(p->out, p->out + n, p->out_bytes);
		p->moved_at = ha_gpu_now();
	}
	if (n < 0)
		p->gone |= errno != EAGAIN || ha_gpu_now() - p->moved_at > TAKES_NOTHING_NS;
}

static bool queue_packet(struct peer *p, const struct packet *packet)
{
	size_t room = p->out_room ? 2 * p->out_room : 16 * sizeof(*packet);
	char *out = p->out;

	if (p->out_bytes + sizeof(*packet) > p->out_room) {
		out = realloc(p->out, room);
		if (!out)
			return false;
		p->out = out;
		p->out_room = room;
	}
	if (!p->out_bytes)
		p->moved_at = ha_gpu_now();
	memcpy(out + p->out_bytes, packet, sizeof(*packet));
	p->out_bytes += sizeof(*packet);
	return true;
}

static int lane_receive(void *self, struct ha_gpu_message *message)
{
	struct lane *l = self;
	struct received *h;
	int r;

	pthread_mutex_lock(&l->peer->lock);
	send_out(l->peer);
	take_in(l->peer);
	h = STAILQ_FIRST(&l->received);
	r = l->peer->gone ? -EPIPE : 0;
	if (h) {
		r = 1;
		*message = h->message;
		STAILQ_REMOVE_HEAD(&l->received, link);
	}
	pthread_mutex_unlock(&l->peer->lock);
	free(h);
	return r;
}

static int lane_send(void *self, const struct ha_gpu_message *message)
{
	struct lane *l = self;
	struct packet out = { .row = l->row, .message = *message };
	struct peer *p = l->peer;
	bool gone;

	pthread_mutex_lock(&p->lock);
	if (!p->gone && !queue_packet(p, &out))
		p->gone = true; /* all or nothing */
	send_out(p);
	gone = p->gone;
	pthread_mutex_unlock(&p->lock);
	return gone ? -EPIPE : 0;
}

int ha_gpu_messages_lane(struct ha_gpu_messages *w, int peer, uint32_t row,
			 struct ha_gpu_channel *channel)
{
	struct peer *p = &w->peer[peer];
	struct lane *l;

	pthread_mutex_lock(&p->lock);
	l = lane_of(p, row);
	pthread_mutex_unlock(&p->lock);
	if (!l)
		return -ENOMEM;
	*channel = (struct ha_gpu_channel) { l, lane_send, lane_receive };
	return 0;
}

void ha_gpu_messages_drop(struct ha_gpu_messages *w, uint32_t row)
{
	struct lane *l;

	for (int i = 0; i < w->size; i++) {
		pthread_mutex_lock(&w->peer[i].lock);
		SLIST_FOREACH(l, &w->peer[i].lanes, link)
			if (l->row >= row)
				drop_received(l);
		pthread_mutex_unlock(&w->peer[i].lock);
	}
}

/* ---- set-up ---- */

struct where {
	char address[80];
	uint64_t secret; /* a dialler shows it: unauthenticated peers are refused */
	int32_t status;
};

struct card {
	uint64_t secret;
	int32_t rank;
};

/* In pieces, with a look between them whether it is in vain. */
static int connect_peer(const struct ha_gpu_bootstrap *b, const char *address, unsigned limit_ms)
{
	unsigned piece;
	int r;

	do {
		piece = limit_ms < PIECE_MS ? limit_ms : PIECE_MS;
		limit_ms -= piece;
		r = ha_gpu_stream_connect(address, piece);
		if (r == -ETIMEDOUT && ha_gpu_bootstrap_gone(b) >= 0)
			return -ECONNRESET;
	} while (r == -ETIMEDOUT && limit_ms);
	return r;
}

static int dial_lower(struct ha_gpu_messages *w, const struct ha_gpu_bootstrap *b,
		      const struct where *at, unsigned limit_ms)
{
	int r = 0;

	for (int i = 0; i < w->rank && !r; i++) {
		struct card card = { at[i].secret, w->rank };

		w->peer[i].fd = connect_peer(b, at[i].address, limit_ms);
		r = w->peer[i].fd < 0
			    ? w->peer[i].fd
			    : ha_gpu_stream_send(w->peer[i].fd, &card, sizeof(card), limit_ms);
		if (r)
			HA_WARN(at[i].address, "rank %d is not reached there: %s", i, strerror(-r));
	}
	return r;
}

struct waiting {
	struct ha_gpu_messages *messages;
	const struct ha_gpu_bootstrap *b;
	uint64_t secret;
};

static bool is_higher(void *self, int fd, const void *shown)
{
	const struct waiting *w = self;
	const struct card *card = shown;

	if (card->secret != w->secret || card->rank <= w->messages->rank ||
	    card->rank >= w->messages->size || w->messages->peer[card->rank].fd >= 0)
		return false;
	w->messages->peer[card->rank].fd = fd;
	return true;
}

static bool in_vain(void *self)
{
	const struct waiting *w = self;

	return ha_gpu_bootstrap_gone(w->b) >= 0;
}

static int await_higher(struct ha_gpu_messages *w, const struct ha_gpu_bootstrap *b, int listener,
			uint64_t secret, unsigned limit_ms)
{
	struct waiting waiting = { w, b, secret };
	int missing, r = ha_gpu_door_open(listener, sizeof(struct card), w->size - 1 - w->rank,
					  limit_ms, is_higher, in_vain, &waiting, &missing);

	if (r == -ECONNRESET)
		HA_WARN("bootstrap",
			"rank %d has gone before all had dialled each other: set-up ends; look for "
			"that process",
			ha_gpu_bootstrap_gone(b));
	else if (r)
		HA_WARN("bootstrap", "%d ranks have not dialled rank %d in time", missing, w->rank);
	return r;
}

static int listen_there(struct ha_gpu_bootstrap *b, struct where *me)
{
	char host[64];
	uint16_t port = 0;
	int fd;

	ha_gpu_stream_text(b->address, 0, me->address);
	fd = ha_gpu_stream_listen(me->address);
	if (fd < 0)
		return fd;
	ha_gpu_stream_own(fd, host, &port);
	ha_gpu_stream_text(b->address, port, me->address);
	if (getrandom(&me->secret, sizeof(me->secret), 0) == sizeof(me->secret))
		return fd;
	close(fd);
	return -EIO;
}

static int connect_all(struct ha_gpu_messages *w, struct ha_gpu_bootstrap *b, unsigned limit_ms)
{
	struct where me = { .status = 0 }, *all = calloc((size_t)b->size, sizeof(*all));
	int listener = all ? listen_there(b, &me) : -ENOMEM, r;

	me.status = listener < 0 ? listener : 0;
	r = all ? ha_gpu_bootstrap_allgather(b, &me, all, sizeof(me)) : -ENOMEM;
	for (int i = 0; i < b->size && !r; i++) {
		r = all[i].status;
		if (!r && !memchr(all[i].address, 0, sizeof(all[i].address)))
			r = -EPROTO;
	}
	if (!r)
		r = dial_lower(w, b, all, limit_ms);
	if (!r)
		r = await_higher(w, b, listener, me.secret, limit_ms);
	if (listener >= 0)
		close(listener);
	free(all);
	return ha_gpu_bootstrap_agree(b, r);
}

int ha_gpu_messages_open(struct ha_gpu_bootstrap *b, unsigned limit_ms,
			 struct ha_gpu_messages **out)
{
	struct ha_gpu_messages *w = calloc(1, sizeof(*w));
	int r;

	if (w)
		w->peer = calloc((size_t)b->size, sizeof(*w->peer));
	if (!w || !w->peer) {
		free(w);
		return -ENOMEM;
	}
	w->rank = b->rank;
	w->size = b->size;
	for (int i = 0; i < b->size; i++) {
		w->peer[i].fd = -1;
		pthread_mutex_init(&w->peer[i].lock, NULL);
	}
	r = connect_all(w, b, limit_ms);
	if (r) {
		ha_gpu_messages_close(w);
		return r;
	}
	*out = w;
	return 0;
}

void ha_gpu_messages_close(struct ha_gpu_messages *w)
{
	struct lane *l;

	for (int i = 0; i < w->size; i++) {
		if (w->peer[i].fd >= 0) {
			send_out(&w->peer[i]);
			close(w->peer[i].fd);
		}
		free(w->peer[i].out);
		while ((l = SLIST_FIRST(&w->peer[i].lanes))) {
			SLIST_REMOVE_HEAD(&w->peer[i].lanes, link);
			drop_received(l);
			free(l);
		}
		pthread_mutex_destroy(&w->peer[i].lock);
	}
	free(w->peer);
	free(w);
}
