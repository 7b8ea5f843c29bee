/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/connect/service.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/yield.h"
#include "plugin/channel/inbox.h"
#include "plugin/channel/stream.h"
#include "plugin/connect/accept.h"
#include "plugin/connect/events.h"
#include "plugin/connect/pending.h"
#include "plugin/connect/setup.h"
#include "plugin/ctx.h"
#include "plugin/failover/failover.h"
#include "plugin/report/journal.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>

#define SOFT_POLL_NS HA_NS_PER_MS /* how often streams without descriptors are looked at */
#define SLEEP_MAX_NS (60 * HA_NS_PER_S)
#define SLEEP_MIN_NS (20 * HA_NS_PER_US)
/* a fence is timed in microseconds, and short: a thread that sleeps wakes up late */
#define SLEEP_MIN_URGENT_NS HA_NS_PER_MS
/* A round and a yield take less where the processor is not shared. Where it is, each yield of this
 * thread is a turn that a polling rank waits for. */
#define AWAKE_ROUND_NS (2 * HA_NS_PER_US)

/* For out-of-band streams and devices without descriptors. */
static void ask_everybody(struct ha_ctx *ctx)
{
	ha_events_poll(ctx);
	if (!ctx->oob.soft)
		return;
	ha_listens_poll(ctx);
	ha_inboxes_poll(ctx);
}

/* One round. Returns when something will be due again, UINT64_MAX: never. */
static uint64_t round_locked(struct ha_ctx *ctx)
{
	uint64_t next, listens, hookups, drive, leave, advice, refresh, returns,
		now = ha_clock_now(ctx->clock);

	ctx->service.rounds++;
	/* The watches that epoll hands out are good: they are removed under ctx->drive, which we
	 * hold, before their owners are freed. */
	ha_loop_dispatch(&ctx->loop);
	ask_everybody(ctx);
	listens = ha_listens_round(ctx, now);
	hookups = ha_hookups_round(ctx);
	next = ha_pending_drive(ctx);
	drive = ha_failover_round(ctx);
	leave = ha_streams_leaving(ctx, now);
	advice = ha_advice_round(ctx, now);
	next = listens < next ? listens : next;
	next = drive < next ? drive : next;
	next = hookups < next ? hookups : next;
	next = leave < next ? leave : next;
	next = advice < next ? advice : next;
	returns = ha_returns_round(ctx, now);
	next = returns < next ? returns : next;
	refresh = ha_journal_round(ctx, now);
	next = refresh < next ? refresh : next;
	now = ha_clock_now(ctx->clock);
	ctx->service.busy = drive <= now;
	return ctx->oob.soft && next > now + SOFT_POLL_NS ? now + SOFT_POLL_NS : next;
}

void ha_ctx_progress(struct ha_ctx *ctx)
{
	if (ctx->loop.threaded || pthread_mutex_trylock(&ctx->drive))
		return;
	round_locked(ctx);
	pthread_mutex_unlock(&ctx->drive);
}

/* Work comes in bursts (the messages of a set-up, the steps of a failover), and a thread that
 * sleeps wakes up late. */
static bool stay_awake(struct ha_ctx *ctx)
{
	struct ha_service *s = &ctx->service;
	uint64_t now = ha_clock_now(ctx->clock);

	if (ctx->loop.worked) {
		s->awake = ctx->config.idle_spin_threshold;
		s->awake_until = now + (uint64_t)s->awake * AWAKE_ROUND_NS;
	} else if (s->awake > 0) {
		s->awake--;
	}
	ctx->loop.worked = false;
	return s->awake > 0 && now < s->awake_until;
}

/* Until `next`, or something happens. Only to sleep: what is ready is asked for again under the
 * lock. */
static void sleep_until(struct ha_ctx *ctx, uint64_t next, bool urgent)
{
	uint64_t now = ha_clock_now(ctx->clock),
		 least = urgent ? SLEEP_MIN_URGENT_NS : SLEEP_MIN_NS;

	if (next < now + least)
		return;
	ha_loop_wait(&ctx->loop, next - now < SLEEP_MAX_NS ? next - now : SLEEP_MAX_NS);
}

static void *service_main(void *arg)
{
	struct ha_ctx *ctx = arg;
	bool stop = false, awake = false, urgent = false;
	uint64_t next = 0;

	ha_set_exact_sleeps();
	while (!stop) {
		if (!awake)
			sleep_until(ctx, next, urgent);
		else if (!ctx->service.busy)
			sched_yield();
		pthread_mutex_lock(&ctx->drive);
		next = round_locked(ctx);
		urgent = ctx->round.urgent;
		awake = stay_awake(ctx);
		stop = ctx->service.stop;
		pthread_mutex_unlock(&ctx->drive);
	}
	return NULL;
}

/* The host program's signals are not for us. */
static int thread_start(struct ha_ctx *ctx)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&ctx->service.thread, NULL, service_main, ctx);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		return -err;
	pthread_setname_np(ctx->service.thread, "hawser");
	return 0;
}

int ha_service_open(struct ha_ctx *ctx)
{
	int err = ha_loop_open_wake(&ctx->loop);

	if (err)
		HA_WARN(NULL,
			"cannot watch sockets and devices (epoll, eventfd): %s; raise the limit of "
			"open files (ulimit -n)",
			strerror(-err));
	return err;
}

void ha_service_close(struct ha_ctx *ctx)
{
	ha_loop_close(&ctx->loop);
}

int ha_service_start(struct ha_ctx *ctx)
{
	int err;

	if (!ctx->config.use_progress_thread)
		return 0;
	ctx->loop.threaded = true; /* before there is a thread that could read it */
	err = thread_start(ctx);
	if (!err)
		return 0;
	ctx->loop.threaded = false;
	HA_WARN(NULL,
		"cannot start the service thread: %s; raise the limit of threads (ulimit -u), or "
		"set "
		"HA_NCCL_USE_PROGRESS_THREAD=0",
		strerror(-err));
	return err;
}

void ha_service_stop(struct ha_ctx *ctx)
{
	struct ha_service *s = &ctx->service;

	if (!ctx->loop.threaded)
		return;
	pthread_mutex_lock(&ctx->drive);
	s->stop = true;
	pthread_mutex_unlock(&ctx->drive);
	ha_loop_wake(&ctx->loop);
	pthread_join(s->thread, NULL);
	ctx->loop.threaded = false;
}
