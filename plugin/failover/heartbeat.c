/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * heartbeat.c - does a rail that is up still answer?
 *
 * Nothing of this is on the path of a message: the driver looks at each rail every
 * HA_NCCL_HEARTBEAT_MS, and LOOKS times in a soft time-out while there is work on it, and compares
 * the send queue's counts with those of the look before. At each heartbeat a rail gets a word of
 * eight bytes to write, unless the last one is still out; the peer's NIC acknowledges it, so the
 * answer needs nobody's processor there, and a peer that sleeps is no dead path. A rail that
 * carries data may stand still for the soft time-out (rto.h), one that only waits misses three
 * heartbeats. When one connection's time-out proves a path silent, at this end or at the other,
 * those of this process that share the path and have been still for half as long themselves wait no
 * longer: one that came to the dead path later would cost the job its own time-out after the first
 * one's. Any that moves, or has nothing outstanding, is evidence that the path is sound, and stays.
 * While everything moves a look is no more than reading those counts, and the owner is not kept out
 * for it (ha_heartbeat_moves): with many connections, steps at each look would take the processor
 * from the job a thousand times a second. A rail whose share has just been taken from it, because
 * it is slow, does not only wait: what it was given is in front of the heartbeat.
 */
#include "plugin/channel/board.h"
#include "plugin/connect/ctx.h"
#include "plugin/device/device.h"
#include "plugin/failover/failover.h"

#include "base/clock.h"

#include <errno.h>
#include <string.h>

#define MISSES 3
#define DOUBTED_MISSES 2 /* of a rail whose path another connection has proved silent, */
#define DOUBTED_PART                                                                              \
	2 /* and which has seen nothing itself for this part of the time-out: any has a heartbeat \
	     outstanding after a quarter of it */
#define MISSING                                                                                   \
	2 /* heartbeats, and for this part of the time-out nothing has moved: what will be needed \
	     without the rail is prepared */
#define MISSING_PART 4
#define LOOKS                                                                                  \
	100 /* so that the time-out ends within 2 % of it, or a heartbeat later when work came \
	       after a pause */

static uint64_t heartbeat_ns(const struct ha_bundle *b)
{
	return (uint64_t)b->ctx->config.heartbeat_ms * HA_NS_PER_MS;
}

static void beat(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	struct ha_control *k = &b->failover.ctl[r->index];
	int err = ha_board_write(b, r, &ha_bundle_staged_board(b)->beat[r->index].still,
				 r->sq_posted);

	if (err && err != -EAGAIN) {
		ha_rail_failed(b, r, NULL, err);
		return;
	}
	/* No room: what is in the queue tells as much; one in so many asks for a completion. */
	k->beat.mark = err ? r->sq_posted - (b->is_send ? HA_CTS_SIGNAL
							: ((struct ha_recv *)b)->cts_signal)
			   : r->sq_posted;
	k->beat.sent_at = now;
}

/* The same two ports. */
static bool same_path(const struct ha_rail *a, const struct ha_rail *b)
{
	return a->dev == b->dev && a->peer.qp.lid == b->peer.qp.lid &&
	       !memcmp(a->peer.qp.gid, b->peer.qp.gid, sizeof(a->peer.qp.gid));
}

void ha_heartbeat_silence(struct ha_bundle *b, struct ha_rail *r)
{
	for (struct ha_bundle *other = b->ctx->bundles; other; other = other->next)
		for (unsigned i = 0; i < other->nrails; i++) {
			struct ha_rail *o = &other->rail[i];

			if (o == r || o->state != HA_RAIL_UP || !same_path(o, r))
				continue;
			other->failover.ctl[i].beat.doubted = true;
			other->failover.ctl[i].beat.look_at = 0;
			ha_due_now(other);
		}
}

/* Since when nothing has come that was asked for. A sender's data asks for its end by itself. */
static uint64_t still_since(const struct ha_control *k, bool data_asks)
{
	uint64_t asked = data_asks ? 0 : k->beat.sent_at;

	return k->beat.still_since > asked ? k->beat.still_since : asked;
}

/* Only what was asked for can be missing: a clear-to-send tells nothing of its end, and this
 * process may have been stopped for a while. */
static void judge(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	struct ha_control *k = &b->failover.ctl[r->index];
	bool data =
		b->balance.weight[r->index] || (b->balance.moves && r->index < b->balance.ndata);
	uint64_t limit = data ? b->failover.rto.rto_ns : MISSES * heartbeat_ns(b);
	uint64_t doubted = b->failover.rto.rto_ns / DOUBTED_PART;
	uint64_t still = now - still_since(k, b->is_send && data);

	if (!(b->terms.flags & HA_FLAG_FAILOVER))
		return; /* without failover the queue pair alone decides */
	if (!k->beat.sent_at)
		return;
	if (still >= limit &&
	    k->beat.misses >=
		    MISSES) { /* looks count, not time alone: who was stopped has not looked */
		ha_rail_suspect(b, r, data ? HA_CAUSE_TIMEOUT : HA_CAUSE_HEARTBEAT,
				"nothing moves for %.0f ms; %u work requests are outstanding",
				(double)still / 1e6, r->sq_posted - r->sq_retired);
		if (data)
			ha_heartbeat_silence(b, r);
	} else if (k->beat.doubted && still >= doubted && k->beat.misses >= DOUBTED_MISSES) {
		ha_rail_suspect(b, r, HA_CAUSE_SIBLING,
				"another connection has proved its path silent, and nothing moves "
				"here for %.0f ms; "
				"%u work requests are outstanding",
				(double)still / 1e6, r->sq_posted - r->sq_retired);
	}
}

bool ha_heartbeat_missing(const struct ha_bundle *b)
{
	for (unsigned i = 0; i < b->nrails; i++) {
		const struct ha_control *k = &b->failover.ctl[i];

		if (b->rail[i].state == HA_RAIL_UP && b->balance.weight[i] && k->beat.sent_at &&
		    k->beat.misses >= MISSING &&
		    k->beat.looked_at - k->beat.still_since >=
			    b->failover.rto.rto_ns / MISSING_PART)
			return true;
	}
	return false;
}

/* Since when nothing moves; true: it stands still with work outstanding. What was posted at any
 * time since a look long ago at an idle rail has only just been seen. */
static bool look(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	struct ha_control *k = &b->failover.ctl[r->index];
	uint64_t soon = b->failover.rto.rto_ns / LOOKS;
	uint32_t retired = __atomic_load_n(&r->sq_retired, __ATOMIC_RELAXED);
	bool moved = retired != k->beat.retired_seen,
	     idle = __atomic_load_n(&r->sq_posted, __ATOMIC_RELAXED) == retired;

	/* A path on which something was answered a moment ago is sound, whatever others say. */
	if (moved || idle)
		k->beat.doubted = false;
	if (moved || idle || (k->beat.idle_seen && now - k->beat.looked_at > 2 * soon))
		k->beat.still_since = now;
	k->beat.retired_seen = retired;
	k->beat.idle_seen = idle;
	k->beat.looked_at = now;
	/* At a multiple: one wake-up for all connections. */
	k->beat.look_at = moved || !idle ? (now / soon + 1) * soon : UINT64_MAX;
	return !moved && !idle;
}

void ha_heartbeat_step(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	struct ha_control *k = &b->failover.ctl[r->index];
	uint64_t interval = heartbeat_ns(b);
	bool still;

	still = look(b, r, now);
	if (k->beat.sent_at && (int32_t)(r->sq_retired - k->beat.mark) >= 0)
		k->beat.sent_at = 0;
	if (interval > b->failover.rto.rto_ns / 4)
		interval = b->failover.rto.rto_ns / 4;
	if (now >= k->beat.at || (still && !k->beat.sent_at)) {
		if (!k->beat.sent_at) {
			k->beat.misses = 0;
			beat(b, r, now);
			k->beat.idle_seen = false; /* its own word is outstanding since now */
			if (r->index == b->balance.first)
				ha_gate_arm(b);
		} else {
			k->beat.misses++;
		}
		k->beat.at = now + interval;
	}
	if (k->beat.look_at > k->beat.at)
		k->beat.look_at = k->beat.at;
	if (k->beat.look_at > k->beat.still_since + b->failover.rto.rto_ns &&
	    now < k->beat.still_since + b->failover.rto.rto_ns)
		k->beat.look_at = k->beat.still_since + b->failover.rto.rto_ns;
	judge(b, r, now);
	k->beat.watched = r->state == HA_RAIL_UP;
	ha_due(b, k->beat.at);
	if (k->beat.watched && k->beat.look_at < b->schedule.look_due)
		b->schedule.look_due = k->beat.look_at;
}

bool ha_heartbeat_moves(struct ha_bundle *b, uint64_t now)
{
	if (!b->schedule.calm || ha_board_has_message(b))
		return false;
	b->schedule.look_due = UINT64_MAX;
	for (unsigned i = 0; i < b->nrails; i++) {
		struct ha_beat_watch *k = &b->failover.ctl[i].beat;

		if (!k->watched)
			continue;
		if (k->doubted)
			return false;
		if (k->look_at <= now && look(b, &b->rail[i], now)) {
			k->look_at = now; /* the step polls it before it judges */
			return false;
		}
		if (k->look_at < b->schedule.look_due)
			b->schedule.look_due = k->look_at;
	}
	return true;
}
