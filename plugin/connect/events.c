/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * events.c - log what happens to devices and ports, and notify the connections on them
 *
 * A port that went down takes every rail on it with it, at once; where failover is off, only the
 * NIC's own error does. It stays a port that may come back, with another address perhaps. A device
 * that has failed is gone for good for everything opened on it, and is looked for (returns.h).
 */
#include "plugin/connect/events.h"

#include "base/log.h"
#include "plugin/bundle.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "plugin/failover/failover.h"
#include "plugin/report/journal.h"
#include "rdma/topo/device.h"
#include "rdma/verbs/status.h"

#include <string.h>
#include <sys/epoll.h>

static enum ha_event_cause cause_of(enum ibv_event_type type)
{
	switch (type) {
	case IBV_EVENT_DEVICE_FATAL:
		return HA_CAUSE_DEVICE_FAILED;
	case IBV_EVENT_PORT_ERR:
		return HA_CAUSE_PORT_DOWN;
	case IBV_EVENT_PORT_ACTIVE:
		return HA_CAUSE_PORT_UP;
	default:
		return HA_CAUSE_PORT_CHANGED;
	}
}

/* What it means for the rails on this port. */
static void follow_event(struct ha_device *dev, enum ibv_event_type type, enum ha_event_cause cause)
{
	if (type != IBV_EVENT_DEVICE_FATAL)
		ha_failover_port(dev);
	switch (type) {
	case IBV_EVENT_DEVICE_FATAL:
	case IBV_EVENT_PORT_ERR:
		ha_failover_device(dev, cause);
		return;
	default:
		ha_failover_device_back(dev);
	}
}

/* With NCCL_IB_RETURN_ASYNC_EVENTS=0 these are only logged; that a port is back, or elsewhere, is
 * followed. */
static bool is_fault(enum ibv_event_type type)
{
	return type == IBV_EVENT_DEVICE_FATAL || type == IBV_EVENT_PORT_ERR;
}

/* An event of the whole device or of one of its ports. */
static void on_device(struct ha_ctx *ctx, struct ha_nic *nic, const struct ibv_async_event *e,
		      bool whole)
{
	bool fatal = e->event_type == IBV_EVENT_DEVICE_FATAL;
	const char *advice = ha_verbs_event_advice(e->event_type);
	struct ha_event event = { .kind = HA_EVENT_DEVICE };
	bool followed = false;

	for (int i = 0; i < ctx->nports; i++) {
		struct ha_device *dev = &ctx->devices[i];

		if (dev->now->nic != nic || (!whole && dev->topo->port != e->element.port_num))
			continue;
		event.cause = cause_of(e->event_type);
		event.device = dev;
		ha_journal_eventf(ctx, &event, "%s%s%s", ha_verbs_event_name(e->event_type),
				  *advice ? "; " : "", advice);
		if (is_fault(e->event_type) && !ctx->config.ib_return_async_events)
			continue;
		followed = true;
		if (fatal)
			atomic_store_explicit(&dev->failed, -EIO, memory_order_release);
		follow_event(dev, e->event_type, event.cause);
	}
	if (followed && fatal)
		ha_returns_lost(nic);
	else if (followed && is_fault(e->event_type))
		ha_returns_port_down(ctx);
}

/* The bundle cannot go before the event is acknowledged: destroying its queue pair waits for
 * that. */
static void request_recovery(struct ha_bundle *b, const struct ibv_qp *qp, const struct ibv_cq *cq)
{
	if (!b || atomic_load(&b->closing)) /* NULL: of an incarnation that is over (reaper.h) */
		return;
	if (!b->ctx->config.ib_return_async_events)
		return;
	for (unsigned i = 0; i < b->nrails; i++)
		if ((qp && (b->rail[i].qp == qp || b->rail[i].flush.qp == qp)) ||
		    (cq && (b->rail[i].cq == cq || b->rail[i].flush.cq == cq)))
			b->failover->ctl[i].fence_wanted = HA_CAUSE_QUEUE_ERROR;
	ha_due_now(b);
}

/* The queue is replaced, and so is every incarnation on it; those that wait to be launched are seen
 * then (failover.c). */
static void receives_failed(struct ha_ctx *ctx, const struct ibv_srq *srq)
{
	bool ours = false;

	for (int i = 0; i < ctx->nports && !ours; i++)
		ours = ha_opening_replace_srq(ctx->devices[i].now, srq);
	if (ours)
		ha_failover_srq(ctx, srq);
}

static void last_receive(struct ha_bundle *b, const struct ibv_qp *qp)
{
	if (!b || atomic_load(&b->closing))
		return;
	for (unsigned i = 0; i < b->nrails; i++)
		if (b->rail[i].qp == qp)
			/* Release: what was taken before is in the completion queue. */
			atomic_store_explicit(&b->failover->ctl[i].fence.last_receive, true,
					      memory_order_release);
	ha_due_now(b);
}

static void on_queue(const struct ha_device *dev, const struct ibv_async_event *e)
{
	struct ha_event event = { .kind = HA_EVENT_DEVICE,
				  .cause = HA_CAUSE_QUEUE_ERROR,
				  .device = dev };

	switch (e->event_type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
		event.bundle = e->element.qp->qp_context;
		request_recovery(e->element.qp->qp_context, e->element.qp, NULL);
		break;
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		last_receive(e->element.qp->qp_context, e->element.qp);
		return;
	case IBV_EVENT_CQ_ERR:
		event.bundle = e->element.cq->cq_context;
		request_recovery(e->element.cq->cq_context, NULL, e->element.cq);
		break;
	case IBV_EVENT_SRQ_ERR:
		if (dev->ctx->config.ib_return_async_events)
			receives_failed(dev->ctx, e->element.srq);
		break;
	default:
		HA_TRACE(dev->name, "%s", ha_verbs_event_name(e->event_type));
		return;
	}
	ha_journal_eventf(dev->ctx, &event, "%s; %s", ha_verbs_event_name(e->event_type),
			  ha_verbs_event_advice(e->event_type));
}

static void handle_event(struct ha_nic *nic, const struct ibv_async_event *e)
{
	enum ha_verbs_scope scope = ha_verbs_event_scope(e->event_type);

	if (scope == HA_SCOPE_DEVICE || scope == HA_SCOPE_PORT)
		on_device(nic->ctx, nic, e, scope == HA_SCOPE_DEVICE);
	else
		on_queue(nic->dev, e);
}

static void drain_events(struct ha_nic *nic)
{
	const struct ha_verbs_ops *v = nic->ctx->verbs;
	struct ibv_async_event e;

	/* A bounded number: a device that never stops must not stop us. */
	for (int i = 0; i < 64 && !v->get_async_event(v, nic->verbs, &e); i++) {
		handle_event(nic, &e);
		v->ack_async_event(v, &e);
	}
}

static void events_ready(struct ha_watch *watch, uint32_t events)
{
	drain_events((struct ha_nic *)((char *)watch - offsetof(struct ha_nic, events)));
	(void)events;
}

int ha_events_watch(struct ha_nic *nic)
{
	struct ibv_context *context = nic->verbs;
	int err;

	nic->events = (struct ha_watch) { .fd = -1, .ready = events_ready };
	if (context->async_fd < 0)
		return 0;
	err = ha_verbs_events_nonblock(context);
	if (err) {
		HA_WARN(ha_device_name(nic->dev),
			"cannot read the device's events: %s; a failed port is noticed by "
			"time-outs only. Check the rights on /dev/infiniband",
			strerror(-err));
		return 0;
	}
	nic->events.fd = context->async_fd;
	err = ha_loop_add(&nic->ctx->loop, &nic->events, EPOLLIN);
	if (err)
		nic->events.fd = -1;
	return err;
}

/* One that has failed has nothing more to say. It stays in the list, at least until the next round.
 */
void ha_events_poll(struct ha_ctx *ctx)
{
	struct ha_nic *nic;

	TAILQ_FOREACH(nic, &ctx->returns.nics, entry)
		if (nic->verbs->async_fd < 0 &&
		    !atomic_load_explicit(&nic->lost, memory_order_relaxed))
			drain_events(nic);
}
