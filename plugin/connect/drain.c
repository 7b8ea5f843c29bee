/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/connect/drain.h"

#include "base/clock.h"
#include "base/config.h"
#include "base/log.h"
#include "plugin/ctx.h"
#include "plugin/failover/control.h"
#include "plugin/report/journal.h"
#include "plugin/transfer/guard.h"

#include <stdio.h>
#include <time.h>

#define STEP_MIN_NS (20 * HA_NS_PER_US)
#define STEP_MAX_NS HA_NS_PER_MS
/* Between two looks; more, and the process or the machine was stopped. */
#define LOOK_MAX_NS (100 * HA_NS_PER_MS)

/* ---- how long ---- */

struct wait {
	uint64_t seen;  /* when it was last asked */
	uint64_t spent; /* ns, without the time in which the process was stopped */
	uint64_t limit;
	long step;
};

static uint64_t limit_ns(const struct ha_ctx *ctx)
{
	return ha_config_rto_ns(&ctx->config) + HA_NS_PER_S;
}

static void wait_begin(struct wait *w, const struct ha_ctx *ctx)
{
	*w = (struct wait) { .seen = ha_clock_now(&ha_clock_live),
			     .limit = limit_ns(ctx),
			     .step = STEP_MIN_NS };
}

/* Sleeps for a moment. False: the time is over. */
static bool wait_more(struct wait *w)
{
	uint64_t now = ha_clock_now(&ha_clock_live), passed = now - w->seen;

	w->seen = now;
	w->spent += passed < LOOK_MAX_NS ? passed : LOOK_MAX_NS;
	if (w->spent >= w->limit)
		return false;
	nanosleep(&(struct timespec) { .tv_nsec = w->step }, NULL);
	w->step = 2 * w->step < (long)STEP_MAX_NS ? 2 * w->step : (long)STEP_MAX_NS;
	return true;
}

/* ---- one connection ---- */

/* The driver's time: no rail has been up for so long that nobody waits for one here. */
static bool has_no_path(const struct ha_bundle *b)
{
	uint64_t since = b->failover->no_path_since;

	return !b->active && since && ha_clock_now(b->ctx->clock) - since >= limit_ns(b->ctx);
}

/* Inside, or the driver with the bundle taken. How many sends below `end` are still to be waited
 * for; *lost: those that are not, since there is no path. Where the connection has its error, or
 * the peer has closed, there is nothing to wait for. */
static unsigned count_outstanding(struct ha_send *s, uint64_t end, unsigned *lost)
{
	unsigned n = 0;

	*lost = 0;
	ha_bundle_poll(&s->b);
	if (!s->b.error && !s->b.peer_closed)
		n = ha_send_copies(s, end);
	if (!has_no_path(&s->b))
		return n;
	*lost = n;
	return 0;
}

static void report_lost(struct ha_send *s, unsigned n)
{
	struct ha_event lost = { .kind = HA_EVENT_LOST,
				 .cause = HA_CAUSE_NO_RAIL,
				 .bundle = &s->b };

	ha_journal_eventf(s->b.ctx, &lost,
			  "closed while %u small sends (HA_NCCL_COPY_MAX) were not acknowledged: "
			  "their receiver gets an error",
			  n);
}

void ha_drain_send(struct ha_send *s)
{
	unsigned left = 0, lost = 0;
	bool seen = false;
	struct wait wait;

	wait_begin(&wait, s->b.ctx);
	for (;;) {
		if (ha_bundle_enter(&s->b) != HA_NOT_NOW) {
			left = count_outstanding(s, s->head, &lost);
			seen = true;
			ha_bundle_leave(&s->b);
		}
		if ((seen && !left) || !wait_more(&wait))
			break;
		s->b.ctx->progress(s->b.ctx);
	}
	if (left + lost)
		report_lost(s, left + lost);
}

/* ---- all connections of a process that ends ---- */

struct left {
	unsigned sends, connections, lost;
	bool unseen; /* a connection could not be looked at */
	char first[sizeof(((struct ha_bundle *)NULL)->name)];
};

static void count_left(struct left *left, const struct ha_send *s, unsigned waited, unsigned lost)
{
	if (!(waited + lost))
		return;
	if (!left->connections++)
		snprintf(left->first, sizeof(left->first), "%s", s->b.name);
	left->sends += waited;
	left->lost += lost;
}

/* What is posted after the first look is not waited for: other threads may go on for ever. */
static void look_at(struct ha_send *s, struct left *left)
{
	unsigned waited, lost;

	ha_bundle_claim(&s->b);
	ha_guard_barrier(s->b.ctx);
	if (!ha_bundle_claimed(&s->b)) {
		left->unseen = true;
		return;
	}
	if (!s->awaited)
		s->awaited = s->head + 1;
	waited = count_outstanding(s, s->awaited - 1, &lost);
	if (!(waited + lost))
		s->awaited = 1;
	ha_bundle_give(&s->b);
	count_left(left, s, waited, lost);
}

/* Whoever has the lock may be the very thread that ends the process, in a signal handler. */
static void look_at_all(struct ha_ctx *ctx, struct left *left)
{
	struct ha_bundle *b;

	*left = (struct left) { .unseen = true };
	if (pthread_mutex_trylock(&ctx->drive))
		return;
	left->unseen = false;
	LIST_FOREACH(b, &ctx->bundles, entry) {
		struct ha_send *s = (struct ha_send *)b;

		if (b->is_send && s->copy_max && s->awaited != 1)
			look_at(s, left);
	}
	pthread_mutex_unlock(&ctx->drive);
}

static void report_left(const struct left *left, const struct wait *wait)
{
	if (!left->connections)
		return;
	HA_WARN(left->first,
		"the process ends without closing its connections, and %u small sends "
		"(HA_NCCL_COPY_MAX) on %u of them, the first of which is this one, were "
		"not acknowledged within %.1f s: their receivers get an error",
		left->sends + left->lost, left->connections, (double)wait->limit / 1e9);
}

/* The last look may find the lock taken; what is reported is what the last whole look saw. */
void ha_ctx_drain(struct ha_ctx *ctx)
{
	struct left left, whole = { 0 };
	struct wait wait;

	wait_begin(&wait, ctx);
	for (;;) {
		look_at_all(ctx, &left);
		if (!left.unseen)
			whole = left;
		if (!(left.sends || left.unseen) || !wait_more(&wait))
			break;
		ctx->progress(ctx);
	}
	report_left(&whole, &wait);
}
