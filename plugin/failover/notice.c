/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * notice.c - what the peer says about rails
 *
 * Every decision about a rail of an epoch is taken from that rail's state and from messages that
 * name the epoch, so order, carrier and repetition of messages do not matter (docs/protocol.md has
 * the tables that this follows).
 */
#include "plugin/failover/failover.h"

#include "base/clock.h"
#include "plugin/channel/stream.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"

#include <errno.h>

/* An incarnation that the peer knows of and we do not (its offer was lost) is over before it began
 * here. */
static void enter_fenced(struct ha_bundle *b, struct ha_rail *r, uint64_t now)
{
	struct ha_control *k = &b->failover->ctl[r->index];

	r->epoch++;
	ha_incarnation_reset(b, r);
	r->loss.cause = HA_CAUSE_PEER_NOTICE;
	r->loss.suspected_at = now;
	k->fence.stage = HA_FENCE_CLOSE; /* its queue pair may be made already */
	k->slow = HA_SLOW_CLOSE;
	ha_rail_enter(r, HA_RAIL_FENCING);
}

static void on_down(struct ha_bundle *b, struct ha_rail *r, const struct ha_msg_cause *m,
		    uint64_t now)
{
	if (m->rail.epoch == r->epoch) {
		/* Not by a late copy: it may be back by then. */
		if (m->cause == HA_CAUSE_PORT_DOWN && !b->failover->ctl[r->index].fence.peer_knows)
			b->failover->ctl[r->index].fence.peer_port = true;
		b->failover->ctl[r->index].fence.peer_knows = true;
		if (m->cause == HA_CAUSE_QUEUE_ERROR) /* our write was refused there */
			ha_bundle_note_refusal(b, now);
		if (m->cause == HA_CAUSE_TIMEOUT && r->state == HA_RAIL_UP)
			ha_heartbeat_silence(b, r);
		if (m->cause == HA_CAUSE_SILENCE)
			ha_sign_peer_alarm(b, r, now);
		ha_rail_suspect(b, r,
				m->cause == HA_CAUSE_SURPLUS ? HA_CAUSE_SURPLUS
							     : HA_CAUSE_PEER_NOTICE,
				"the peer has lost it: %s", ha_event_cause_text(m->cause));
	} else if (r->state == HA_RAIL_DOWN && !b->is_send) {
		enter_fenced(b, r, now);
	}
}

static void on_fenced(struct ha_bundle *b, struct ha_rail *r, const struct ha_msg_fenced *m,
		      uint64_t now)
{
	struct ha_control *k = &b->failover->ctl[r->index];

	if (m->rail.epoch != r->epoch) {
		if (r->state != HA_RAIL_DOWN || b->is_send)
			return; /* it is repeated */
		enter_fenced(b, r, now);
	}
	if (r->state == HA_RAIL_DOWN) {
		k->out.due |= HA_SEND(RAIL_ACK);
		return;
	}
	k->fence.peer_knows = true;
	if (!k->compare.has_peer_state)
		k->compare.peer_state = m->state;
	k->compare.has_peer_state = true;
	if (b->is_send && b->await)
		ha_delivery_take((struct ha_send *)b, m->state.base);
	ha_rail_suspect(b, r, HA_CAUSE_PEER_NOTICE, "the peer has fenced it");
}

static void on_keys(struct ha_bundle *b, struct ha_rail *r, const struct ha_msg_keys *m)
{
	struct ha_control *k = &b->failover->ctl[r->index];

	if (!b->is_send || m->rail.epoch != r->epoch)
		return;
	k->keys.next = ha_keys_take(b, r, m);
	k->out.due |= HA_SEND(RAIL_KEYS_ACK);
}

static void on_keys_ack(struct ha_bundle *b, struct ha_rail *r, const struct ha_msg_keys_ack *m)
{
	struct ha_control *k = &b->failover->ctl[r->index];

	if (b->is_send || m->rail.epoch != r->epoch || m->next <= k->keys.next)
		return;
	k->keys.next = m->next;
	if (k->keys.next < k->keys.end)
		k->out.due |= HA_SEND(RAIL_KEYS);
}

static bool about_windows(const struct ha_msg_header *header)
{
	return header->type == HA_MSG_WINDOWS || header->type == HA_MSG_WINDOWS_ACK;
}

/* A message about an epoch that cannot be: the peer is at most one ahead. */
static bool has_impossible_epoch(const struct ha_bundle *b, const struct ha_rail *r,
				 const struct ha_msg_rail *m)
{
	if (m->header.type == HA_MSG_RAIL_ACK || m->header.type == HA_MSG_RAIL_ANSWER ||
	    m->header.type == HA_MSG_RAIL_BACK)
		return m->epoch > r->epoch;
	if (m->header.type == HA_MSG_RAIL_KEYS || m->header.type == HA_MSG_RAIL_KEYS_ACK ||
	    about_windows(&m->header))
		return false;
	return m->epoch > r->epoch + 1;
}

static void on_abort(struct ha_bundle *b, const struct ha_msg_cause *m)
{
	ha_bundle_abort(b, -ECONNABORTED, HA_CAUSE_PEER_NOTICE,
			"the peer has ended the connection: %s; look at its log",
			ha_event_cause_text(m->cause));
	b->abort->due = false;
}

/* The receiver's port is back. That holds whichever incarnation the message names: the receiver
 * may have refused the one that is being offered, or not know of one that was just given up. */
static void on_back(struct ha_bundle *b, struct ha_rail *r, uint32_t epoch)
{
	if (!b->is_send)
		return;
	if (epoch == r->epoch)
		b->failover->ctl[r->index].fence.peer_port = false;
	if (epoch == r->epoch || (epoch + 1 == r->epoch && r->state == HA_RAIL_JOIN))
		ha_incarnation_hurry(b, r);
	ha_spares_port_back(b);
}

/* It may have noticed first: what it waits for may never have come here, and without anything to
 * send this end would not look before its next heartbeat. Packets that get lost on its path get
 * lost on ours. */
static void on_ask(struct ha_bundle *b, struct ha_rail *r, const struct ha_msg_sign *ask,
		   uint64_t now)
{
	if (ask->lossy && r->state == HA_RAIL_UP)
		ha_silence_lossy(&r->dev->silence, now);
	ha_answer_asked(b, r, ask->number, now);
	ha_heartbeat_look(b, now);
}

/* Of this incarnation of the rail, or the next one. */
static void on_rail_message(struct ha_bundle *b, struct ha_rail *r, const union ha_message *m)
{
	uint64_t now = ha_clock_now(b->ctx->clock);
	bool of_now = m->rail.epoch == r->epoch;

	switch (m->header.type) {
	case HA_MSG_RAIL_DOWN:
		on_down(b, r, &m->cause, now);
		break;
	case HA_MSG_RAIL_FENCED:
		on_fenced(b, r, &m->fenced, now);
		break;
	case HA_MSG_RAIL_ACK:
		ha_compare_settle(b, r);
		break;
	case HA_MSG_RAIL_OFFER:
		ha_incarnation_offered(b, r, &m->incarnation.end, m->rail.epoch);
		break;
	case HA_MSG_RAIL_ANSWER:
		ha_incarnation_answered(b, r, &m->incarnation.end);
		break;
	case HA_MSG_RAIL_BACK:
		on_back(b, r, m->rail.epoch);
		break;
	case HA_MSG_RAIL_KEYS:
		on_keys(b, r, &m->keys);
		break;
	case HA_MSG_RAIL_KEYS_ACK:
		on_keys_ack(b, r, &m->keys_ack);
		break;
	case HA_MSG_WINDOWS:
		if (of_now)
			ha_windows_take(b, r, &m->windows);
		break;
	case HA_MSG_WINDOWS_ACK:
		if (of_now)
			ha_windows_known(b, r, m->windows_ack.next);
		break;
	case HA_MSG_RAIL_ASK:
		if (of_now)
			on_ask(b, r, &m->sign, now);
		break;
	case HA_MSG_RAIL_ALIVE:
		if (of_now)
			ha_sign_alive(b, r, m->sign.number);
		break;
	}
}

void ha_failover_message(struct ha_bundle *b, const union ha_message *m)
{
	const struct ha_msg_rail *about = &m->rail;
	struct ha_rail *r;

	if (!(b->terms.flags & HA_FLAG_FAILOVER) && !about_windows(&m->header))
		return;
	if (about->nonce != b->terms.nonce || about->rail >= b->nrails)
		return;
	if (m->header.type == HA_MSG_ABORT) {
		on_abort(b, &m->cause);
		return;
	}
	r = &b->rail[about->rail];
	if (has_impossible_epoch(b, r, about)) {
		ha_bundle_abort(
			b, -EPROTO, HA_CAUSE_PROTOCOL,
			"the peer's message names epoch %u of rail %u, which is in epoch %u",
			about->epoch, about->rail, r->epoch);
		return;
	}
	/* Else a late copy. */
	if (about->epoch >= r->epoch || m->header.type == HA_MSG_RAIL_BACK)
		on_rail_message(b, r, m);
}
