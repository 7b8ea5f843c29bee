/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * inbox.h - what a connection's peer has said on a socket, until the driver has taken the
 * connection
 *
 * Reading sockets needs no connection to be taken, so one barrier (guard.h) serves all that have
 * been written to. Under ctx->drive.
 */
#ifndef HA_PLUGIN_INBOX_H
#define HA_PLUGIN_INBOX_H

#include "base/loop.h"
#include "plugin/channel/board.h"

struct ha_ctx;

/* A copy of a control message. If the peer says more than anybody could mean, or memory is short,
 * it will be said again. */
void ha_inbox_put(struct ha_bundle *b, const union ha_message *m);
/* Act on all of them, in order; the bundle is taken. */
void ha_inbox_read(struct ha_bundle *b, ha_message_taker take);
void ha_inbox_drop(struct ha_bundle *b);

/* The connection's stream is ready: read all that there is into the inbox. Only notes it: the
 * bundle is not taken. */
void ha_inbox_ready(struct ha_watch *watch, uint32_t events);
/* The same of all connections, for streams without descriptors. */
void ha_inboxes_poll(struct ha_ctx *ctx);

#endif
