/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * beat.c - does a rail that is up still answer?
 *
 * Nothing of this is on the path of a message: the driver looks at each rail every HA_NCCL_HEARTBEAT_MS and compares the
 * send queue's counts with those of the look before. At each look a rail gets a word of eight bytes to write, unless the
 * last one is still out; the peer's NIC acknowledges it, so the answer needs nobody's processor there, and a peer that sleeps
 * is no dead path. A rail that carries data may stand still for the soft time-out (rto.h), one that only waits misses three beats.
 * A rail whose share has just been taken from it, because it is slow, does not only wait: what it was given is in front of the beat.
 */
#include "core/ctx.h"
#include "core/device.h"
#include "core/failover.h"

#include "base/clock.h"

#include <errno.h>

#define MISSES 3

static uint64_t heartbeat_ns(const struct ha_bundle *b)
{
	return (uint64_t)b->ctx->config.heartbeat_ms * HA_NS_PER_MS;
}

static void beat(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	struct ha_control *k = &b->ctl[r->index];
	int err = ha_board_write(b, r, &ha_bundle_staged_board(b)->beat[r->index].still, r->sq_posted);

	if (err && err != -EAGAIN) {
		ha_rail_failed(b, r, NULL, err);
		return;
	}
	/* No room: what is in the queue tells as much; one in so many asks for a completion. */
	k->beat_mark = err ? r->sq_posted - (b->is_send ? HA_CTS_SIGNAL : ((struct ha_recv *)b)->cts_signal) : r->sq_posted;
	k->beat_sent_at = now;
}

/* Only what was asked for can be missing: a clear-to-send tells nothing of its end, and this process may have been stopped
 * for a while. */
static void judge(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	struct ha_control *k = &b->ctl[r->index];
	bool data = b->weight[r->index] || (b->moves && r->index < b->ndata);
	uint64_t patience = data ? b->rto.rto_ns : MISSES * heartbeat_ns(b);
	uint64_t still = now - (k->still_since > k->beat_sent_at ? k->still_since : k->beat_sent_at);

	if (!(b->flags & HA_FLAG_LIVES))
		return; /* without failover the queue pair alone decides */
	if (!k->beat_sent_at || still < patience || k->misses < MISSES)
		return; /* looks count, not time alone: who was stopped has not looked */
	ha_rail_suspect(b, r, data ? HA_CAUSE_TIMEOUT : HA_CAUSE_HEARTBEAT,
			"nothing moves for %.0f ms; %u work requests are outstanding", (double)still / 1e6,
			r->sq_posted - r->sq_retired);
}

void ha_beat_step(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	struct ha_control *k = &b->ctl[r->index];
	uint64_t interval = heartbeat_ns(b);

	if (!b->is_send)
		ha_life_pings(b, r, now);
	if (r->state != HA_RAIL_UP)
		return;
	if (r->sq_retired != k->retired_seen || r->sq_posted == r->sq_retired) {
		k->retired_seen = r->sq_retired;
		k->still_since = now;
	}
	if (k->beat_sent_at && (int32_t)(r->sq_retired - k->beat_mark) >= 0)
		k->beat_sent_at = 0;
	if (interval > b->rto.rto_ns / 4)
		interval = b->rto.rto_ns / 4;
	if (now >= k->beat_at) {
		if (!k->beat_sent_at) {
			k->misses = 0;
			beat(b, r, now);
			if (r->index == b->first)
				ha_gate_arm(b);
		} else {
			k->misses++;
		}
		k->beat_at = now + interval;
	}
	judge(b, r, now);
	ha_due(b, k->beat_at);
}
