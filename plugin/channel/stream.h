/* SPDX-License-Identifier: BSD-3-Clause */
/* stream.h - whole messages over an out-of-band connection, whatever pieces it carries them in */
#ifndef HA_PLUGIN_STREAM_H
#define HA_PLUGIN_STREAM_H

#include "base/loop.h"
#include "plugin/channel/oob.h"

#include <sys/queue.h>

struct ha_ctx;

union ha_message {
	struct ha_msg_header header;
	struct ha_msg_hello hello;
	struct ha_msg_refuse refuse;
	struct ha_msg_ready ready;
	struct ha_msg_bye bye;
	struct ha_msg_rail rail;
	struct ha_msg_cause cause;
	struct ha_msg_fenced fenced;
	struct ha_msg_incarnation incarnation;
	struct ha_msg_keys keys;
	struct ha_msg_keys_ack keys_ack;
	struct ha_msg_for about;
	struct ha_msg_windows windows;
	struct ha_msg_windows_ack windows_ack;
	struct ha_msg_sign sign;
};

struct ha_stream {
	struct ha_watch watch; /* first, so that ready() finds the stream */
	struct ha_ctx *ctx;
	struct ha_oob_conn *conn;
	void *owner; /* struct ha_pending, later struct ha_bundle */
	uint32_t in_len;
	uint32_t out_len, out_sent;
	bool read_stopped;             /* nothing more is read from it */
	bool write_stopped;            /* nothing more can be written to it */
	uint64_t leave_at;             /* it only waits for its BYE message to arrive, until then */
	LIST_ENTRY(ha_stream) leaving; /* in ctx->leaving */
	bool taken;                    /* the message in `in` has been handed out */
	union ha_message in;
	uint8_t *out; /* what the socket has not taken yet; allocated only then */
};

/* Takes conn, also on failure. connecting: it is still on its way to being connected. */
int ha_stream_new(struct ha_ctx *ctx, struct ha_oob_conn *conn, bool connecting,
		  void (*ready)(struct ha_watch *watch, uint32_t events), void *owner,
		  struct ha_stream **stream);
/* -EAGAIN until it is connected. */
int ha_stream_connected(struct ha_stream *s);
/* Send message->header.length bytes; nothing else may be on its way out. -EAGAIN: flush on. */
int ha_stream_put(struct ha_stream *s, const void *message);
int ha_stream_flush(struct ha_stream *s);
/* The same of several messages, one behind the other. */
int ha_stream_put_all(struct ha_stream *s, const void *bytes, size_t size);
/* Is something still on its way out? */
bool ha_stream_busy(const struct ha_stream *s);
/* The next message, checked, valid until the next call. -EAGAIN: not whole yet. -EPROTO: it is
 * garbage. -EPIPE: the peer ended the stream. Other errors are the connection's. */
int ha_stream_get(struct ha_stream *s, const union ha_message **message);
/* All that is there, a message at a time, checked; many of them by one call of recv. For streams
 * whose messages are nobody else's to read. -EAGAIN: no more now; other errors as above. */
int ha_stream_receive_all(struct ha_stream *s, void (*take)(void *arg, const union ha_message *m),
			  void *arg);
/* Bytes of the next message so far; an incoming connection that sends nothing has none. */
uint32_t ha_stream_received(const struct ha_stream *s);
/* NULL is fine. Under ctx->drive, or when nobody can be in a round. */
void ha_stream_close(struct ha_stream *s);

/*
 * The last message, and then the end; not at once, because a socket that is closed with something
 * unread in it is reset, and a reset overtakes what was sent. It stays in ctx->leaving, read and
 * ignored, until the peer ends it or a second has passed. Under ctx->drive.
 */
void ha_stream_leave(struct ha_stream *s, const void *message);
/* Rounds of the driver: those whose time is over end. Returns when the next one does. */
uint64_t ha_streams_leaving(struct ha_ctx *ctx, uint64_t now);
/* One of ctx->leaving, now. */
void ha_stream_part(struct ha_stream *s);

#endif
