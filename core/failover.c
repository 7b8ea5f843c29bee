/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * failover.c - the driver of the rails' lives: what happened, what it means for each rail, when to look again
 *
 * Every decision about a rail of an epoch is taken from that rail's state and from messages that name the epoch, so order,
 * carrier and repetition of messages do not matter (model/README.md has the tables that this follows).
 */
#include "core/failover.h"

#include "base/clock.h"
#include "base/log.h"
#include "core/ctx.h"
#include "core/device.h"
#include "core/guard.h"
#include "core/journal.h"
#include "core/life.h"
#include "core/mutation.h"
#include "core/peer.h"
#include "core/policy.h"
#include "core/stream.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* How soon a bundle is looked at again whose owner was inside, ns. */
#define AGAIN_NS 20000u
/* Bundles that one barrier serves; their owners are kept out until it is their turn. */
#define TAKEN_MAX 32
/* What is not urgent waits so long at most for what is. */
#define URGENT_NS (20 * HA_NS_PER_MS)
#define TIDIED_MAX 4 /* rails whose objects one round destroys */

void ha_due(struct ha_bundle *b, uint64_t at)
{
	if (at < b->due)
		b->due = at;
}

void ha_due_now(struct ha_bundle *b)
{
	b->due = b->ctx->due = 0;
}

void ha_bundle_drive_soon(struct ha_bundle *b)
{
	/* Release: what the owner saw is there for the driver that finds the bit, and the bit for who finds the call. */
	if (atomic_fetch_or_explicit(&b->attention, HA_ATTN_DRIVE, memory_order_release) & HA_ATTN_DRIVE)
		return;
	atomic_store_explicit(&b->ctx->called, true, memory_order_release);
	ha_service_wake(b->ctx);
}

/* ---- what the owner or the driver saw ---- */

static bool quiet(const struct ha_bundle *b)
{
	return b->farewell || b->doomed || b->error;
}

void ha_rail_suspect(struct ha_bundle *b, struct ha_rail *r, enum ha_event_cause cause, const char *fmt, ...)
{
	struct ha_control *k = &b->ctl[r->index];
	const struct ha_event suspected = { .kind = HA_EVENT_SUSPECTED, .cause = cause, .bundle = b, .rail = r };
	bool was_up = r->state == HA_RAIL_UP;
	char text[256];
	va_list ap;

	if (!was_up && r->state != HA_RAIL_JOIN && r->state != HA_RAIL_PROBE)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	r->state = HA_RAIL_FENCING;
	b->active &= (uint8_t)~(1u << r->index);
	ha_policy_update(b);
	k->cause = (uint8_t)cause;
	k->stage = HA_FENCE_START;
	k->suspected_at = ha_clock_now(b->ctx->clock);
	if (was_up && b->flags & HA_FLAG_LIVES)
		ha_journal_hold(b->ctx);
	if (was_up && !quiet(b))
		ha_journal_eventf(b->ctx, &suspected, "%s", text);
	else
		HA_TRACE(b->name, "rail %u, epoch %u: %s", r->index, r->epoch, text);
	if (!(b->flags & HA_FLAG_LIVES))
		ha_bundle_doom(b, -EIO, HA_CAUSE_NO_RAIL, "no rail is left; failover is off at this end or the other "
			       "(HA_NCCL_ENABLE_BACKUP)");
	ha_bundle_drive_soon(b);
}

void ha_bundle_doom(struct ha_bundle *b, int err, enum ha_event_cause cause, const char *fmt, ...)
{
	va_list ap;

	if (b->doomed)
		return;
	va_start(ap, fmt);
	vsnprintf(b->doom_text, sizeof(b->doom_text), fmt, ap);
	va_end(ap);
	b->doomed = err;
	b->doom_cause = (uint8_t)cause;
	b->doom_quiet = cause == HA_CAUSE_NONE;
	b->abort_due = !b->doom_quiet && cause != HA_CAUSE_PEER_GONE && !b->farewell && b->flags & HA_FLAG_LIVES;
	ha_bundle_drive_soon(b);
}

/* ---- messages ---- */

/* A life that the peer knows of and we do not (its offer was lost) is over before it began here. */
static void enter_fenced(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	struct ha_control *k = &b->ctl[r->index];

	r->epoch++;
	ha_life_reset(k);
	k->cause = HA_CAUSE_PEER_NOTICE;
	k->suspected_at = now;
	k->stage = HA_FENCE_CLOSE; /* its queue pair may be made already */
	k->slow = HA_SLOW_CLOSE;
	r->state = HA_RAIL_FENCING;
}

static void on_down(struct ha_bundle *b, struct ha_rail *r, const struct ha_msg_cause *m, uint64_t now)
{
	if (m->rail.epoch == r->epoch) {
		b->ctl[r->index].told = true;
		ha_rail_suspect(b, r, HA_CAUSE_PEER_NOTICE, "the peer has lost it: %s", ha_event_cause_text(m->cause));
	} else if (r->state == HA_RAIL_DOWN && !b->is_send) {
		enter_fenced(b, r, now);
	}
}

static void on_fenced(struct ha_bundle *b, struct ha_rail *r, const struct ha_msg_fenced *m, uint64_t now)
{
	struct ha_control *k = &b->ctl[r->index];

	if (m->rail.epoch != r->epoch) {
		if (r->state != HA_RAIL_DOWN || b->is_send)
			return; /* it is repeated */
		enter_fenced(b, r, now);
	}
	if (r->state == HA_RAIL_DOWN) {
		k->say |= HA_SAY(RAIL_ACK);
		return;
	}
	k->told = true;
	if (!k->peer_fenced)
		k->peer_state = m->state;
	k->peer_fenced = true;
	if (b->is_send && b->await && !HA_MUTATION(FORGET_WORD))
		ha_words_take((struct ha_send *)b, m->state.base);
	ha_rail_suspect(b, r, HA_CAUSE_PEER_NOTICE, "the peer has fenced it");
}

static void on_keys(struct ha_bundle *b, struct ha_rail *r, const struct ha_msg_keys *m)
{
	struct ha_control *k = &b->ctl[r->index];

	if (!b->is_send || m->rail.epoch != r->epoch)
		return;
	k->keys_next = ha_keys_take(b, r, m);
	k->say |= HA_SAY(RAIL_KEYS_ACK);
}

static void on_keys_ack(struct ha_bundle *b, struct ha_rail *r, const struct ha_msg_keys_ack *m)
{
	struct ha_control *k = &b->ctl[r->index];

	if (b->is_send || m->rail.epoch != r->epoch || m->next <= k->keys_next)
		return;
	k->keys_next = m->next;
	if (k->keys_next < k->keys_end)
		k->say |= HA_SAY(RAIL_KEYS);
}

/* A message about an epoch that cannot be: the peer is at most one ahead. */
static bool impossible(const struct ha_bundle *b, const struct ha_rail *r, const struct ha_msg_rail *m)
{
	if (m->header.type == HA_MSG_RAIL_ACK || m->header.type == HA_MSG_RAIL_ANSWER || m->header.type == HA_MSG_RAIL_BACK)
		return m->epoch > r->epoch;
	if (m->header.type == HA_MSG_RAIL_KEYS || m->header.type == HA_MSG_RAIL_KEYS_ACK)
		return false;
	return m->epoch > r->epoch + 1;
}

static void on_abort(struct ha_bundle *b, const struct ha_msg_cause *m)
{
	ha_bundle_doom(b, -ECONNABORTED, HA_CAUSE_PEER_NOTICE, "the peer has ended the connection: %s; look at its log",
		       ha_event_cause_text(m->cause));
	b->abort_due = false;
}

void ha_failover_message(struct ha_bundle *b, const union ha_message *m)
{
	uint64_t now = ha_clock_now(b->ctx->clock);
	const struct ha_msg_rail *about = &m->rail;
	struct ha_rail *r;

	if (!(b->flags & HA_FLAG_LIVES) || about->nonce != b->nonce || about->rail >= b->nrails)
		return;
	if (m->header.type == HA_MSG_ABORT) {
		on_abort(b, &m->cause);
		return;
	}
	r = &b->rail[about->rail];
	if (impossible(b, r, about)) {
		ha_bundle_doom(b, -EPROTO, HA_CAUSE_PROTOCOL, "the peer speaks of epoch %u of rail %u, which is in epoch %u",
			       about->epoch, about->rail, r->epoch);
		return;
	}
	if (HA_MUTATION(DROP_EPOCH))
		((union ha_message *)m)->rail.epoch = r->epoch;
	if (about->epoch < r->epoch)
		return; /* a late copy */
	switch (m->header.type) {
	case HA_MSG_RAIL_DOWN:
		on_down(b, r, &m->cause, now);
		break;
	case HA_MSG_RAIL_FENCED:
		on_fenced(b, r, &m->fenced, now);
		break;
	case HA_MSG_RAIL_ACK:
		b->ctl[r->index].acked = true;
		break;
	case HA_MSG_RAIL_OFFER:
		ha_life_offered(b, r, &m->life.end, about->epoch);
		break;
	case HA_MSG_RAIL_ANSWER:
		ha_life_answered(b, r, &m->life.end);
		break;
	case HA_MSG_RAIL_BACK:
		if (b->is_send)
			ha_life_hurry(b, r);
		break;
	case HA_MSG_RAIL_KEYS:
		on_keys(b, r, &m->keys);
		break;
	case HA_MSG_RAIL_KEYS_ACK:
		on_keys_ack(b, r, &m->keys_ack);
		break;
	}
}

/* ---- devices ---- */

/* A connection without failover ends when its queue pair gives up, not before: the port may be back by then. */
static bool concerns(const struct ha_bundle *b, enum ha_event_cause cause)
{
	return b->flags & HA_FLAG_LIVES || cause == HA_CAUSE_DEVICE_FAILED;
}

void ha_failover_device(struct ha_device *dev, enum ha_event_cause cause)
{
	for (struct ha_bundle *b = dev->ctx->bundles; b; b = b->next)
		for (unsigned i = 0; i < b->nrails; i++)
			if (b->rail[i].dev == dev && concerns(b, cause)) {
				b->ctl[i].wish = (uint8_t)cause;
				ha_due_now(b);
			}
}

/* The sender alone decides when to try again, and sees nothing of a receiver's port. */
static void say_back(struct ha_bundle *b, const struct ha_rail *r)
{
	if (b->is_send || r->state != HA_RAIL_DOWN)
		return;
	b->ctl[r->index].say |= HA_SAY(RAIL_BACK);
	ha_due_now(b);
}

void ha_failover_device_back(struct ha_device *dev)
{
	for (struct ha_bundle *b = dev->ctx->bundles; b; b = b->next)
		for (unsigned i = 0; i < b->nrails; i++)
			if (b->rail[i].dev == dev || !b->rail[i].dev) {
				ha_life_hurry(b, &b->rail[i]);
				say_back(b, &b->rail[i]);
			}
}

static const char *wish_text(enum ha_event_cause cause)
{
	switch (cause) {
	case HA_CAUSE_PORT_DOWN:
		return "its port went down";
	case HA_CAUSE_PORT_CHANGED:
		return "its port has another address now";
	case HA_CAUSE_DEVICE_FAILED:
		return "its device has failed";
	case HA_CAUSE_QUEUE_ERROR:
		return "its queue pair or completion queue is in error";
	case HA_CAUSE_SIBLING:
		return "another connection has just lost the same port";
	default:
		return ha_event_cause_text(cause);
	}
}

static void take_wishes(struct ha_bundle *b)
{
	for (unsigned i = 0; i < b->nrails; i++) {
		struct ha_control *k = &b->ctl[i];

		if (!k->wish)
			continue;
		ha_rail_suspect(b, &b->rail[i], k->wish, "%s", wish_text(k->wish));
		k->wish = HA_CAUSE_NONE;
	}
}

/* ---- the end of a connection ---- */

/* What the receiver said when it closed has arrived is complete. */
static void settle_sends(struct ha_send *s, uint64_t done)
{
	for (unsigned e = 0; e < HA_SLOTS; e++) {
		struct ha_send_slot *slot = &s->slot[e];

		if (slot->n && !slot->open && slot->idx < s->head && slot->idx < done && slot->pending) {
			slot->parked = 0;
			ha_send_settled(slot);
		}
	}
}

static bool sends_pending(const struct ha_send *s)
{
	for (unsigned e = 0; e < HA_SLOTS; e++)
		if (s->slot[e].pending)
			return true;
	return false;
}

static bool fencing(const struct ha_bundle *b)
{
	for (unsigned i = 0; i < b->nrails; i++)
		if (b->rail[i].state == HA_RAIL_FENCING)
			return true;
	return false;
}

/* The peer has closed in order. What it had sent may still be on its way into our queues. */
static void farewell_step(struct ha_bundle *b, uint64_t now)
{
	const struct ha_recv *c = (const struct ha_recv *)b;
	bool waiting;

	if (b->is_send)
		settle_sends((struct ha_send *)b, b->peer_done);
	waiting = b->is_send ? sends_pending((struct ha_send *)b) : c->done < b->peer_done || c->flush_busy;
	if (waiting && (now < b->farewell_until || fencing(b))) {
		ha_due(b, now + HA_NS_PER_MS);
		return;
	}
	ha_bundle_doom(b, -ECONNRESET, HA_CAUSE_NONE, "the peer has closed");
}

/* Every rail is fenced before the first error reaches the application: nothing may write into what it then reuses. */
static void doom_step(struct ha_bundle *b)
{
	bool over = true;

	for (unsigned i = 0; i < b->nrails; i++) {
		struct ha_rail *r = &b->rail[i];

		ha_rail_suspect(b, r, b->doom_cause, "the connection ends");
		if (r->state == HA_RAIL_FENCED)
			r->state = HA_RAIL_DOWN;
		over &= r->state == HA_RAIL_DOWN || r->state == HA_RAIL_NONE;
	}
	if ((!over && !HA_MUTATION(EARLY_ERROR)) || b->error)
		return;
	if (!b->doom_quiet)
		ha_journal_event(b->ctx, &(struct ha_event){ .kind = HA_EVENT_LOST, .cause = b->doom_cause, .bundle = b,
							     .text = b->doom_text });
	b->error = b->doomed;
	/* Release: whoever sees the bit sees the error. */
	atomic_fetch_or_explicit(&b->attention, HA_ATTN_ERROR, memory_order_release);
}

/* No rail is up: how long may that go on? */
static void dark_step(struct ha_bundle *b, uint64_t now)
{
	uint64_t patience = ha_patience_ns(b->ctx);

	if (b->active) {
		b->dark_since = 0;
		return;
	}
	if (!b->dark_since) {
		b->dark_since = now;
		for (unsigned i = 0; i < b->nrails; i++) /* those that were not needed until now, too */
			if (b->rail[i].state == HA_RAIL_DOWN)
				ha_life_hurry(b, &b->rail[i]);
	}
	if (!b->stream && b->reset)
		ha_bundle_doom(b, -ECONNRESET, HA_CAUSE_PEER_GONE, "the peer's process or machine is gone: its socket was reset, "
			       "and no rail answers; look at the log of that rank");
	else if (!b->stream)
		ha_bundle_doom(b, -EIO, HA_CAUSE_NO_RAIL, "no rail is left, and no socket to agree on a new one");
	else if (!ha_life_possible(b))
		ha_bundle_doom(b, -EIO, HA_CAUSE_DEVICE_FAILED, "no rail is left, and its device has failed for good");
	else if (now - b->dark_since >= patience)
		ha_bundle_doom(b, -EIO, HA_CAUSE_RETRIES, "no rail came back within %.1f s (HA_NCCL_MAX_RETRIES)",
			       (double)patience / 1e9);
	else
		ha_due(b, b->dark_since + patience);
}

/* ---- one step ---- */

/* Everything that was lost with a rail has found another carrier. */
static void tell_failed_over(struct ha_bundle *b)
{
	for (unsigned i = 0; i < b->nrails; i++) {
		struct ha_control *k = &b->ctl[i];

		if (!k->owed || b->parked || !b->active)
			continue;
		k->owed = false;
		ha_journal_event(b->ctx, &(struct ha_event){
			.kind = HA_EVENT_FAILED_OVER, .cause = k->cause, .bundle = b, .rail = &b->rail[i],
			.requests = k->replayed_requests, .bytes = k->replayed_bytes,
			.stall_ns = ha_clock_now(b->ctx->clock) - k->suspected_at, .registration_ns = k->registration_ns });
	}
}

static void rail_step(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	switch (r->state) {
	case HA_RAIL_UP:
		ha_beat_step(b, r, now);
		break;
	case HA_RAIL_FENCING:
	case HA_RAIL_FENCED:
		ha_fence_step(b, r, now);
		break;
	case HA_RAIL_DOWN:
	case HA_RAIL_JOIN:
	case HA_RAIL_PROBE:
		ha_life_step(b, r, now);
		break;
	}
}

/*
 * The owner polls what carries data. The driver looks when it is time to judge, when work is due and room is short, and where
 * nobody else may: not in every step, since a look at an empty queue costs much on some devices.
 */
static bool poll_wanted(const struct ha_bundle *b, const struct ha_rail *r, uint64_t now)
{
	if (r->state == HA_RAIL_JOIN || r->state == HA_RAIL_PROBE)
		return true;
	return r->state == HA_RAIL_UP && (now >= b->ctl[r->index].beat_at || ha_rail_room(r) < r->sq_depth / 2 || b->farewell ||
					  b->doomed || ha_ctx_self_driven(b->ctx));
}

/* As long as a rail is being fenced, or what it carried is not on its way again, but not for ever. */
static uint64_t urgent_until(const struct ha_bundle *b)
{
	uint64_t until = 0;

	for (unsigned i = 0; i < b->nrails; i++) {
		const struct ha_control *k = &b->ctl[i];

		if ((b->rail[i].state == HA_RAIL_FENCING || b->rail[i].state == HA_RAIL_FENCED || k->owed) && k->working &&
		    k->suspected_at + URGENT_NS > until)
			until = k->suspected_at + URGENT_NS;
	}
	return until;
}

/* The bundle is taken. */
static void drive(struct ha_bundle *b)
{
	uint64_t now;

	/* Acquire: pairs with ha_bundle_drive_soon. */
	atomic_fetch_and_explicit(&b->attention, ~(uint32_t)HA_ATTN_DRIVE, memory_order_acquire);
	b->due = UINT64_MAX;
	ha_bundle_hear(b);
	ha_mail_read(b);
	take_wishes(b);
	now = ha_clock_now(b->ctx->clock);
	for (unsigned i = 0; i < b->nrails; i++)
		if (poll_wanted(b, &b->rail[i], now))
			ha_rail_poll(b, &b->rail[i]);
	now = ha_clock_now(b->ctx->clock); /* not before any suspicion */
	if (b->abort_due)
		ha_talk(b, now);
	if (b->doomed)
		doom_step(b);
	for (unsigned i = 0; i < b->nrails; i++)
		rail_step(b, &b->rail[i], now);
	if (b->flags & HA_FLAG_LIVES && !b->error) {
		for (unsigned i = 0; i < b->nrails; i++)
			ha_keys_step(b, &b->rail[i]);
		ha_replay(b);
		tell_failed_over(b);
		if (!b->farewell && !b->doomed)
			dark_step(b, now);
	}
	if (b->farewell && !b->doomed)
		farewell_step(b, now);
	ha_bundle_words(b);
	if (b->doomed)
		doom_step(b);
	ha_talk(b, now);
	b->urgent_until = urgent_until(b);
	/* What the steps themselves asked for is due at once. */
	if (atomic_load_explicit(&b->attention, memory_order_relaxed) & HA_ATTN_DRIVE)
		b->due = now;
}

/* Nobody else looks at rails that carry nothing: what is slow there need not keep the owner out. */
static void slow_steps(struct ha_bundle *b)
{
	for (unsigned i = 0; i < b->nrails; i++) {
		struct ha_control *k = &b->ctl[i];

		if (k->slow != HA_SLOW_NONE && k->slow != HA_SLOW_DONE) {
			ha_life_slow(b, &b->rail[i]);
			b->due = 0;
		}
		if (k->keys == HA_KEYS_WANTED) {
			ha_keys_register(b, &b->rail[i]);
			b->due = 0;
		}
	}
}

static bool is_due(struct ha_bundle *b, uint64_t now)
{
	return b->due <= now || atomic_load_explicit(&b->attention, memory_order_relaxed) & HA_ATTN_DRIVE;
}

/* The next bundles that are due, from *at on, claimed by one barrier; how many. */
static unsigned claim(struct ha_ctx *ctx, struct ha_bundle **at, struct ha_bundle *claimed[TAKEN_MAX])
{
	uint64_t now = ha_clock_now(ctx->clock);
	unsigned n = 0;

	for (; *at && n < TAKEN_MAX; *at = (*at)->next)
		if (is_due(*at, now)) {
			ha_bundle_claim(*at);
			claimed[n++] = *at;
		}
	if (n)
		ha_guard_barrier(ctx);
	return n;
}

/* Every bundle that is due makes a step. Returns when those whose owner was inside are to be tried again. */
static uint64_t drive_all(struct ha_ctx *ctx)
{
	struct ha_bundle *claimed[TAKEN_MAX], *at = ctx->bundles;
	uint64_t next = UINT64_MAX;
	unsigned n;

	while ((n = claim(ctx, &at, claimed)) > 0)
		for (unsigned i = 0; i < n; i++) {
			if (!ha_bundle_claimed(claimed[i])) {
				next = ha_clock_now(ctx->clock) + AGAIN_NS;
				continue;
			}
			drive(claimed[i]);
			ha_bundle_give(claimed[i]);
		}
	return next;
}

/* Objects of lives that are over go when nobody waits for anything else; some in each round. Returns when there are more. */
static uint64_t tidy_all(struct ha_ctx *ctx, uint64_t now)
{
	uint64_t next = UINT64_MAX;
	unsigned n = 0;

	for (struct ha_bundle *b = ctx->bundles; b; b = b->next)
		for (unsigned i = 0; i < b->nrails; i++) {
			struct ha_control *k = &b->ctl[i];

			if (!k->tidy_at || k->slow != HA_SLOW_NONE)
				continue;
			if (now >= k->tidy_at && n++ < TIDIED_MAX)
				ha_life_tidy(b, &b->rail[i]);
			else if (k->tidy_at < next)
				next = k->tidy_at;
		}
	return next;
}

/* Everything that is due; when something will be again. */
static uint64_t look_at_all(struct ha_ctx *ctx)
{
	uint64_t now, next = drive_all(ctx), urgent = 0, tidy;

	/* Fences, and what the peers must hear of them, first: all connections of a lost device wait for that. */
	ha_peers_depart(ctx);
	for (struct ha_bundle *b = ctx->bundles; b; b = b->next)
		slow_steps(b);
	now = ha_clock_now(ctx->clock);
	/* One bundle's fault may be another's that came before it. */
	for (struct ha_bundle *b = ctx->bundles; b; b = b->next) {
		if (b->due < next)
			next = b->due;
		if (b->urgent_until > urgent)
			urgent = b->urgent_until;
	}
	if (now < urgent)
		return urgent < next ? urgent : next;
	ha_journal_release(ctx);
	tidy = tidy_all(ctx, now);
	return tidy < next ? tidy : next;
}

uint64_t ha_failover_round(struct ha_ctx *ctx)
{
	/* Acquire: pairs with ha_bundle_drive_soon. A call that comes from here on is for the next round. */
	bool called = atomic_exchange_explicit(&ctx->called, false, memory_order_acquire);

	if (called || ha_clock_now(ctx->clock) >= ctx->due)
		ctx->due = look_at_all(ctx);
	return ctx->due;
}

/* ---- birth ---- */

/* Not protected, and why; a standby may still come where both ends have a second device. */
static void say_unprotected(struct ha_bundle *b)
{
	struct ha_event e = { .kind = HA_EVENT_NOT_PROTECTED, .bundle = b };

	if (!b->ctx->config.enable_backup) {
		e.cause = HA_CAUSE_DISABLED;
		e.text = "HA_NCCL_ENABLE_BACKUP is 0 here: a broken path ends the connection";
	} else if (!(b->flags & HA_FLAG_LIVES)) {
		e.cause = HA_CAUSE_PEER_WITHOUT;
		e.text = "the peer has no failover, or has it disabled: a broken path ends the connection";
	} else if (!(b->offers & HA_FLAG_DUAL_PATH)) {
		e.cause = HA_CAUSE_NO_STANDBY;
		e.text = "no second device here (`ha topo`): a broken path is rebuilt on the same port";
	} else {
		e.cause = HA_CAUSE_PEER_WITHOUT;
		e.text = "the peer has no second device: a broken path is rebuilt on the same port";
	}
	ha_journal_event(b->ctx, &e);
}

void ha_failover_launch(struct ha_bundle *b)
{
	uint64_t now = ha_clock_now(b->ctx->clock);

	if (b->flags & HA_FLAG_ACK_MEMORY) {
		b->await = b->is_send && !HA_MUTATION(ACK_NIC) ? HA_AWAIT_WORD : 0;
		atomic_fetch_or_explicit(&b->attention, HA_ATTN_WORD, memory_order_relaxed);
	}
	b->ndata = b->nrails;
	ha_policy_turns(b);
	ha_share_rails(b);
	for (unsigned i = 0; i < b->ndata; i++) {
		b->weight[i] = b->share[i];
		b->keyed |= (uint8_t)(1u << i);
		ha_life_begun(b, &b->rail[i], now);
	}
	if (b->flags & HA_FLAG_DUAL_PATH) {
		struct ha_rail *r = &b->rail[b->nrails++];

		r->index = b->ndata;
		r->state = HA_RAIL_DOWN;
		b->ctl[r->index].acked = true;
	}
	ha_roles_update(b, now);
	if (b->nrails == b->ndata && ha_policy_one_device(b, b->active))
		say_unprotected(b);
	ha_due_now(b);
}
