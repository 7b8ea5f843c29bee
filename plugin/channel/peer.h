/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer.h - what the connections to one process have in common: any of their sockets can carry what
 * any of them has to say
 *
 * When a device is lost all its connections send at the same moment. Their messages go as one batch
 * over one socket: each behind a HA_MSG_FOR that names the connection it is for. Only what is said
 * for the first time goes this way, and only between ends that both know batches (HA_FLAG_BATCHES);
 * what has to be repeated goes over the connection's own carriers (messages.c), so a batch that
 * gets lost costs time, nothing else. Under ctx->drive.
 */
#ifndef HA_PLUGIN_PEER_H
#define HA_PLUGIN_PEER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#define HA_PEER_BUCKETS 256

struct ha_bundle;
struct ha_ctx;
struct ha_peer;
union ha_message;

/* Of a context. */
struct ha_peers {
	/* the connections that are up by a hash of the address of their rings */
	SLIST_HEAD(, ha_bundle) by_ring[HA_PEER_BUCKETS];
	LIST_HEAD(, ha_peer) list; /* the processes that they lead to */
	uint64_t own_id;           /* what peers know this context by; random */
};

/* A launched connection meets the others to the same context (ha_link.peer_context), and can be
 * found by its ring. */
void ha_peer_join(struct ha_bundle *b);
void ha_peer_leave(struct ha_bundle *b);
/* How many connections lead to the same process; 0: not known. */
unsigned ha_peer_connections(const struct ha_bundle *b);
/* Into the batch. False: this connection has none. */
bool ha_peer_add(struct ha_bundle *b, const union ha_message *m);
/* All batches depart. */
void ha_peers_send(struct ha_ctx *ctx);
/* The connection whose ring memory lies there; NULL: none. */
struct ha_bundle *ha_peer_find(const struct ha_ctx *ctx, uint64_t ring);

#endif
