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
 * heartbeats.
 * When one connection's time-out proves a path silent, at this end or at the other, those of this
 * process that share the path and have been still for half as long themselves wait no longer: one
 * that came to the dead path later would cost the job its own time-out after the first one's. Any
 * that moves, or has nothing outstanding, is evidence that the path is sound, and stays. While
 * everything moves a look is no more than reading those counts, and the owner is not kept out for
 * it (ha_heartbeat_moves): with many connections, steps at each look would take the processor from
 * the job a thousand times a second. A rail whose share has just been taken from it, because it is
 * slow, does not only wait: what it was given is in front of the heartbeat.
 */
#include "plugin/channel/board.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "plugin/failover/failover.h"

#include "base/clock.h"

#include <errno.h>
#include <string.h>

#define ROUNDS_OF_MANY 16 /* of the driver between two heartbeats of many connections */
#define MISSES 3
#define DOUBTED_MISSES 2 /* of a rail whose path another connection has proved silent */
/* if it has itself seen nothing for this part of the time-out: any has a heartbeat
 * outstanding after a quarter of it */
#define DOUBTED_PART 2
/* heartbeats, and for this part of the time-out nothing has moved: what will be needed without
 * the rail is prepared */
#define MISSING 2
#define MISSING_PART 4
/* so that the time-out ends within 2 % of it, or a heartbeat later when work came after a pause */
#define LOOKS 100
#define BUSY_NS HA_NS_PER_S /* the rail of a job that has just computed will be busy again */
#define CLOSE_LOOKS_MAX 64  /* looks that come often, at a peer that does not answer on any rail */
/* and so often until a rail that is given long for its sign has had its time */
#define UNKNOWN_LOOK_NS (HA_SILENCE_UNKNOWN_NS / 8)
#define UNKNOWN_LOOKS_NS (HA_SILENCE_UNKNOWN_NS + 2 * UNKNOWN_LOOK_NS)

static uint64_t heartbeat_ns(const struct ha_bundle *b)
{
	return (uint64_t)b->ctx->config.heartbeat_ms * HA_NS_PER_MS;
}

/* Between two looks at a rail that is watched closely: two in the least time after which a sign is
 * asked for. */
static uint64_t close_look_ns(const struct ha_bundle *b)
{
	return (uint64_t)b->ctx->config.silence_ms * HA_NS_PER_MS / 2;
}

/* Since when nothing has come that was asked for. A sender's data asks for its end by itself. */
static uint64_t still_since(const struct ha_control *k, bool data_asks)
{
	uint64_t asked = data_asks ? 0 : k->heartbeat.sent_at;

	return k->heartbeat.still_since > asked ? k->heartbeat.still_since : asked;
}

/* Only what was asked for can be missing: a clear-to-send asks for no completion, and this
 * process may have been stopped for a while. */
static void judge_rail(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	struct ha_control *k = &b->failover->ctl[r->index];
	bool data = b->balance.weight[r->index] || ha_lag_rests(b, r) ||
		    (b->balance.moves && r->index < b->balance.ndata);
	uint64_t limit = data ? b->failover->rto.rto_ns : MISSES * heartbeat_ns(b);
	uint64_t doubted = b->failover->rto.rto_ns / DOUBTED_PART;
	uint64_t still = now - still_since(k, b->is_send && data);

	if (!(b->terms.flags & HA_FLAG_FAILOVER))
		return; /* without failover the queue pair alone decides */
	if (!k->heartbeat.sent_at)
		return;
	/* looks count, not time alone: who was stopped has not looked */
	if (still >= limit && k->heartbeat.misses >= MISSES) {
		ha_rail_suspect(b, r, data ? HA_CAUSE_TIMEOUT : HA_CAUSE_HEARTBEAT,
				"nothing moves for %.0f ms; %u work requests are outstanding",
				(double)still / 1e6, r->sq_posted - r->sq_retired);
		if (data)
			ha_heartbeat_silence(b, r);
	} else if (k->heartbeat.doubted && still >= doubted &&
		   k->heartbeat.misses >= DOUBTED_MISSES) {
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
		const struct ha_control *k = &b->failover->ctl[i];

		if (b->rail[i].state == HA_RAIL_UP && k->sign.stage == HA_SIGN_ANSWERED)
			return true;
		if (b->rail[i].state == HA_RAIL_UP && b->balance.weight[i] &&
		    k->heartbeat.sent_at && k->heartbeat.misses >= MISSING &&
		    k->heartbeat.looked_at - k->heartbeat.still_since >=
			    b->failover->rto.rto_ns / MISSING_PART)
			return true;
	}
	return false;
}

/* When the next look is due; at a multiple: one wake-up for all connections. A rail that was busy a
 * moment ago is idle for a moment. */
static uint64_t next_look(const struct ha_bundle *b, const struct ha_heartbeat_watch *k,
			  bool active, uint64_t now)
{
	uint64_t soon = b->failover->rto.rto_ns / LOOKS, close = close_look_ns(b),
		 still = now - k->still_since;

	if (k->closely && close < soon && still < CLOSE_LOOKS_MAX * close) {
		active |= now - k->busy_at < BUSY_NS;
		soon = close;
	} else if (k->closely && UNKNOWN_LOOK_NS < soon && still < UNKNOWN_LOOKS_NS) {
		soon = UNKNOWN_LOOK_NS;
	}
	return active ? (now / soon + 1) * soon : UINT64_MAX;
}

/* Since when nothing moves; true: it stands still with work outstanding. What was posted at any
 * time since a look long ago at an idle rail has only just been seen. */
static bool look_at_rail(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	struct ha_control *k = &b->failover->ctl[r->index];
	uint64_t soon = b->failover->rto.rto_ns / LOOKS;
	uint32_t retired = __atomic_load_n(&r->sq_retired, __ATOMIC_RELAXED);
	uint32_t arrived = __atomic_load_n(&r->rq_consumed, __ATOMIC_RELAXED);
	bool moved = retired != k->heartbeat.retired_seen,
	     idle = __atomic_load_n(&r->sq_posted, __ATOMIC_RELAXED) == retired;

	/* A path on which something was answered a moment ago is sound, whatever others say. */
	if (moved || idle) {
		k->heartbeat.doubted = false;
		ha_sign_given(b, r, k->heartbeat.still_since, now);
	}
	if (moved && (!k->heartbeat.sent_at || retired - k->heartbeat.retired_seen > 1)) {
		k->heartbeat.busy_at = now;
		ha_silence_moved(&r->dev->silence, now);
	}
	if (moved || arrived != k->heartbeat.arrived_seen)
		k->heartbeat.alive_since = k->heartbeat.looked_at;
	if (moved || idle ||
	    (k->heartbeat.idle_seen &&
	     (k->heartbeat.closely || now - k->heartbeat.looked_at > 2 * soon)))
		k->heartbeat.still_since = now;
	k->heartbeat.retired_seen = retired;
	k->heartbeat.arrived_seen = arrived;
	k->heartbeat.idle_seen = idle;
	k->heartbeat.looked_at = now;
	k->heartbeat.look_at = next_look(b, &k->heartbeat, moved || !idle, now);
	return !moved && !idle;
}

/* It has stood still for so long that something must be done. Only what was not moving at two looks
 * of those that come often is still. */
static bool is_still(const struct ha_bundle *b, const struct ha_rail *r, uint64_t now)
{
	const struct ha_control *k = &b->failover->ctl[r->index];
	uint64_t soon = b->failover->rto.rto_ns / LOOKS,
		 limit = ha_silence_limit(&r->dev->silence, now);

	return !k->heartbeat.closely || k->sign.stage != HA_SIGN_NONE || k->heartbeat.doubted ||
	       now - k->heartbeat.still_since >= (limit < soon ? limit : soon);
}

/* Not after the next heartbeat, nor after the time-out. */
static void look_in_time(const struct ha_bundle *b, struct ha_heartbeat_watch *k, uint64_t now)
{
	uint64_t end = k->still_since + b->failover->rto.rto_ns;

	if (k->look_at > k->at)
		k->look_at = k->at;
	if (k->look_at > end && now < end)
		k->look_at = end;
}

/* What the sender's heartbeat says beside that it is there. */
static void read_heartbeat(struct ha_bundle *b, const struct ha_rail *r)
{
	/* Acquire: the peer's NIC writes it; nothing else depends on it. */
	ha_lag_read(b, r,
		    __atomic_load_n(&ha_bundle_board(b)->heartbeat[r->index].still,
				    __ATOMIC_ACQUIRE));
}

/* A round of the driver costs a wake-up: many connections have their heartbeats in common rounds, a
 * little later than alone. */
static uint64_t next_heartbeat(const struct ha_bundle *b, uint64_t interval, uint64_t now)
{
	uint64_t grid = interval / ROUNDS_OF_MANY, at = now + interval;

	if (b->ctx->round.connections <= HA_CROWD_FROM || !grid)
		return at;
	return (at + grid - 1) / grid * grid;
}

void ha_heartbeat_step(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	struct ha_control *k = &b->failover->ctl[r->index];
	uint64_t interval = heartbeat_ns(b);
	bool still;

	if (!b->is_send)
		read_heartbeat(b, r);
	still = look_at_rail(b, r, now) && is_still(b, r, now);
	if (k->heartbeat.sent_at && (int32_t)(r->sq_retired - k->heartbeat.mark) >= 0)
		k->heartbeat.sent_at = 0;
	if (interval > b->failover->rto.rto_ns / 4)
		interval = b->failover->rto.rto_ns / 4;
	if (now >= k->heartbeat.at || (still && !k->heartbeat.sent_at)) {
		if (!k->heartbeat.sent_at) {
			k->heartbeat.misses = 0;
			ha_heartbeat_send(b, r, now);
			k->heartbeat.idle_seen = false; /* its own write is outstanding since now */
			if (r->index == b->balance.first)
				ha_gate_arm(b);
		} else {
			k->heartbeat.misses++;
		}
		k->heartbeat.at = next_heartbeat(b, interval, now);
	}
	look_in_time(b, &k->heartbeat, now);
	ha_board_settle(b, r);
	judge_rail(b, r, now);
	ha_answer_step(b, r, now);
	k->heartbeat.closely = ha_sign_wanted(b, r) && ha_sign_step(b, r, now);
	k->heartbeat.watched = r->state == HA_RAIL_UP;
	ha_due(b, k->heartbeat.at);
	if (k->heartbeat.watched && k->heartbeat.look_at < b->schedule->look_due)
		b->schedule->look_due = k->heartbeat.look_at;
}

void ha_heartbeat_look(struct ha_bundle *b, uint64_t now)
{
	for (unsigned i = 0; i < b->nrails; i++) {
		struct ha_heartbeat_watch *k = &b->failover->ctl[i].heartbeat;

		if (b->rail[i].state == HA_RAIL_UP)
			k->at = k->look_at = k->busy_at = now;
	}
	ha_due(b, now);
}

bool ha_heartbeat_moves(struct ha_bundle *b, uint64_t now)
{
	if (!b->schedule->calm || ha_board_has_message(b))
		return false;
	b->schedule->look_due = UINT64_MAX;
	for (unsigned i = 0; i < b->nrails; i++) {
		struct ha_heartbeat_watch *k = &b->failover->ctl[i].heartbeat;

		if (!k->watched)
			continue;
		if (k->doubted) {
			b->schedule->look_due = now;
			return false;
		}
		if (k->look_at <= now && look_at_rail(b, &b->rail[i], now) &&
		    is_still(b, &b->rail[i], now)) {
			k->look_at = now; /* the step polls it before it judges, and may have to */
			b->schedule->look_due = now; /* wait until its owner is out */
			return false;
		}
		if (k->look_at < b->schedule->look_due)
			b->schedule->look_due = k->look_at;
	}
	return true;
}
