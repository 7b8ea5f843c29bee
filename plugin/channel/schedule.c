/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/channel/schedule.h"

#include "base/loop.h"
#include "plugin/bundle.h"
#include "plugin/ctx.h"

#include <stddef.h>

void ha_round_init(struct ha_round *round)
{
	*round = (struct ha_round) { .tidy_at = UINT64_MAX };
	TAILQ_INIT(&round->seen);
	TAILQ_INIT(&round->slow);
	TAILQ_INIT(&round->tidy);
}

static uint64_t find_soonest(const struct ha_schedule *s)
{
	uint64_t at = s->due < s->look_due ? s->due : s->look_due;

	return s->again_at < at ? s->again_at : at;
}

static void wait_until(struct ha_bundle *b, uint64_t at)
{
	b->schedule->place = HA_PLACE_WAITS;
	ha_order_add(&b->ctx->round.first, &b->schedule->order, at);
}

/* Its time may have come nearer. What is seen waits again when the round ends. */
static void wait_less(struct ha_bundle *b, uint64_t at)
{
	struct ha_schedule *s = b->schedule;

	if (s->place != HA_PLACE_WAITS || at >= s->order.at)
		return;
	ha_order_remove(&b->ctx->round.first, &s->order);
	wait_until(b, at);
}

void ha_schedule_join(struct ha_bundle *b)
{
	b->schedule->bundle = b;
	b->schedule->again_at = UINT64_MAX;
	b->ctx->round.connections++;
	wait_until(b, find_soonest(b->schedule));
}

void ha_schedule_leave(struct ha_bundle *b)
{
	struct ha_schedule *s = b->schedule;
	struct ha_round *round = &b->ctx->round;

	if (s->place == HA_PLACE_WAITS)
		ha_order_remove(&round->first, &s->order);
	if (s->place == HA_PLACE_SEEN)
		TAILQ_REMOVE(&round->seen, s, seen_entry);
	if (s->slow)
		TAILQ_REMOVE(&round->slow, s, slow_entry);
	if (s->tidies)
		TAILQ_REMOVE(&round->tidy, s, tidy_entry);
	s->slow = s->tidies = false;
	ha_schedule_urgent(b, 0);
	s->place = HA_PLACE_NONE;
	round->connections--;
}

struct ha_bundle *ha_schedule_take(struct ha_ctx *ctx, uint64_t now)
{
	struct ha_order_node *first = ctx->round.first;
	struct ha_schedule *s;

	if (!first || first->at > now)
		return NULL;
	s = (struct ha_schedule *)((char *)first - offsetof(struct ha_schedule, order));
	ha_order_remove(&ctx->round.first, first);
	s->again_at = UINT64_MAX;
	s->place = HA_PLACE_SEEN;
	TAILQ_INSERT_TAIL(&ctx->round.seen, s, seen_entry);
	return s->bundle;
}

void ha_schedule_called(struct ha_bundle *b)
{
	wait_less(b, 0);
}

uint64_t ha_schedule_end(struct ha_ctx *ctx)
{
	struct ha_schedule *s;

	while ((s = TAILQ_FIRST(&ctx->round.seen)) != NULL) {
		TAILQ_REMOVE(&ctx->round.seen, s, seen_entry);
		wait_until(s->bundle, find_soonest(s));
	}
	return ctx->round.first ? ctx->round.first->at : UINT64_MAX;
}

void ha_schedule_urgent(struct ha_bundle *b, uint64_t until)
{
	struct ha_round *round = &b->ctx->round;

	if (until && !b->schedule->urgent_until)
		round->urgent_ends++;
	if (!until && b->schedule->urgent_until)
		round->urgent_ends--;
	b->schedule->urgent_until = until;
	if (!round->urgent_ends)
		round->urgent_until = 0;
	else if (until > round->urgent_until)
		round->urgent_until = until;
}

void ha_schedule_tidy(struct ha_bundle *b, uint64_t at)
{
	struct ha_round *round = &b->ctx->round;

	if (b->schedule->place == HA_PLACE_NONE)
		return;
	if (!b->schedule->tidies)
		TAILQ_INSERT_TAIL(&round->tidy, b->schedule, tidy_entry);
	b->schedule->tidies = true;
	if (at < round->tidy_at)
		round->tidy_at = at;
}

void ha_due(struct ha_bundle *b, uint64_t at)
{
	if (at >= b->schedule->due)
		return;
	b->schedule->due = at;
	wait_less(b, at);
}

void ha_due_now(struct ha_bundle *b)
{
	b->schedule->due = b->ctx->round.due = 0;
	wait_less(b, 0);
}

void ha_bundle_drive_soon(struct ha_bundle *b)
{
	/* Release: what the owner saw is there for the driver that finds the bit, and the bit for
	 * who finds the call. */
	if (atomic_fetch_or_explicit(&b->attention, HA_ATTN_DRIVE, memory_order_release) &
	    HA_ATTN_DRIVE)
		return;
	/* Who called first has woken the driver, which has not begun its round since: it looks for
	 * bits only after it has taken the call. */
	if (!atomic_exchange_explicit(&b->ctx->round.called, true, memory_order_acq_rel))
		ha_loop_wake(&b->ctx->loop);
}
