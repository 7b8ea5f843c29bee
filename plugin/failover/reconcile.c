/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reconcile.c - both ends are fenced: what did this rail carry that the other end has not?
 *
 * Only what the fenced rail itself carried is looked at; the rest is under way on healthy rails.
 * Stripes that the receiver has seen are complete, whatever the sender's completion queue said;
 * those it has not are parked and posted again, and so are clear-to-sends that the sender does not
 * hold. Nothing else.
 */
#include "base/clock.h"
#include "base/log.h"
#include "plugin/ctx.h"
#include "plugin/failover/failover.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* Slots lie far apart, and nobody has touched most of them lately. */
#define AHEAD 16

/* ---- what this end has ---- */

/* By stage: those that may follow. */
static const uint8_t followers[] = {
	[HA_COMPARE_NONE] = 1 << HA_COMPARE_TAKEN | 1 << HA_COMPARE_SETTLED | 1 << HA_COMPARE_NONE,
	[HA_COMPARE_TAKEN] = 1 << HA_COMPARE_SETTLED | 1 << HA_COMPARE_NONE,
	[HA_COMPARE_SETTLED] = 1 << HA_COMPARE_NONE,
};

static const char *const stage_names[] = {
	[HA_COMPARE_NONE] = "none",
	[HA_COMPARE_TAKEN] = "taken",
	[HA_COMPARE_SETTLED] = "settled",
};

/* Anything else is a defect, as in ha_rail_enter(). */
void ha_compare_enter(struct ha_bundle *b, const struct ha_rail *r, enum ha_compare_stage stage)
{
	struct ha_compare *compare = &b->failover->ctl[r->index].compare;

	if (!(followers[compare->stage] >> stage & 1))
		HA_WARN(b->name,
			"rail %u, epoch %u: comparison '%s' does not lead to '%s'; please report "
			"this",
			r->index, r->epoch, stage_names[compare->stage], stage_names[stage]);
	compare->stage = (uint8_t)stage;
}

void ha_compare_settle(struct ha_bundle *b, const struct ha_rail *r)
{
	/* It says so more than once; and no peer knows a state that was not taken. */
	if (b->failover->ctl[r->index].compare.stage == HA_COMPARE_TAKEN)
		ha_compare_enter(b, r, HA_COMPARE_SETTLED);
}

static void state_of_receiver(const struct ha_recv *c, struct ha_fence_state *state)
{
	state->base = c->done;
	state->head = c->head;
	for (uint64_t idx = c->done; idx < c->head; idx++) {
		const struct ha_recv_slot *slot = &c->slot[idx % HA_SLOTS];

		state->mask[idx - c->done] = slot->busy & HA_SLOT_WIRE ? slot->seen : 0xff;
	}
}

/* All lines of a clear-to-send carry the receive's number. */
static bool holds_cts(const struct ha_send *s, uint64_t idx)
{
	const struct ha_cts *cts = ha_send_cts(s, idx);

	/* Acquire: as in isend, nothing of a line is read before its number. */
	if (__atomic_load_n(&cts->idx, __ATOMIC_ACQUIRE) != idx + 1)
		return false;
	for (unsigned m = 1; m < cts->n && m < HA_MAX_RECVS; m++)
		if (__atomic_load_n(&cts[m].idx, __ATOMIC_ACQUIRE) != idx + 1)
			return false;
	return true;
}

static void state_of_sender(const struct ha_send *s, struct ha_fence_state *state)
{
	state->base = state->head = s->head;
	for (unsigned i = 0; i < HA_SLOTS; i++) {
		__builtin_prefetch(ha_send_cts(s, s->head + i + AHEAD));
		if (holds_cts(s, s->head + i))
			state->mask[i / 8] |= (uint8_t)(1u << i % 8);
	}
}

void ha_reconcile_state(const struct ha_bundle *b, struct ha_fence_state *state)
{
	memset(state, 0, sizeof(*state));
	if (b->is_send)
		state_of_sender((const struct ha_send *)b, state);
	else
		state_of_receiver((const struct ha_recv *)b, state);
}

/* ---- compared with what the other end has ---- */

/* Below the base complete, in the window as listed, at or above the head nothing. */
static bool peer_saw_stripe(const struct ha_fence_state *peer, uint64_t idx, unsigned stripe)
{
	if (idx < peer->base)
		return true;
	return idx < peer->head && peer->mask[idx - peer->base] >> stripe & 1;
}

static unsigned carrier_of(const struct ha_send_slot *slot, unsigned stripe)
{
	return slot->moved >> stripe & 1 ? slot->carrier[stripe] : stripe;
}

static void lost_for_good(struct ha_bundle *b, const struct ha_rail *r, uint64_t idx)
{
	ha_bundle_abort(b, -EIO, HA_CAUSE_DATA_LOST,
			"rail %u's far NIC acknowledged data of message %" PRIu64
			" that it never placed; "
			"HA_NCCL_ACK=memory excludes this",
			r->index, idx);
}

/* The sender has this stripe's fate from the receiver. False: it is lost, and cannot be sent
 * again. */
static bool settle_stripe(struct ha_send *s, struct ha_send_slot *slot, unsigned stripe,
			  bool was_seen)
{
	uint16_t bit = (uint16_t)(1u << stripe);

	if (was_seen) {
		slot->settled |= (uint8_t)bit;
		slot->pending &= (uint16_t)~bit;
		if (!slot->pending)
			ha_send_settled(slot);
		return true;
	}
	if (!slot->copied && slot->held != (1u << slot->n) - 1)
		return false;
	for (unsigned m = 0; m < slot->n && !slot->copied; m++)
		/* complete, but not handed out: it is not complete after all */
		ha_send_request(slot, m)->done = 0;
	slot->pending |= bit;
	slot->parked |= (uint8_t)bit;
	s->b.failover->parked++;
	return true;
}

static void reconcile_sender(struct ha_send *s, struct ha_rail *r)
{
	const struct ha_fence_state *peer = &s->b.failover->ctl[r->index].compare.peer_state;

	for (unsigned e = 0; e < HA_SLOTS; e++) {
		struct ha_send_slot *slot = &s->slot[e];

		__builtin_prefetch(&s->slot[(e + AHEAD) % HA_SLOTS]);
		if (!slot->n || slot->open || slot->idx >= s->head)
			continue; /* nothing was posted for it */
		for (unsigned k = 0; k < HA_MAX_RAILS; k++) {
			if (!(slot->mask & ~slot->settled & ~slot->parked & 1u << k) ||
			    carrier_of(slot, k) != r->index)
				continue;
			if (!settle_stripe(s, slot, k, peer_saw_stripe(peer, slot->idx, k)))
				lost_for_good(&s->b, r, slot->idx);
		}
	}
}

static bool peer_holds_cts(const struct ha_fence_state *peer, uint64_t idx)
{
	uint64_t at = idx - peer->head;

	return idx < peer->head || (at < HA_SLOTS && peer->mask[at / 8] >> at % 8 & 1);
}

static void reconcile_receiver(struct ha_recv *c, struct ha_rail *r)
{
	const struct ha_fence_state *peer = &c->b.failover->ctl[r->index].compare.peer_state;

	for (uint64_t idx = c->done; idx < c->head; idx++) {
		struct ha_recv_slot *slot = &c->slot[idx % HA_SLOTS];

		if (!(slot->busy & HA_SLOT_WIRE) || slot->cts_parked ||
		    slot->cts_rail != r->index || peer_holds_cts(peer, idx))
			continue;
		slot->cts_parked = true;
		c->b.failover->parked++;
	}
	c->b.delivered_sent = 0; /* this rail may have carried the last count */
}

void ha_reconcile(struct ha_bundle *b, struct ha_rail *r)
{
	if (b->is_send)
		reconcile_sender((struct ha_send *)b, r);
	else
		reconcile_receiver((struct ha_recv *)b, r);
}

/* ---- again ---- */

/* Where it is counted: at the rail whose failure it was. Several at once share. */
static struct ha_control *find_unreported(struct ha_bundle *b)
{
	for (unsigned i = 0; i < b->nrails; i++)
		if (b->failover->ctl[i].compare.unreported)
			return &b->failover->ctl[i];
	return &b->failover->ctl[0];
}

static void replay_sends(struct ha_send *s)
{
	/* In the order of the messages: the HA_SLOTS that may be open, from the oldest. */
	for (uint64_t idx = s->head < HA_SLOTS ? 0 : s->head - HA_SLOTS;
	     idx < s->head && s->b.failover->parked; idx++) {
		struct ha_send_slot *slot = &s->slot[idx % HA_SLOTS];
		struct ha_control *k = find_unreported(&s->b);
		uint64_t bytes = 0;

		if (slot->idx != idx || !slot->parked)
			continue;
		for (unsigned left = slot->parked; left; left &= left - 1) {
			if (ha_send_replay(s, slot, (unsigned)__builtin_ctz(left), &bytes))
				return;
			s->b.failover->parked--;
		}
		k->compare.replayed_requests++;
		k->compare.replayed_bytes += bytes;
	}
}

static void replay_receives(struct ha_recv *c)
{
	for (uint64_t idx = c->done; idx < c->head && c->b.failover->parked; idx++) {
		struct ha_recv_slot *slot = &c->slot[idx % HA_SLOTS];

		if (!slot->cts_parked)
			continue;
		/* What was superseded meanwhile needs no sender any more, but the sender needs it:
		 * receives are served in order. */
		if (ha_recv_replay(c, slot))
			return;
		c->b.failover->parked--;
		find_unreported(&c->b)->compare.replayed_requests++;
	}
}

void ha_replay(struct ha_bundle *b)
{
	if (!b->failover->parked || b->abort->error || b->abort->held)
		return;
	if (b->is_send)
		replay_sends((struct ha_send *)b);
	else
		replay_receives((struct ha_recv *)b);
	if (b->failover->parked && b->active)
		ha_due(b, ha_clock_now(b->ctx->clock) + 100000);
}
