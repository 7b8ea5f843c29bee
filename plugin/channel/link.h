/* SPDX-License-Identifier: BSD-3-Clause */
/* link.h - a connection's carriers of control messages beside its rails, and what they have
 * brought; under ctx->drive */
#ifndef HA_CHANNEL_LINK_H
#define HA_CHANNEL_LINK_H

#include "plugin/channel/wire.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct ha_bundle;
struct ha_inbox_message;
struct ha_peer;
struct ha_stream;

/* board.c: messages over a rail, in its present incarnation. */
struct ha_board_state {
	uint32_t out;                  /* posted in this incarnation */
	uint32_t mark[HA_BOARD_SLOTS]; /* the send queue's count with the last one of each slot */
	uint32_t in;                   /* number of the last one read */
};

struct ha_link {
	struct ha_stream *stream; /* to the peer, out of band; NULL once it has ended */
	int stream_error;         /* how it has ended, not acted on yet; 0 = it has not */
	bool reset;        /* its end was a reset: the peer is gone if no rail answers either */
	bool bye;          /* BYE has come */
	uint64_t bye_done; /* the count of receives in it (wire.h) */
	struct ha_board_state board[HA_MAX_RAILS];
	unsigned message_rail;          /* rail that carries the next message */
	unsigned inbox_count;           /* messages in the inbox */
	uint64_t peer_context;          /* which process the peer is, as far as it reported */
	struct ha_peer *peer;           /* NULL: this connection sends for itself (peer.h) */
	SLIST_ENTRY(ha_bundle) by_ring; /* in ctx->peers.by_ring */
	STAILQ_HEAD(, ha_inbox_message) inbox; /* messages that have come (inbox.h) */
	/* the next message is for the connection with this ring; 0 = for this one */
	uint64_t for_another;
};

#endif
