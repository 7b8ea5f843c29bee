/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/transfer/suspect.h"

#include "base/clock.h"
#include "base/log.h"
#include "plugin/balance/policy.h"
#include "plugin/channel/schedule.h"
#include "plugin/ctx.h"
#include "plugin/report/journal.h"
#include "rdma/verbs/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* By state: those that may follow. */
static const uint8_t followers[] = {
	[HA_RAIL_NONE] = 1 << HA_RAIL_UP | 1 << HA_RAIL_DOWN,
	[HA_RAIL_UP] = 1 << HA_RAIL_FENCING,
	[HA_RAIL_DOWN] = 1 << HA_RAIL_JOIN | 1 << HA_RAIL_FENCING,
	[HA_RAIL_FENCING] = 1 << HA_RAIL_FENCED,
	[HA_RAIL_FENCED] = 1 << HA_RAIL_DOWN,
	[HA_RAIL_JOIN] = 1 << HA_RAIL_PROBE | 1 << HA_RAIL_UP | 1 << HA_RAIL_FENCING,
	[HA_RAIL_PROBE] = 1 << HA_RAIL_UP | 1 << HA_RAIL_FENCING,
};

static const char *const state_names[] = {
	[HA_RAIL_NONE] = "none",       [HA_RAIL_UP] = "up",         [HA_RAIL_DOWN] = "down",
	[HA_RAIL_FENCING] = "fencing", [HA_RAIL_FENCED] = "fenced", [HA_RAIL_JOIN] = "join",
	[HA_RAIL_PROBE] = "probe",
};

/* Anything else is a defect; the simulator stops at it, a job goes on and logs it. */
void ha_rail_enter(struct ha_rail *r, enum ha_rail_state state)
{
	if (!(followers[r->state] >> state & 1))
		HA_WARN(NULL,
			"rail %u, epoch %u: state '%s' does not lead to state '%s'; please report "
			"this",
			r->index, r->epoch, state_names[r->state], state_names[state]);
	r->state = (uint8_t)state;
}

void ha_bundle_abort(struct ha_bundle *b, int err, enum ha_event_cause cause, const char *fmt, ...)
{
	char text[sizeof(b->abort->text)]; /* what was held may be said */
	va_list ap;

	if (b->abort->error)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	memcpy(b->abort->text, text, sizeof(text));
	b->abort->error = err;
	b->abort->cause = (uint8_t)cause;
	b->abort->quiet = cause == HA_CAUSE_NONE;
	b->abort->due = !b->abort->quiet && cause != HA_CAUSE_PEER_GONE && !b->peer_closed &&
			b->terms.flags & HA_FLAG_FAILOVER;
	ha_bundle_drive_soon(b);
}

static bool is_ending(const struct ha_bundle *b)
{
	return b->peer_closed || b->abort->error || b->error;
}

void ha_rail_suspect(struct ha_bundle *b, struct ha_rail *r, enum ha_event_cause cause,
		     const char *fmt, ...)
{
	const struct ha_event suspected = {
		.kind = HA_EVENT_SUSPECTED, .cause = cause, .bundle = b, .rail = r
	};
	bool was_up = r->state == HA_RAIL_UP, news = was_up && cause != HA_CAUSE_SURPLUS;
	char text[256];
	va_list ap;

	if (!was_up && r->state != HA_RAIL_JOIN && r->state != HA_RAIL_PROBE)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	ha_rail_enter(r, HA_RAIL_FENCING);
	b->active &= (uint8_t) ~(1u << r->index);
	ha_policy_update(b);
	r->loss.cause = (uint8_t)cause;
	r->loss.suspected_at = ha_clock_now(b->ctx->clock);
	if (was_up)
		r->loss.lost_at = r->loss.suspected_at;
	if (news && b->terms.flags & HA_FLAG_FAILOVER)
		ha_journal_hold(b->ctx);
	if (news && !is_ending(b))
		ha_journal_eventf(b->ctx, &suspected, "%s", text);
	else
		HA_TRACE(b->name, "rail %u, epoch %u: %s", r->index, r->epoch, text);
	if (!(b->terms.flags & HA_FLAG_FAILOVER))
		ha_bundle_abort(b, -EIO, HA_CAUSE_NO_RAIL,
				"no rail is left; failover is off at this end or the other "
				"(HA_NCCL_ENABLE_BACKUP)");
	ha_bundle_drive_soon(b);
}

/* ---- work requests that fail ---- */

/* The slot of the oldest message that is not through; the next one's when all are. */
static uint64_t oldest_open(const struct ha_bundle *b)
{
	const struct ha_send *s = (const struct ha_send *)b;
	const struct ha_recv *c = (const struct ha_recv *)b;
	uint64_t oldest = b->is_send ? s->head : c->head;

	for (unsigned i = 0; i < HA_SLOTS; i++) {
		bool open = b->is_send ? s->slot[i].n && s->slot[i].pending
				       : (c->slot[i].busy & HA_SLOT_WIRE) != 0;
		uint64_t idx = b->is_send ? s->slot[i].idx : c->slot[i].idx;

		if (open && idx < oldest)
			oldest = idx;
	}
	return oldest;
}

/* The peer's NIC said no. Another pair of NICs may do better, if there is one; when the same
 * message has been refused on another rail, too, the request is wrong wherever it goes. */
static bool refused_for_good(struct ha_bundle *b, const struct ha_rail *r)
{
	uint64_t oldest = oldest_open(b),
		 head = b->is_send ? ((struct ha_send *)b)->head : ((struct ha_recv *)b)->head;
	uint8_t bit = (uint8_t)(1u << r->index);

	if (b->refused->slot != oldest + 1)
		b->refused->rails = 0;
	b->refused->slot = oldest + 1;
	b->refused->rails |= bit;
	return !(b->active & ~bit) || (oldest != head && b->refused->rails & ~bit);
}

static bool is_fatal_status(struct ha_bundle *b, const struct ha_rail *r, enum ibv_wc_status status)
{
	enum ha_status_class class = ha_verbs_status_class(status);

	return class == HA_STATUS_FATAL || (class == HA_STATUS_REFUSED && refused_for_good(b, r));
}

/* A refusal may mean that the peer has given its buffers back and is about to close: then BYE
 * comes, and there is no error. */
static void abort_for(struct ha_bundle *b, const struct ha_rail *r, const struct ibv_wc *wc)
{
	char text[sizeof(b->abort->text)];

	snprintf(text, sizeof(text), "work request failed on rail %u: %s (vendor 0x%x); %s",
		 r->index, ha_verbs_status_name(wc->status), wc->vendor_err,
		 ha_verbs_status_advice(wc->status));
	if (b->abort->error || b->abort->held)
		return;
	if (!ha_bundle_closing(b, ha_clock_now(b->ctx->clock))) {
		ha_bundle_abort(b, -EIO, HA_CAUSE_WORK_FAILED, "%s", text);
		return;
	}
	memcpy(b->abort->text, text, sizeof(text));
	b->abort->held = -EIO;
	b->abort->held_until = ha_clock_now(b->ctx->clock) + HA_CLOSING_NS;
	ha_bundle_drive_soon(b);
}

/* Our own NIC has no key any more: the program has given back a buffer that was still in use, as
 * one that closes does. */
static bool is_broken_here(const struct ha_bundle *b, const struct ibv_wc *wc)
{
	return wc->status == IBV_WC_LOC_PROT_ERR &&
	       ha_buffers_given_back(b, ha_clock_now(b->ctx->clock));
}

/* Noted before anything is reported. Our own NIC refuses what it has no key for any more, too. */
static void note_refusal(struct ha_bundle *b, const struct ibv_wc *wc)
{
	uint64_t now = ha_clock_now(b->ctx->clock);

	if (ha_verbs_status_class(wc->status) == HA_STATUS_REFUSED || is_broken_here(b, wc))
		ha_bundle_note_refusal(b, now);
}

/* Where the first that comes back is flushed, no work request of ours has failed. Shortly after
 * buffers were given back it is a peer's that asked for one of them and broke the queue pair, whose
 * event says the same now or a moment later. */
static bool is_broken_by_peer(const struct ha_bundle *b, const struct ibv_wc *wc)
{
	return ha_verbs_status_class(wc->status) == HA_STATUS_FLUSHED &&
	       ha_buffers_given_back(b, ha_clock_now(b->ctx->clock));
}

static void suspect_for(struct ha_bundle *b, struct ha_rail *r, const struct ibv_wc *wc)
{
	if (is_broken_here(b, wc))
		ha_rail_suspect(b, r, HA_CAUSE_QUEUE_ERROR,
				"its queue pair is in error: a buffer was given back here that was "
				"still in use");
	else if (is_broken_by_peer(b, wc))
		ha_rail_suspect(b, r, HA_CAUSE_QUEUE_ERROR,
				"its queue pair is in error: the peer has probably asked for a "
				"buffer that was given back");
	else
		ha_rail_suspect(b, r, HA_CAUSE_WORK_FAILED,
				"work request failed: %s (vendor 0x%x); %s",
				ha_verbs_status_name(wc->status), wc->vendor_err,
				ha_verbs_status_advice(wc->status));
}

void ha_rail_failed(struct ha_bundle *b, struct ha_rail *r, const struct ibv_wc *wc, int err)
{
	if (wc)
		note_refusal(b, wc);
	if (r->state != HA_RAIL_UP && r->state != HA_RAIL_JOIN && r->state != HA_RAIL_PROBE) {
		/* What follows the first error is its flush. But the peer may have reported its
		 * own first. */
		if (r->state == HA_RAIL_FENCING && wc &&
		    ha_verbs_status_class(wc->status) == HA_STATUS_REFUSED &&
		    refused_for_good(b, r))
			abort_for(b, r, wc);
		return;
	}
	r->loss.local = !wc || ha_verbs_status_local(wc->status);
	if (wc && is_fatal_status(b, r, wc->status))
		abort_for(b, r, wc);
	if (b->abort->error)
		return; /* which takes every rail */
	if (wc)
		suspect_for(b, r, wc);
	else
		ha_rail_suspect(b, r, HA_CAUSE_WORK_REFUSED,
				"the device refused work: %s; is it still there (ibv_devinfo)?",
				strerror(-err));
}
