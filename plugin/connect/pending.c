/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/connect/pending.h"

#include "base/clock.h"
#include "base/log.h"
#include "plugin/channel/stream.h"
#include "plugin/connect/setup.h"
#include "plugin/ctx.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Lines about unauthenticated peers: so many per interval, then their number. A port scan must not
 * fill a log. */
#define UNAUTHENTICATED_LINES 10
#define UNAUTHENTICATED_INTERVAL_NS (10 * HA_NS_PER_S)

/* Steps of one round. Each may run slow verbs, and those who wait for ctx->drive, or for news of a
 * dead peer, should not wait for hundreds of them. */
#define STEPS_PER_ROUND 16

struct ha_pending *ha_pending_new(struct ha_ctx *ctx, const struct ha_pending_side *side,
				  enum ha_pending_state state, uint64_t limit_ms)
{
	struct ha_pending *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->ctx = ctx;
	p->side = side;
	p->deadline = ha_clock_now(ctx->clock) + limit_ms * HA_NS_PER_MS;
	p->runnable = true;
	atomic_init(&p->state, state);
	return p;
}

static void release_connection(struct ha_pending *p)
{
	ha_stream_close(p->stream);
	p->stream = NULL;
	if (p->bundle)
		ha_bundle_free(p->bundle);
	p->bundle = NULL;
}

void ha_pending_free(struct ha_pending *p)
{
	release_connection(p);
	free(p);
}

int ha_pending_why(struct ha_pending *p, int err, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(p->why, sizeof(p->why), fmt, args);
	va_end(args);
	return err;
}

void ha_pending_ready(struct ha_watch *watch, uint32_t events)
{
	(void)events;
	((struct ha_pending *)((struct ha_stream *)watch)->owner)->runnable = true;
}

void ha_pending_connected(void *pending)
{
	((struct ha_pending *)pending)->runnable = true;
}

/* May a line about an unauthenticated peer be written now? */
static bool may_log_unauthenticated(struct ha_ctx *ctx)
{
	uint64_t now = ha_clock_now(ctx->clock);

	if (now - ctx->setup.unauthenticated_since > UNAUTHENTICATED_INTERVAL_NS) {
		if (ctx->setup.unauthenticated_silent)
			HA_WARN(NULL,
				"%u more connections from peers that did not authenticate were "
				"refused and are not logged one by one",
				ctx->setup.unauthenticated_silent);
		ctx->setup.unauthenticated_since = now;
		ctx->setup.unauthenticated_logged = ctx->setup.unauthenticated_silent = 0;
	}
	if (ctx->setup.unauthenticated_logged < UNAUTHENTICATED_LINES) {
		ctx->setup.unauthenticated_logged++;
		return true;
	}
	ctx->setup.unauthenticated_silent++;
	return false;
}

static const char *reason_of(const struct ha_pending *p, int err)
{
	if (p->why[0])
		return p->why;
	switch (err) {
	case -ETIMEDOUT:
		return "no answer in time (HA_NCCL_CONNECT_TIMEOUT_MS); is that process alive, its "
		       "port not firewalled?";
	case -EPIPE:
	case -ECONNRESET:
		return "it ended the connection; look at that rank's log";
	case -EPROTO:
		return "it does not use hawser's protocol";
	default:
		return strerror(-err);
	}
}

static void log_failure(const struct ha_pending *p, int state, int err)
{
	if (p->explained || p->untaken)
		return;
	if (!p->listen)
		HA_WARN(p->bundle ? p->bundle->name : NULL, "connecting to %s failed while %s: %s",
			p->who, p->side->state[state].doing, reason_of(p, err));
	else if (!p->unauthenticated)
		HA_WARN(p->bundle ? p->bundle->name : NULL,
			"the connection from %s failed while %s: %s", p->who,
			p->side->state[state].doing, reason_of(p, err));
	else if (may_log_unauthenticated(p->ctx))
		HA_WARN(NULL, "refused a connection from %s, which is not a peer of this job: %s",
			p->who, reason_of(p, err));
}

/* It has left ctx->setup.driven. From the store on, a connecting one belongs to ha_connect; a
 * listening one ends here. */
static void fail_pending(struct ha_pending *p, int state, int err)
{
	p->untaken = state == HA_PENDING_OFFERED && !p->taken;
	log_failure(p, state, err);
	release_connection(p);
	if (p->side->failed) {
		p->side->failed(p);
		return;
	}
	p->error = err == -EPIPE ? -ECONNRESET : err;
	atomic_store_explicit(&p->state, HA_PENDING_FAILED, memory_order_release);
}

static void complete_pending(struct ha_pending *p)
{
	void (*up)(struct ha_listen * listen) = p->side->up;
	struct ha_listen *listen = p->listen;

	ha_bundle_launch(p->bundle, p->stream);
	p->stream = NULL;
	atomic_store_explicit(&p->state, HA_PENDING_UP, memory_order_release);
	if (up)
		up(listen); /* p is ha_connect's or ha_accept's by now */
}

/* Move as far as it goes. 0: it waits. Else it is through, *state says how far it came, and the
 * result is 1 or the error. */
static int step_pending(struct ha_pending *p, int *state)
{
	*state = atomic_load_explicit(&p->state, memory_order_relaxed);
	p->runnable = false;
	for (;;) {
		int next = p->side->state[*state].handle(p);

		if (next == -EAGAIN && ha_clock_now(p->ctx->clock) < p->deadline)
			return 0;
		if (next == -EAGAIN)
			return p->dial_error ? p->dial_error : -ETIMEDOUT;
		if (next < 0)
			return next;
		if (next == HA_PENDING_UP)
			return 1;
		p->ctx->loop.worked = true;
		*state = next;
		atomic_store_explicit(&p->state, next, memory_order_relaxed);
	}
}

static void take_incoming(struct ha_ctx *ctx)
{
	struct ha_pending *p, *next;

	pthread_mutex_lock(&ctx->lock);
	p = LIST_FIRST(&ctx->setup.incoming);
	LIST_INIT(&ctx->setup.incoming);
	pthread_mutex_unlock(&ctx->lock);
	for (; p; p = next) {
		next = LIST_NEXT(p, driven);
		LIST_INSERT_HEAD(&ctx->setup.driven, p, driven);
	}
}

static uint64_t wake_at(const struct ha_pending *p)
{
	return atomic_load_explicit(&p->state, memory_order_relaxed) == HA_PENDING_DIAL &&
			       p->dial_at < p->deadline
		       ? p->dial_at
		       : p->deadline;
}

uint64_t ha_pending_drive(struct ha_ctx *ctx)
{
	uint64_t now = ha_clock_now(ctx->clock), next = UINT64_MAX;
	struct ha_pending *p, *behind;
	int steps = 0;

	take_incoming(ctx);
	for (p = LIST_FIRST(&ctx->setup.driven); p; p = behind) {
		int state, result = 0;

		if (ctx->oob.soft ||
		    ((p->runnable || now >= wake_at(p)) && steps++ < STEPS_PER_ROUND))
			result = step_pending(p, &state);
		else if (p->runnable)
			next = now;
		behind = LIST_NEXT(p, driven);
		if (!result) {
			if (wake_at(p) < next)
				next = wake_at(p);
			continue;
		}
		LIST_REMOVE(p, driven);
		if (result > 0)
			complete_pending(p);
		else
			fail_pending(p, state, result);
	}
	return next;
}

void ha_pending_push(struct ha_pending *p)
{
	int state, result = step_pending(p, &state);

	if (!result)
		return;
	LIST_REMOVE(p, driven);
	if (result > 0)
		complete_pending(p);
	else
		fail_pending(p, state, result);
}

void ha_pending_forget(struct ha_pending *p)
{
	if (p->bundle)
		ha_bundle_unhook(p->bundle);
	if (atomic_load_explicit(&p->state, memory_order_relaxed) < HA_PENDING_UP)
		LIST_REMOVE(p, driven);
}
