/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ending.c - the end of a connection: in order, with an error, or because no rail came back
 */
#include "plugin/failover/failover.h"

#include "base/clock.h"
#include "plugin/failover/choice.h"
#include "plugin/report/journal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

/* What the receiver said when it closed has arrived is complete. */
static void settle_sends(struct ha_send *s, uint64_t done)
{
	for (unsigned e = 0; e < HA_SLOTS; e++) {
		struct ha_send_slot *slot = &s->slot[e];

		if (slot->n && !slot->open && slot->idx < s->head && slot->idx < done &&
		    slot->pending) {
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

static bool has_fencing_rail(const struct ha_bundle *b)
{
	for (unsigned i = 0; i < b->nrails; i++)
		if (b->rail[i].state == HA_RAIL_FENCING)
			return true;
	return false;
}

void ha_peer_closed_step(struct ha_bundle *b, uint64_t now)
{
	const struct ha_recv *c = (const struct ha_recv *)b;
	bool waiting;

	if (b->is_send)
		settle_sends((struct ha_send *)b, b->failover->peer_done);
	waiting = b->is_send ? sends_pending((struct ha_send *)b)
			     : c->done < b->failover->peer_done || c->flush_busy;
	if (waiting && (now < b->failover->peer_closed_until || has_fencing_rail(b))) {
		ha_due(b, now + HA_NS_PER_MS);
		return;
	}
	ha_bundle_abort(b, -ECONNRESET, HA_CAUSE_NONE, "the peer has closed");
}

void ha_held_abort_step(struct ha_bundle *b, uint64_t now)
{
	if (!b->abort->held || b->abort->error || b->peer_closed)
		return;
	if (now < b->abort->held_until)
		ha_due(b, b->abort->held_until);
	else
		ha_bundle_abort(b, b->abort->held, HA_CAUSE_WORK_FAILED, "%s", b->abort->text);
}

void ha_abort_step(struct ha_bundle *b)
{
	bool over = true;

	for (unsigned i = 0; i < b->nrails; i++) {
		struct ha_rail *r = &b->rail[i];

		ha_rail_suspect(b, r, b->abort->cause, "the connection ends");
		if (r->state == HA_RAIL_FENCED)
			ha_rail_enter(r, HA_RAIL_DOWN);
		over &= r->state == HA_RAIL_DOWN || r->state == HA_RAIL_NONE;
	}
	if (!over || b->error)
		return;
	if (!b->abort->quiet)
		ha_journal_event(b->ctx, &(struct ha_event) { .kind = HA_EVENT_LOST,
							      .cause = b->abort->cause,
							      .bundle = b,
							      .text = b->abort->text });
	b->error = b->abort->error;
	/* Release: whoever sees the bit sees the error. */
	atomic_fetch_or_explicit(&b->attention, HA_ATTN_ERROR, memory_order_release);
}

/* Between two looks at a connection without a path; ten times as long, and the driver was not run.
 */
#define NO_PATH_LOOK_NS (HA_NS_PER_S / 10)
#define NO_PATH_GAP_NS HA_NS_PER_S

/* The time in which the process or the machine was stopped says nothing about rails: a second of it
 * counts. */
static void leave_out_standstill(struct ha_bundle *b, uint64_t now)
{
	uint64_t since = now - b->failover->no_path_seen;

	if (since > NO_PATH_GAP_NS)
		b->failover->no_path_since += since - NO_PATH_GAP_NS;
	b->failover->no_path_seen = now;
}

static void look_at_no_path_again(struct ha_bundle *b, uint64_t now, uint64_t limit)
{
	uint64_t end = b->failover->no_path_since + limit, look = now + NO_PATH_LOOK_NS;

	ha_due(b, end < look ? end : look);
}

void ha_no_path_step(struct ha_bundle *b, uint64_t now)
{
	uint64_t limit = ha_retry_limit_ns(b->ctx);

	if (b->active) {
		b->failover->no_path_since = 0;
		return;
	}
	if (!b->failover->no_path_since) {
		b->failover->no_path_since = b->failover->no_path_seen = now;
		for (unsigned i = 0; i < b->nrails;
		     i++) /* those that were not needed until now, too */
			if (b->rail[i].state == HA_RAIL_DOWN && !ha_spares_hurry(b, &b->rail[i]) &&
			    !b->failover->ctl[i].fence.peer_port)
				ha_incarnation_hurry(b, &b->rail[i]);
	}
	leave_out_standstill(b, now);
	if (!b->link->stream && b->link->reset)
		ha_bundle_abort(b, -ECONNRESET, HA_CAUSE_PEER_GONE,
				"the peer's process or machine is gone: its socket was reset, "
				"and no rail answers; look at the log of that rank");
	else if (!b->link->stream)
		ha_bundle_abort(b, -EIO, HA_CAUSE_NO_RAIL,
				"no rail is left, and no socket to agree on a new one");
	else if (!ha_incarnation_possible(b))
		ha_bundle_abort(b, -EIO, HA_CAUSE_DEVICE_FAILED,
				"no rail is left, and its device has failed");
	else if (now - b->failover->no_path_since >= limit)
		ha_bundle_abort(b, -EIO, HA_CAUSE_RETRIES,
				"no rail came back within %.1f s (HA_NCCL_MAX_RETRIES)",
				(double)limit / 1e9);
	else
		look_at_no_path_again(b, now, limit);
}
