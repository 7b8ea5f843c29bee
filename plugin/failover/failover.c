/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * failover.c - what happened, and what it means for a rail: the owner's and the devices' word; how
 * a connection is launched
 */
#include "plugin/failover/failover.h"

#include "base/clock.h"
#include "base/log.h"
#include "plugin/balance/policy.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "plugin/device/rail.h"
#include "plugin/report/journal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

/* A connection without failover ends when its queue pair gives up, not before: the port may be back
 * by then. */
static bool is_affected(const struct ha_bundle *b, enum ha_event_cause cause)
{
	return b->terms.flags & HA_FLAG_FAILOVER || cause == HA_CAUSE_DEVICE_FAILED;
}

void ha_failover_device(struct ha_device *dev, enum ha_event_cause cause)
{
	struct ha_bundle *b;

	LIST_FOREACH(b, &dev->ctx->bundles, entry)
		for (unsigned i = 0; i < b->nrails; i++)
			if (b->rail[i].dev == dev && is_affected(b, cause)) {
				b->failover->ctl[i].fence_wanted = (uint8_t)cause;
				ha_due_now(b);
			}
}

void ha_failover_speed(struct ha_device *dev)
{
	struct ha_bundle *b;

	LIST_FOREACH(b, &dev->ctx->bundles, entry)
		for (unsigned i = 0; i < b->balance.ndata; i++)
			if (b->rail[i].dev == dev) {
				b->balance.speed_changed = true;
				ha_due_now(b);
			}
}

/* A port that trained its link anew may have come back slower, or faster. */
static void follow_speed(struct ha_device *dev)
{
	struct ha_event event = { .kind = HA_EVENT_DEVICE,
				  .cause = HA_CAUSE_PORT_CHANGED,
				  .device = dev };
	int before = dev->speed_followed, now = ha_device_speed(dev);

	if (now == before || now <= 0)
		return;
	dev->speed_followed = now;
	if (before <= 0)
		return;
	ha_journal_eventf(
		dev->ctx, &event,
		"its speed is %d Mb/s now and was %d Mb/s; shares of fused devices follow%s", now,
		before, now < before ? "; look at its cable, and at the switch's port" : "");
	ha_failover_speed(dev);
}

static void follow_address(struct ha_device *dev)
{
	struct ha_bundle *b;

	if (!ha_device_usable(dev))
		return;
	LIST_FOREACH(b, &dev->ctx->bundles, entry)
		for (unsigned i = 0; i < b->nrails; i++) {
			struct ha_rail *r = &b->rail[i];

			if (r->dev != dev || !r->qp || !ha_rail_has_moved(r) ||
			    !is_affected(b, HA_CAUSE_PORT_CHANGED))
				continue;
			b->failover->ctl[i].fence_wanted = HA_CAUSE_PORT_CHANGED;
			ha_due_now(b);
		}
}

void ha_failover_port(struct ha_device *dev)
{
	ha_device_refresh(dev);
	follow_speed(dev);
	follow_address(dev);
}

void ha_failover_srq(struct ha_ctx *ctx, const struct ibv_srq *srq)
{
	struct ha_bundle *b;

	LIST_FOREACH(b, &ctx->bundles, entry)
		for (unsigned i = 0; i < b->nrails; i++)
			if (b->rail[i].qp && b->rail[i].srq == srq) {
				b->failover->ctl[i].fence_wanted = HA_CAUSE_QUEUE_ERROR;
				ha_due_now(b);
			}
}

/* The sender alone decides when to try again, and sees nothing of a receiver's port. */
static void report_return(struct ha_bundle *b, const struct ha_rail *r)
{
	if (b->is_send || r->state != HA_RAIL_DOWN)
		return;
	b->failover->ctl[r->index].out.due |= HA_SEND(RAIL_BACK);
	ha_due_now(b);
}

void ha_failover_device_back(struct ha_device *dev)
{
	struct ha_bundle *b;

	LIST_FOREACH(b, &dev->ctx->bundles, entry)
		for (unsigned i = 0; i < b->nrails; i++)
			/* the spares may take any device */
			if (b->rail[i].dev == dev || i >= b->balance.ndata) {
				b->failover->ctl[i].port_back = true;
				ha_due_now(b);
			}
}

static void take_ports_back(struct ha_bundle *b)
{
	bool back = false, said = false; /* of the spares, one is enough */

	for (unsigned i = 0; i < b->nrails; i++) {
		struct ha_control *k = &b->failover->ctl[i];

		if (!k->port_back)
			continue;
		k->port_back = false;
		back = true;
		ha_incarnation_hurry(b, &b->rail[i]);
		if (!said)
			report_return(b, &b->rail[i]);
		said |= i >= b->balance.ndata && b->rail[i].state == HA_RAIL_DOWN;
	}
	if (back)
		ha_spares_port_back(b);
}

static const char *request_text(enum ha_event_cause cause)
{
	switch (cause) {
	case HA_CAUSE_PORT_DOWN:
		return "its port went down";
	case HA_CAUSE_PORT_CHANGED:
		return "its port has another address now";
	case HA_CAUSE_DEVICE_FAILED:
		return "its device has failed";
	case HA_CAUSE_QUEUE_ERROR:
		return "one of its queues is in error";
	case HA_CAUSE_SIBLING:
		return "another connection has just lost the same port";
	default:
		return ha_event_cause_text(cause);
	}
}

static void take_fence_requests(struct ha_bundle *b)
{
	for (unsigned i = 0; i < b->nrails; i++) {
		struct ha_control *k = &b->failover->ctl[i];

		if (!k->fence_wanted)
			continue;
		ha_rail_suspect(b, &b->rail[i], k->fence_wanted, "%s",
				request_text(k->fence_wanted));
		k->fence_wanted = HA_CAUSE_NONE;
	}
}

void ha_device_news_take(struct ha_bundle *b)
{
	take_fence_requests(b);
	take_ports_back(b);
}

/* Not protected, and why; a standby may still come where both ends have a second device. */
static void report_unprotected(struct ha_bundle *b)
{
	struct ha_event e = { .kind = HA_EVENT_NOT_PROTECTED, .bundle = b };

	if (!b->ctx->config.enable_backup) {
		e.cause = HA_CAUSE_DISABLED;
		e.text = "HA_NCCL_ENABLE_BACKUP is 0 here: a broken path ends the connection";
	} else if (!(b->terms.flags & HA_FLAG_FAILOVER)) {
		e.cause = HA_CAUSE_PEER_WITHOUT;
		e.text = "the peer has no failover, or has it disabled: a broken path ends the "
			 "connection";
	} else if (!(b->terms.offers & HA_FLAG_DUAL_PATH)) {
		e.cause = HA_CAUSE_NO_STANDBY;
		e.text = "no second device here (`ha topo`): a broken path is rebuilt on the same "
			 "port";
	} else {
		e.cause = HA_CAUSE_PEER_WITHOUT;
		e.text = "the peer has no second device: a broken path is rebuilt on the same port";
	}
	ha_journal_event(b->ctx, &e);
}

void ha_failover_launch(struct ha_bundle *b)
{
	uint64_t now = ha_clock_now(b->ctx->clock);

	if (b->terms.flags & HA_FLAG_ACK_MEMORY) {
		b->await = b->is_send ? HA_AWAIT_DELIVERY : 0;
		atomic_fetch_or_explicit(&b->attention, HA_ATTN_DELIVERY, memory_order_relaxed);
	}
	b->balance.ndata = b->nrails;
	ha_policy_turns(b, b->ctx->config.ib_split_data_on_qps && !b->ctx->mpib.on);
	ha_share_rails(b);
	for (unsigned i = 0; i < b->balance.ndata; i++) {
		b->balance.weight[i] = b->balance.share[i];
		b->registered.rails |= (uint8_t)(1u << i);
		ha_incarnation_begun(b, &b->rail[i], now);
		/* it failed while the connection was made */
		if (b->rail[i].srq != ha_device_srq(b->rail[i].dev))
			b->failover->ctl[i].fence_wanted = HA_CAUSE_QUEUE_ERROR;
		/* Its event was before us; else the NIC's own time-outs would have to find out. */
		if (is_affected(b, HA_CAUSE_PORT_DOWN) && !ha_device_usable(b->rail[i].dev))
			b->failover->ctl[i].fence_wanted = HA_CAUSE_PORT_DOWN;
	}
	for (unsigned spares = ha_spares_count(b); spares; spares--) {
		struct ha_rail *r = &b->rail[b->nrails];

		r->index = b->nrails++;
		ha_rail_enter(r, HA_RAIL_DOWN);
		ha_compare_enter(b, r, HA_COMPARE_SETTLED); /* there is none to compare */
	}
	ha_roles_update(b);
	ha_gate_join(b, !ha_policy_one_device(b, (1u << b->balance.ndata) - 1));
	ha_lag_join(b);
	if (b->nrails == b->balance.ndata && ha_policy_one_device(b, b->active))
		report_unprotected(b);
	ha_due_now(b);
}
