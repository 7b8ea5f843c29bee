/* SPDX-License-Identifier: BSD-3-Clause */
/* path.c - a heartbeat; which rails share a path, use it, and doubt it */
#include "plugin/channel/board.h"
#include "plugin/ctx.h"
#include "plugin/failover/failover.h"

#include <errno.h>
#include <string.h>

void ha_heartbeat_send(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	struct ha_control *k = &b->failover->ctl[r->index];
	int err = ha_board_write(b, r, &ha_bundle_staged_board(b)->heartbeat[r->index].still,
				 ha_lag_heartbeat(b, r));

	if (err && err != -EAGAIN) {
		ha_rail_failed(b, r, NULL, err);
		return;
	}
	k->heartbeat.mark = r->sq_posted;
	/* No room: what is in the queue shows as much; one in so many asks for a completion. */
	if (err)
		k->heartbeat.mark -= b->is_send ? HA_CTS_SIGNAL : ((struct ha_recv *)b)->cts_signal;
	k->heartbeat.sent_at = now;
}

bool ha_heartbeat_same_path(const struct ha_rail *a, const struct ha_rail *b)
{
	return a->dev == b->dev && a->setup.peer.qp.lid == b->setup.peer.qp.lid &&
	       !memcmp(a->setup.peer.qp.gid, b->setup.peer.qp.gid, sizeof(a->setup.peer.qp.gid));
}

bool ha_heartbeat_path_moves(const struct ha_rail *r, const struct ha_ctx *ctx, uint64_t since)
{
	const struct ha_bundle *b;

	LIST_FOREACH(b, &ctx->bundles, entry)
		for (unsigned i = 0; i < b->nrails; i++) {
			const struct ha_heartbeat_watch *k = &b->failover->ctl[i].heartbeat;

			if (k->watched && k->alive_since >= since &&
			    ha_heartbeat_same_path(&b->rail[i], r))
				return true;
		}
	return false;
}

void ha_heartbeat_silence(struct ha_bundle *b, struct ha_rail *r)
{
	struct ha_bundle *other;

	LIST_FOREACH(other, &b->ctx->bundles, entry)
		for (unsigned i = 0; i < other->nrails; i++) {
			struct ha_rail *o = &other->rail[i];
			struct ha_heartbeat_watch *k = &other->failover->ctl[i].heartbeat;

			/* Not its state: an owner that is inside may be changing that. */
			if (o == r || !k->watched || !ha_heartbeat_same_path(o, r))
				continue;
			k->doubted = true;
			k->look_at = 0;
			ha_due_now(other);
		}
}
