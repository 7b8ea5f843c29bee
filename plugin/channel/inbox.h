/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * inbox.h - what a connection's peer has said on a socket, until the driver has taken the connection
 *
 * Reading sockets needs no connection to be taken, so one barrier (guard.h) serves all that have been written to. Under
 * ctx->drive.
 */
#ifndef HA_CORE_INBOX_H
#define HA_CORE_INBOX_H

struct ha_bundle;
union ha_message;

/* A copy of a control message. If the peer says more than anybody could mean, or memory is short, it will be said again. */
void ha_inbox_put(struct ha_bundle *b, const union ha_message *m);
/* Act on all of them, in order; the bundle is taken. */
void ha_inbox_read(struct ha_bundle *b);
void ha_inbox_drop(struct ha_bundle *b);

#endif
