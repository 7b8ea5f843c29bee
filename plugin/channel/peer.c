/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/channel/peer.h"

#include "plugin/bundle.h"
#include "plugin/channel/link.h"
#include "plugin/channel/stream.h"
#include "plugin/ctx.h"

#include <stdlib.h>
#include <string.h>

#define BATCH_MAX 16384
#define SEND_BYTES 8192 /* bytes that are worth a system call: the peer can begin with them */

struct ha_peer {
	LIST_ENTRY(ha_peer) entry;
	uint64_t context;
	unsigned connections;
	struct ha_bundle *carrier; /* whose socket it goes over: of whom sent first */
	size_t length;
	uint8_t batch[BATCH_MAX];
};

static_assert(SEND_BYTES + sizeof(struct ha_msg_for) + sizeof(union ha_message) <= BATCH_MAX,
	      "one more always fits");

/* ---- who ---- */

static unsigned hash_ring(uint64_t ring)
{
	return (unsigned)((ring >> 12) * UINT64_C(0x9e3779b97f4a7c15) >> 56);
}

static_assert(HA_PEER_BUCKETS == 256, "the hash has eight bits");

struct ha_bundle *ha_peer_find(const struct ha_ctx *ctx, uint64_t ring)
{
	struct ha_bundle *b;

	SLIST_FOREACH(b, &ctx->peers.by_ring[hash_ring(ring)], link->by_ring)
		if ((uintptr_t)b->ring == ring)
			break;
	return b;
}

void ha_peer_join(struct ha_bundle *b)
{
	struct ha_ctx *ctx = b->ctx;
	struct ha_peer *p;

	SLIST_INSERT_HEAD(&ctx->peers.by_ring[hash_ring((uintptr_t)b->ring)], b, link->by_ring);
	if (!(b->terms.flags & HA_FLAG_BATCHES))
		return;
	LIST_FOREACH(p, &ctx->peers.list, entry)
		if (p->context == b->link->peer_context)
			break;
	if (!p) {
		p = calloc(1, sizeof(*p));
		if (!p)
			return; /* it sends its own */
		p->context = b->link->peer_context;
		LIST_INSERT_HEAD(&ctx->peers.list, p, entry);
	}
	p->connections++;
	b->link->peer = p;
}

void ha_peer_leave(struct ha_bundle *b)
{
	struct ha_peer *p = b->link->peer;

	SLIST_REMOVE(&b->ctx->peers.by_ring[hash_ring((uintptr_t)b->ring)], b, ha_bundle,
		     link->by_ring);
	b->link->peer = NULL;
	if (!p || --p->connections)
		return;
	LIST_REMOVE(p, entry);
	free(p);
}

/* ---- batches ---- */

static bool can_carry(const struct ha_bundle *b)
{
	return b->link->stream && !b->link->stream->read_stopped && !b->link->stream_error &&
	       !ha_stream_busy(b->link->stream);
}

/* Whom it was meant for may have lost its socket in this very round. */
static struct ha_bundle *find_carrier(const struct ha_ctx *ctx, const struct ha_peer *p)
{
	struct ha_bundle *b;

	if (can_carry(p->carrier))
		return p->carrier;
	LIST_FOREACH(b, &ctx->bundles, entry)
		if (b->link->peer == p && can_carry(b))
			return b;
	return NULL;
}

static void send_batch(const struct ha_ctx *ctx, struct ha_peer *p)
{
	struct ha_bundle *b = find_carrier(ctx, p);

	if (b)
		(void)ha_stream_put_all(b->link->stream, p->batch, p->length);
	p->length = 0;
	p->carrier = NULL;
}

unsigned ha_peer_connections(const struct ha_bundle *b)
{
	return b->link->peer ? b->link->peer->connections : 0;
}

bool ha_peer_add(struct ha_bundle *b, const union ha_message *m)
{
	struct ha_msg_for about = {
		.header = { HA_MSG_MAGIC, HA_WIRE_VERSION_MIN, HA_MSG_FOR, sizeof(about), 0 },
		.ring = b->peer_ring,
	};
	struct ha_peer *p = b->link->peer;

	if (!p || !can_carry(b))
		return false;
	if (!p->carrier)
		p->carrier = b;
	memcpy(p->batch + p->length, &about, sizeof(about));
	memcpy(p->batch + p->length + sizeof(about), m, m->header.length);
	p->length += sizeof(about) + m->header.length;
	if (p->length >= SEND_BYTES)
		send_batch(b->ctx, p);
	return true;
}

void ha_peers_send(struct ha_ctx *ctx)
{
	struct ha_peer *p;

	LIST_FOREACH(p, &ctx->peers.list, entry)
		if (p->length)
			send_batch(ctx, p);
}
