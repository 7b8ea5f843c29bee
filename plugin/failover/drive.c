/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * drive.c - the driver's rounds: which connection makes a step now, what a step is, what can wait
 */
#include "plugin/failover/failover.h"

#include "base/clock.h"
#include "plugin/balance/share.h"
#include "plugin/channel/board.h"
#include "plugin/channel/peer.h"
#include "plugin/ctx.h"
#include "plugin/report/journal.h"
#include "plugin/transfer/guard.h"

/* How soon a bundle is looked at again whose owner was inside, ns. */
#define AGAIN_NS 20000u
/* Bundles that one barrier serves; their owners are kept out until it is their turn. */
#define TAKEN_MAX 32
/* What is not urgent waits so long at most for what is, and ha_crowd_ns(): reports of many
 * connections would take longer than their failover does. */
#define URGENT_NS (20 * HA_NS_PER_MS)
/* And so long after the last of it: the peer's ends of the same connections, whose work may go on,
 * use the same processors in small installations. */
#define AFTER_NS (4 * HA_NS_PER_MS)
#define TIDIED_MAX 4 /* rails whose objects one round destroys */

/* Everything that was lost with a rail has found another carrier. */
static void report_failed_over(struct ha_bundle *b)
{
	for (unsigned i = 0; i < b->nrails; i++) {
		struct ha_control *k = &b->failover->ctl[i];

		if (!k->compare.unreported || b->failover->parked || !b->active)
			continue;
		k->compare.unreported = false;
		ha_journal_event(b->ctx, &(struct ha_event) {
						 .kind = HA_EVENT_FAILED_OVER,
						 .cause = k->compare.cause,
						 .bundle = b,
						 .rail = &b->rail[i],
						 .requests = k->compare.replayed_requests,
						 .bytes = k->compare.replayed_bytes,
						 .stall_ns = ha_clock_now(b->ctx->clock) -
							     b->rail[i].loss.lost_at,
						 .registration_ns = k->compare.registration_ns });
	}
}

static void rail_step(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	switch (r->state) {
	case HA_RAIL_UP:
		if (!b->is_send)
			ha_incarnation_pings(b, r, now);
		if (r->state == HA_RAIL_UP)
			ha_heartbeat_step(b, r, now);
		break;
	case HA_RAIL_FENCING:
	case HA_RAIL_FENCED:
		b->failover->ctl[r->index].heartbeat.watched = false;
		ha_fence_step(b, r, now);
		break;
	case HA_RAIL_DOWN:
	case HA_RAIL_JOIN:
	case HA_RAIL_PROBE:
		b->failover->ctl[r->index].heartbeat.watched = false;
		ha_incarnation_step(b, r, now);
		break;
	}
}

/*
 * The owner polls what carries data. The driver looks when it is time to judge, when work is due
 * and room is short, and where nobody else may: not in every step, since a look at an empty queue
 * costs much on some devices.
 */
static bool poll_wanted(const struct ha_bundle *b, const struct ha_rail *r, uint64_t now)
{
	if (r->state == HA_RAIL_JOIN || r->state == HA_RAIL_PROBE)
		return true;
	return r->state == HA_RAIL_UP && (now >= b->failover->ctl[r->index].heartbeat.look_at ||
					  ha_rail_room(r) < r->sq_depth / 2 || b->peer_closed ||
					  b->abort->error || !b->ctx->loop.threaded);
}

/* As long as a rail is being fenced, or what it carried is not on its way again, but not for
 * ever. */
static uint64_t urgent_until(const struct ha_bundle *b)
{
	uint64_t until = 0;

	for (unsigned i = 0; i < b->nrails; i++) {
		const struct ha_control *k = &b->failover->ctl[i];
		const struct ha_rail *r = &b->rail[i];

		if ((r->state == HA_RAIL_FENCING || r->state == HA_RAIL_FENCED ||
		     k->compare.unreported) &&
		    k->working && r->loss.cause != HA_CAUSE_SURPLUS &&
		    r->loss.suspected_at + URGENT_NS > until)
			until = r->loss.suspected_at + URGENT_NS;
	}
	return until;
}

/* Every step that will be needed has its own time in `due`, or comes with HA_ATTN_DRIVE. */
static bool is_calm(const struct ha_bundle *b)
{
	return !b->error && !b->abort->error && !b->peer_closed && !b->failover->parked &&
	       !b->schedule->urgent_until && !(b->terms.flags & HA_FLAG_ACK_MEMORY) &&
	       b->ctx->loop.threaded;
}

/* A share that was taken or given back is said with the heartbeat. */
static void send_news(struct ha_bundle *b, uint64_t now)
{
	for (unsigned left = b->balance.lag.news; left; left &= left - 1) {
		struct ha_heartbeat_watch *heartbeat =
			&b->failover->ctl[__builtin_ctz(left)].heartbeat;

		if (heartbeat->at > now)
			heartbeat->at = now;
	}
	b->balance.lag.news = 0;
}

static void poll_rails(struct ha_bundle *b, uint64_t now)
{
	for (unsigned i = 0; i < b->nrails; i++)
		if (poll_wanted(b, &b->rail[i], now))
			ha_rail_poll(b, &b->rail[i]);
}

/* The keys of rails that come up, and the requests of those that went down, over the others. */
static void carry_on(struct ha_bundle *b, uint64_t now)
{
	for (unsigned i = 0; i < b->nrails; i++)
		ha_keys_step(b, &b->rail[i]);
	ha_replay(b);
	report_failed_over(b);
	if (!b->peer_closed && !b->abort->error && !b->abort->held)
		ha_no_path_step(b, now);
}

static void announce_windows(struct ha_bundle *b)
{
	for (unsigned i = 0; i < b->nrails; i++)
		ha_windows_step(b, &b->rail[i]);
}

/* The bundle is taken. */
static void drive_bundle(struct ha_bundle *b)
{
	uint64_t now;

	/* Acquire: pairs with ha_bundle_drive_soon. */
	atomic_fetch_and_explicit(&b->attention, ~(uint32_t)HA_ATTN_DRIVE, memory_order_acquire);
	b->schedule->due = b->schedule->look_due = UINT64_MAX;
	ha_socket_take(b);
	ha_board_read(b, ha_failover_message);
	ha_device_news_take(b);
	if (b->balance.speed_changed)
		ha_share_again(b);
	b->balance.speed_changed = false;
	now = ha_clock_now(b->ctx->clock);
	poll_rails(b, now);
	now = ha_clock_now(b->ctx->clock); /* not before any suspicion */
	ha_held_abort_step(b, now);
	if (b->abort->due)
		ha_messages_send(b, now);
	if (b->abort->error)
		ha_abort_step(b);
	ha_spares_step(b, now);
	for (unsigned i = 0; i < b->nrails; i++)
		rail_step(b, &b->rail[i], now);
	ha_lag_step(b, now);
	send_news(b, now);
	if (b->terms.flags & HA_FLAG_FAILOVER && !b->error)
		carry_on(b, now);
	if (b->terms.flags & HA_FLAG_ONE_SIDED && !b->abort->error)
		announce_windows(b);
	if (b->peer_closed && !b->abort->error)
		ha_peer_closed_step(b, now);
	ha_bundle_delivery(b);
	if (b->abort->error)
		ha_abort_step(b);
	ha_messages_send(b, now);
	ha_schedule_urgent(b, urgent_until(b));
	b->schedule->calm = is_calm(b);
	/* What the steps themselves asked for is due at once. */
	if (atomic_load_explicit(&b->attention, memory_order_relaxed) & HA_ATTN_DRIVE)
		b->schedule->due = now;
}

static bool is_slow(const struct ha_control *k)
{
	return k->slow != HA_SLOW_NONE && k->slow != HA_SLOW_DONE;
}

/* Nobody else looks at rails that carry nothing: what is slow there need not keep the owner out. A
 * registration of the program may be under way, and what is slow waits for it; the driver does not.
 * False: nothing of that is left. */
static bool slow_steps(struct ha_bundle *b)
{
	bool left = false;

	for (unsigned i = 0; i < b->nrails; i++) {
		struct ha_control *k = &b->failover->ctl[i];

		if (is_slow(k) && ha_incarnation_slow(b, &b->rail[i]))
			ha_due(b, 0);
		if (k->keys.stage == HA_KEYS_WANTED)
			ha_due(b, ha_keys_register(b, &b->rail[i])
					  ? 0
					  : ha_clock_now(b->ctx->clock) + AGAIN_NS);
		left = left || is_slow(k) || k->keys.stage == HA_KEYS_WANTED;
		if (k->fence.tidy_at && k->slow == HA_SLOW_NONE)
			ha_schedule_tidy(b, k->fence.tidy_at);
	}
	return left;
}

/* What this round has seen, and what was not through in the ones before. */
static void slow_steps_of_all(struct ha_ctx *ctx)
{
	struct ha_schedule *s, *next;

	TAILQ_FOREACH(s, &ctx->round.seen, seen_entry) {
		if (!s->slow)
			TAILQ_INSERT_TAIL(&ctx->round.slow, s, slow_entry);
		s->slow = true;
	}
	for (s = TAILQ_FIRST(&ctx->round.slow); s; s = next) {
		next = TAILQ_NEXT(s, slow_entry);
		s->slow = slow_steps(s->bundle);
		if (!s->slow)
			TAILQ_REMOVE(&ctx->round.slow, s, slow_entry);
	}
}

static bool is_due(struct ha_bundle *b, uint64_t now)
{
	if (b->schedule->due <= now ||
	    atomic_load_explicit(&b->attention, memory_order_relaxed) & HA_ATTN_DRIVE)
		return true;
	return b->schedule->look_due <= now && !ha_heartbeat_moves(b, now);
}

/* The next bundles that are due, claimed by one barrier; how many. */
static unsigned claim_due(struct ha_ctx *ctx, struct ha_bundle *claimed[TAKEN_MAX])
{
	uint64_t now = ha_clock_now(ctx->clock);
	struct ha_bundle *b;
	unsigned n = 0;

	while (n < TAKEN_MAX && (b = ha_schedule_take(ctx, now)) != NULL)
		if (is_due(b, now)) {
			ha_bundle_claim(b);
			claimed[n++] = b;
		}
	if (n)
		ha_guard_barrier(ctx);
	return n;
}

/* Every bundle that is due makes a step; those whose owner was inside are tried again soon. */
static void drive_all(struct ha_ctx *ctx)
{
	struct ha_bundle *claimed[TAKEN_MAX];
	unsigned n;

	while ((n = claim_due(ctx, claimed)) > 0)
		for (unsigned i = 0; i < n; i++) {
			if (!ha_bundle_claimed(claimed[i])) {
				claimed[i]->schedule->again_at =
					ha_clock_now(ctx->clock) + AGAIN_NS;
				continue;
			}
			drive_bundle(claimed[i]);
			ha_bundle_give(claimed[i]);
		}
}

/* The owners set bits, and call; which of the connections they were nobody has noted. */
static void find_called(struct ha_ctx *ctx)
{
	struct ha_bundle *b;

	LIST_FOREACH(b, &ctx->bundles, entry)
		if (atomic_load_explicit(&b->attention, memory_order_relaxed) & HA_ATTN_DRIVE)
			ha_schedule_called(b);
}

/* Its rails' objects go, `left` of them at most. When others do, UINT64_MAX: none. */
static uint64_t tidy_bundle(struct ha_bundle *b, uint64_t now, unsigned *left)
{
	uint64_t next = UINT64_MAX, at;

	for (unsigned i = 0; i < b->nrails; i++) {
		struct ha_control *k = &b->failover->ctl[i];

		if (!k->fence.tidy_at || k->slow != HA_SLOW_NONE)
			continue;
		at = k->fence.tidy_at;
		if (now >= at && *left) {
			--*left;
			/* otherwise a registration is under way */
			at = ha_incarnation_tidy(b, &b->rail[i]) ? UINT64_MAX : now + HA_NS_PER_MS;
		}
		next = at < next ? at : next;
	}
	return next;
}

/* Objects of incarnations that are over go when nobody waits for anything else; some in each round.
 * Returns when there are more. */
static uint64_t tidy_all(struct ha_ctx *ctx, uint64_t now)
{
	struct ha_round *round = &ctx->round;
	struct ha_schedule *s, *after;
	unsigned left = TIDIED_MAX;
	uint64_t next = UINT64_MAX, at;

	if (now < round->tidy_at)
		return round->tidy_at;
	for (s = TAILQ_FIRST(&round->tidy); s && next > now; s = after) {
		after = TAILQ_NEXT(s, tidy_entry);
		at = tidy_bundle(s->bundle, now, &left);
		next = at < next ? at : next;
		if (at != UINT64_MAX)
			continue;
		/* None is left, or what is slow comes first, which lists it again. */
		s->tidies = false;
		TAILQ_REMOVE(&round->tidy, s, tidy_entry);
	}
	round->tidy_at = next;
	return next;
}

/* What may wait, if nothing urgent is left; when the next of it is due, or `next`. */
static uint64_t look_at_rest(struct ha_ctx *ctx, uint64_t now, uint64_t next)
{
	struct ha_round *round = &ctx->round;
	uint64_t urgent = round->urgent_until, tidy;

	if (urgent)
		urgent += ha_crowd_ns(round->connections);
	round->urgent = now < urgent;
	if (round->urgent) {
		round->calm_at = now + AFTER_NS;
		return urgent < next ? urgent : next;
	}
	if (now < round->calm_at)
		return round->calm_at < next ? round->calm_at : next;
	ha_journal_release(ctx);
	tidy = tidy_all(ctx, now);
	return tidy < next ? tidy : next;
}

/* Everything that is due; when something will be again. */
static uint64_t look_at_due(struct ha_ctx *ctx)
{
	drive_all(ctx);
	/* Fences, and what the peers must learn of them, first: all connections of a lost device
	 * wait for that. */
	ha_peers_send(ctx);
	slow_steps_of_all(ctx);
	return look_at_rest(ctx, ha_clock_now(ctx->clock), ha_schedule_end(ctx));
}

uint64_t ha_failover_round(struct ha_ctx *ctx)
{
	/* Acquire: pairs with ha_bundle_drive_soon. A call that comes from here on is for the next
	 * round. */
	bool called = atomic_exchange_explicit(&ctx->round.called, false, memory_order_acquire);

	if (called)
		find_called(ctx);
	if (called || ha_clock_now(ctx->clock) >= ctx->round.due)
		ctx->round.due = look_at_due(ctx);
	return ctx->round.due;
}
