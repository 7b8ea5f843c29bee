/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/channel/stream.h"

#include "plugin/ctx.h"

#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define RECEIVE_BYTES 16384 /* read at once */

int ha_stream_new(struct ha_ctx *ctx, struct ha_oob_conn *conn, bool connecting,
		  void (*ready)(struct ha_watch *watch, uint32_t events), void *owner,
		  struct ha_stream **stream)
{
	struct ha_stream *s = calloc(1, sizeof(*s));
	int err = -ENOMEM;

	if (s) {
		s->ctx = ctx;
		s->conn = conn;
		s->owner = owner;
		s->watch.ready = ready;
		s->watch.fd = ctx->oob.ops->fd(conn);
		err = ha_loop_add(&ctx->loop, &s->watch, connecting ? EPOLLOUT : EPOLLIN);
	}
	if (err) {
		ctx->oob.ops->close(conn);
		free(s);
		s = NULL;
	}
	*stream = s;
	return err;
}

int ha_stream_connected(struct ha_stream *s)
{
	int err = s->ctx->oob.ops->connected(s->conn);

	if (!err)
		(void)ha_loop_change(&s->ctx->loop, &s->watch, EPOLLIN);
	return err;
}

bool ha_stream_busy(const struct ha_stream *s)
{
	return s->out_sent < s->out_len || s->write_stopped;
}

/* What does not go at once is kept. */
int ha_stream_put_all(struct ha_stream *s, const void *bytes, size_t size)
{
	ssize_t n = 0;
	size_t sent;

	if (ha_stream_busy(s))
		return -EBUSY;
	for (sent = 0; sent < size && n != -EAGAIN; sent += n > 0 ? (size_t)n : 0) {
		n = s->ctx->oob.ops->send(s->conn, (const char *)bytes + sent, size - sent);
		n = n ? n : -EAGAIN;
		if (n < 0 && n != -EAGAIN)
			return (int)n;
	}
	if (sent == size)
		return 0;
	free(s->out);
	s->out_len = s->out_sent = 0;
	s->out = malloc(size - sent);
	/* the rest of a message that has begun cannot be left out */
	s->write_stopped = !s->out && sent;
	if (!s->out)
		return -ENOMEM;
	s->out_len = (uint32_t)(size - sent);
	memcpy(s->out, (const char *)bytes + sent, s->out_len);
	(void)ha_loop_change(&s->ctx->loop, &s->watch, EPOLLIN | EPOLLOUT);
	return -EAGAIN;
}

int ha_stream_put(struct ha_stream *s, const void *message)
{
	const struct ha_msg_header *header = message;

	return ha_stream_put_all(s, message, header->length);
}

int ha_stream_flush(struct ha_stream *s)
{
	while (s->out_sent < s->out_len) {
		ssize_t n = s->ctx->oob.ops->send(s->conn, s->out + s->out_sent,
						  s->out_len - s->out_sent);

		if (n == -EAGAIN || n == 0) {
			(void)ha_loop_change(&s->ctx->loop, &s->watch, EPOLLIN | EPOLLOUT);
			return -EAGAIN;
		}
		if (n < 0)
			return (int)n;
		s->out_sent += (uint32_t)n;
	}
	(void)ha_loop_change(&s->ctx->loop, &s->watch, EPOLLIN);
	return 0;
}

/* Never more than up to `want`, so that what follows stays in the connection. */
static int fill_input(struct ha_stream *s, uint32_t want)
{
	while (s->in_len < want) {
		ssize_t n = s->ctx->oob.ops->recv(s->conn, (char *)&s->in + s->in_len,
						  want - s->in_len);

		if (n == 0)
			return -EPIPE;
		if (n < 0)
			return (int)n;
		s->in_len += (uint32_t)n;
	}
	return 0;
}

int ha_stream_get(struct ha_stream *s, const union ha_message **message)
{
	int err;

	if (s->taken) {
		s->taken = false;
		s->in_len = 0;
	}
	err = fill_input(s, sizeof(s->in.header));
	if (!err)
		err = ha_wire_check_header(&s->in.header);
	if (!err)
		err = fill_input(s, s->in.header.length);
	if (!err)
		err = ha_wire_check_message(&s->in, s->in_len);
	if (err)
		return err;
	s->taken = true;
	*message = &s->in;
	return 0;
}

/* Bytes [0, size) follow those in s->in. How many of them were taken: up to the end of the next
 * message, or all. */
static ssize_t append_input(struct ha_stream *s, const uint8_t *bytes, size_t size)
{
	size_t taken = 0;

	while (taken < size &&
	       (s->in_len < sizeof(s->in.header) || s->in_len < s->in.header.length)) {
		size_t want = s->in_len < sizeof(s->in.header) ? sizeof(s->in.header)
							       : s->in.header.length;
		size_t n = want - s->in_len < size - taken ? want - s->in_len : size - taken;

		memcpy((char *)&s->in + s->in_len, bytes + taken, n);
		s->in_len += (uint32_t)n;
		taken += n;
		if (s->in_len == sizeof(s->in.header) && ha_wire_check_header(&s->in.header))
			return -EPROTO;
	}
	return (ssize_t)taken;
}

int ha_stream_receive_all(struct ha_stream *s, void (*take)(void *arg, const union ha_message *m),
			  void *arg)
{
	uint8_t bytes[RECEIVE_BYTES];
	ssize_t got, n;

	if (s->taken)
		s->in_len = 0;
	s->taken = false;
	for (;;) {
		got = s->ctx->oob.ops->recv(s->conn, bytes, sizeof(bytes));
		if (got <= 0)
			return got ? (int)got : -EPIPE;
		for (ssize_t at = 0; at < got; at += n) {
			n = append_input(s, bytes + at, (size_t)(got - at));
			if (n < 0)
				return (int)n;
			if (s->in_len < sizeof(s->in.header) || s->in_len < s->in.header.length)
				continue;
			if (ha_wire_check_message(&s->in, s->in_len))
				return -EPROTO;
			take(arg, &s->in);
			s->in_len = 0;
		}
	}
}

uint32_t ha_stream_received(const struct ha_stream *s)
{
	return s->taken ? 0 : s->in_len;
}

void ha_stream_close(struct ha_stream *s)
{
	if (!s)
		return;
	ha_loop_remove(&s->ctx->loop, &s->watch);
	s->ctx->oob.ops->close(s->conn);
	free(s->out);
	free(s);
}

#define LEAVE_NS HA_NS_PER_S
#define LEAVE_TRIES 100

/* Read and forget. 0: there may be more to come. */
static int discard_input(struct ha_stream *s)
{
	char buf[1024];
	ssize_t n;

	do
		n = s->ctx->oob.ops->recv(s->conn, buf, sizeof(buf));
	while (n > 0);
	return n == -EAGAIN ? 0 : -EPIPE;
}

static void leaving_ready(struct ha_watch *watch, uint32_t events)
{
	struct ha_stream *s = (struct ha_stream *)watch;
	int err = ha_stream_flush(s);

	if ((err && err != -EAGAIN) || discard_input(s))
		s->leave_at = 0; /* the next look ends it */
	(void)events;
}

void ha_stream_leave(struct ha_stream *s, const void *message)
{
	struct ha_ctx *ctx = s->ctx;

	/* Something may be half out: BYE comes behind it. */
	for (int i = 0; i < LEAVE_TRIES && ha_stream_flush(s) == -EAGAIN; i++)
		;
	(void)ha_stream_put(s, message);
	(void)discard_input(s);
	s->watch.ready = leaving_ready;
	s->leave_at = ha_clock_now(ctx->clock) + LEAVE_NS;
	s->watch.fd = ctx->oob.ops->fd(s->conn);
	if (ha_loop_add(&ctx->loop, &s->watch, EPOLLIN)) {
		ha_stream_close(s);
		return;
	}
	LIST_INSERT_HEAD(&ctx->leaving, s, leaving);
	ha_loop_wake(&ctx->loop);
}

void ha_stream_part(struct ha_stream *s)
{
	(void)discard_input(s);
	LIST_REMOVE(s, leaving);
	ha_stream_close(s);
}

uint64_t ha_streams_leaving(struct ha_ctx *ctx, uint64_t now)
{
	struct ha_stream *s, *next;
	uint64_t due = UINT64_MAX;

	for (s = LIST_FIRST(&ctx->leaving); s; s = next) {
		next = LIST_NEXT(s, leaving);
		if (ctx->oob.soft)
			leaving_ready(&s->watch, 0);
		if (now >= s->leave_at)
			ha_stream_part(s);
		else if (s->leave_at < due)
			due = s->leave_at;
	}
	return due;
}
