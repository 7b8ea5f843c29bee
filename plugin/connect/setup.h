/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * setup.h - set-up and end of a bundle
 *
 * new -> agree (the peer's HELLO or WELCOME is here) -> connected -> launch (ready for its owner)
 * -> retire (the driver lets go of it) -> free. Before launch it is the driver's alone; free works
 * at any point.
 */
#ifndef HA_PLUGIN_SETUP_H
#define HA_PLUGIN_SETUP_H

#include "plugin/bundle.h"

struct ha_stream;

/* A send or recv with its ring memory and a queue pair per rail. Slow verbs. A failure is one
 * line. */
int ha_bundle_new(struct ha_ctx *ctx, bool is_send, int dev, const struct ha_comm_opts *opts,
		  struct ha_bundle **bundle);
/* Our HELLO or WELCOME. */
void ha_bundle_describe(const struct ha_bundle *b, enum ha_msg_type type,
			struct ha_msg_hello *hello);
/* Settle versions, flags and rails with the peer's (checked) message, and begin to make the queue
 * pairs ready to send: done(arg) when one is. An error that the peer may learn of is in `why`; "" =
 * it has been logged. */
int ha_bundle_agree(struct ha_bundle *b, const struct ha_msg_hello *peer, void (*done)(void *arg),
		    void *arg, char *why, size_t why_size);
/* -EAGAIN: not all of them are. */
int ha_bundle_connected(struct ha_bundle *b);
/* Its queue pairs are nobody's any more that are being connected. Under ctx->drive; before
 * ha_bundle_free. */
void ha_bundle_unhook(struct ha_bundle *b);
/* It is complete: watch the stream (taken) for the peer's end. Under ctx->drive. */
void ha_bundle_launch(struct ha_bundle *b, struct ha_stream *stream);
/* Nobody but the caller reaches it any more. Under ctx->drive; only for a launched one. */
void ha_bundle_retire(struct ha_bundle *b);
/* Say BYE if there is somebody to say it to; free everything. */
void ha_bundle_free(struct ha_bundle *b);

#endif
