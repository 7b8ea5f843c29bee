/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/device/hookup.h"

#include "base/clock.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "rdma/verbs/ops.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* a hookup that has waited for so long gets a thread of its own */
#define CHECK_INTERVAL_NS HA_NS_PER_MS
#define PER_DEVICE 64 /* threads that a device which hangs may hold; more hookups on it wait */
#define IDLE_S 10     /* a thread without work ends */

struct ha_hookup_worker {
	LIST_ENTRY(ha_hookup_worker) entry; /* in ha_hookups.workers, then in .ended */
	struct ha_ctx *ctx;
	pthread_t thread;
};

/* ---- one hookup ---- */

/* The listener takes the options that the connector offers and answers with what its driver made of
 * them; the connector takes those. Before RTR. A driver that refuses is asked no more: both ends
 * then do without. */
static void settle_ece(const struct ha_verbs_ops *v, struct ha_hookup *h)
{
	const struct ha_wire_ece *peer = &h->peer_ece;
	struct ibv_ece ece = { .vendor_id = peer->vendor_id,
			       .options = peer->options,
			       .comp_mask = peer->comp_mask };

	if (!peer->vendor_id || !h->ece.vendor_id || v->set_ece(v, h->qp, &ece))
		memset(&h->ece, 0, sizeof(h->ece));
}

/* What the driver agreed to. */
static void ask_ece(const struct ha_verbs_ops *v, struct ha_hookup *h)
{
	struct ibv_ece ece = { 0 };

	if (!h->listener || !h->ece.vendor_id)
		return;
	memset(&h->ece, 0, sizeof(h->ece));
	if (!v->query_ece(v, h->qp, &ece))
		h->ece = (struct ha_wire_ece) { ece.vendor_id, ece.options, ece.comp_mask };
}

static void connect_qp(struct ha_hookup *h)
{
	const struct ha_verbs_ops *v = h->ctx->verbs;

	settle_ece(v, h);
	h->failed = "bring the queue pair to RTR";
	h->advice = "can this device's address reach the peer's (NCCL_IB_GID_INDEX, `ha topo`)?";
	h->err = v->modify_qp(v, h->qp, &h->rtr, HA_RTR_MASK);
	if (h->err)
		return;
	h->failed = "bring the queue pair to RTS";
	h->advice = NULL;
	h->err = v->modify_qp(v, h->qp, &h->rts, HA_RTS_MASK);
	if (!h->err)
		ask_ece(v, h);
}

static void destroy_hookup(struct ha_hookup *h)
{
	const struct ha_verbs_ops *v = h->ctx->verbs;

	v->destroy_qp(v, h->qp);
	v->destroy_cq(v, h->cq);
	ha_opening_put(h->opening);
	free(h);
}

/* Under the lock. False: abandoned. */
static bool publish_hookup(struct ha_hookups *all, struct ha_hookup *h)
{
	if (h->abandoned)
		return false;
	TAILQ_INSERT_HEAD(&all->over, h, entry);
	atomic_store_explicit(&h->state, HA_HOOKUP_OVER, memory_order_release);
	return true;
}

/* A published one may be freed by now. */
static void wake_or_destroy(struct ha_ctx *ctx, struct ha_hookup *h, bool published)
{
	if (published)
		ha_loop_wake(&ctx->loop);
	else
		destroy_hookup(h);
}

void ha_hookup_run(struct ha_hookup *h)
{
	struct ha_ctx *ctx = h->ctx;
	bool published;

	connect_qp(h);
	pthread_mutex_lock(&ctx->hookups.lock);
	published = publish_hookup(&ctx->hookups, h);
	pthread_mutex_unlock(&ctx->hookups.lock);
	wake_or_destroy(ctx, h, published);
}

/* ---- threads ---- */

/* Under the lock: the oldest whose device does not hold too many threads already. */
static struct ha_hookup *next_waiting(const struct ha_hookups *all)
{
	struct ha_hookup *h;

	TAILQ_FOREACH(h, &all->queue, entry)
		if (h->dev->hookups < PER_DEVICE)
			break;
	return h;
}

/* Under the lock. False: nothing came for long. */
static bool sleep_on(struct ha_hookups *all)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until); /* the wall clock may jump */
	until.tv_sec += IDLE_S;
	return pthread_cond_timedwait(&all->wake, &all->lock, &until) != ETIMEDOUT;
}

static void end_worker(struct ha_hookups *all, struct ha_hookup_worker *me)
{
	LIST_REMOVE(me, entry);
	all->nworkers--;
	LIST_INSERT_HEAD(&all->ended, me, entry);
	atomic_store_explicit(&all->some_ended, true, memory_order_relaxed);
	ha_loop_wake(&me->ctx->loop);
	pthread_cond_signal(&all->gone);
}

/* Under the lock, from the kernel. */
static void come_back(struct ha_hookups *all, struct ha_device *dev)
{
	all->held_up--;
	dev->hookups--;
}

/* Under the lock, which is released while the kernel works. */
static void work_on(struct ha_ctx *ctx, struct ha_hookup *h)
{
	struct ha_hookups *all = &ctx->hookups;
	struct ha_device *dev = h->dev;
	bool published;

	TAILQ_REMOVE(&all->queue, h, entry);
	dev->hookups++;
	all->held_up++;
	atomic_store_explicit(&h->state, HA_HOOKUP_RUNNING, memory_order_relaxed);
	pthread_mutex_unlock(&all->lock);
	connect_qp(h);
	pthread_mutex_lock(&all->lock);
	published = publish_hookup(all, h);
	if (published)
		come_back(all, dev);
	pthread_mutex_unlock(&all->lock);
	wake_or_destroy(ctx, h, published);
	pthread_mutex_lock(&all->lock);
	if (!published) /* destroying is the kernel's work, too */
		come_back(all, dev);
}

static void *worker_main(void *arg)
{
	struct ha_hookup_worker *me = arg;
	struct ha_hookups *all = &me->ctx->hookups;
	struct ha_hookup *h;
	bool again = true;

	pthread_mutex_lock(&all->lock);
	for (;;) {
		h = next_waiting(all);
		if (h) {
			again = true;
			work_on(me->ctx, h);
		} else if (all->stop || !again) {
			break;
		} else {
			again = sleep_on(all);
		}
	}
	end_worker(all, me);
	pthread_mutex_unlock(&all->lock);
	return NULL;
}

/* Those that have ended by themselves. */
static void join_ended(struct ha_hookups *all)
{
	struct ha_hookup_worker *w, *next;

	pthread_mutex_lock(&all->lock);
	w = LIST_FIRST(&all->ended);
	LIST_INIT(&all->ended);
	atomic_store_explicit(&all->some_ended, false, memory_order_relaxed);
	pthread_mutex_unlock(&all->lock);
	for (; w; w = next) {
		next = LIST_NEXT(w, entry);
		pthread_join(w->thread, NULL);
		free(w);
	}
}

/* The host program's signals are not for it. */
static int thread_start(struct ha_hookup_worker *w)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&w->thread, NULL, worker_main, w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!err)
		pthread_setname_np(w->thread, "hawser-connect");
	return err;
}

static bool add_worker(struct ha_ctx *ctx)
{
	struct ha_hookups *all = &ctx->hookups;
	struct ha_hookup_worker *w = calloc(1, sizeof(*w));
	int err;

	join_ended(all);
	if (!w)
		return false;
	w->ctx = ctx;
	pthread_mutex_lock(&all->lock); /* it must find itself in the list */
	err = thread_start(w);
	if (!err) {
		LIST_INSERT_HEAD(&all->workers, w, entry);
		all->nworkers++;
	}
	pthread_mutex_unlock(&all->lock);
	if (err)
		free(w);
	return !err;
}

/* True: a thread has it, or will. */
static bool enqueue_hookup(struct ha_ctx *ctx, struct ha_hookup *h)
{
	struct ha_hookups *all = &ctx->hookups;
	bool any;

	pthread_mutex_lock(&all->lock);
	any = !LIST_EMPTY(&all->workers);
	pthread_mutex_unlock(&all->lock);
	if (!any && !add_worker(ctx))
		return false;
	pthread_mutex_lock(&all->lock);
	TAILQ_INSERT_TAIL(&all->queue, h, entry);
	pthread_cond_signal(&all->wake);
	pthread_mutex_unlock(&all->lock);
	return true;
}

/* One that waits because all threads are held up gets another. When to look again. A thread that
 * has been woken and has no processor yet is idle, not held up. */
static uint64_t add_if_held_up(struct ha_ctx *ctx)
{
	struct ha_hookups *all = &ctx->hookups;
	uint64_t now = ha_clock_now(ctx->clock), at = UINT64_MAX;
	const struct ha_hookup *h;
	bool all_held_up;

	pthread_mutex_lock(&all->lock);
	h = next_waiting(all);
	if (h)
		at = h->since + CHECK_INTERVAL_NS;
	all_held_up = all->held_up == all->nworkers;
	pthread_mutex_unlock(&all->lock);
	if (at > now)
		return at;
	if (!all_held_up)
		return now + CHECK_INTERVAL_NS;
	(void)add_worker(ctx); /* without it waits on */
	return now + CHECK_INTERVAL_NS;
}

/* ---- what the driver calls ---- */

void ha_hookups_open(struct ha_ctx *ctx, const struct ha_hookup_ops *ops, void *arg)
{
	struct ha_hookups *all = &ctx->hookups;
	pthread_condattr_t monotonic;

	pthread_mutex_init(&all->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&all->wake, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_cond_init(&all->gone, NULL);
	TAILQ_INIT(&all->queue);
	TAILQ_INIT(&all->over);
	all->ops = ops;
	all->ops_arg = arg;
}

void ha_hookup_start(struct ha_ctx *ctx, struct ha_hookup *h)
{
	struct ha_hookups *all = &ctx->hookups;

	h->ctx = ctx;
	h->since = ha_clock_now(ctx->clock);
	atomic_init(&h->state, HA_HOOKUP_QUEUED);
	atomic_fetch_add_explicit(&all->out, 1, memory_order_relaxed);
	if (all->ops) {
		atomic_store_explicit(&h->state, HA_HOOKUP_RUNNING, memory_order_relaxed);
		all->ops->start(all->ops_arg, h);
	} else if (!ctx->loop.threaded || !enqueue_hookup(ctx, h)) {
		ha_hookup_run(h);
	}
}

/* Under the lock. */
static void take_out(struct ha_hookups *all, struct ha_hookup *h)
{
	struct ha_hookup_list *list = ha_hookup_over(h) ? &all->over : &all->queue;
	const struct ha_hookup *listed;

	TAILQ_FOREACH(listed, list, entry)
		if (listed == h)
			break;
	if (!listed)
		return; /* a round has reported it */
	TAILQ_REMOVE(list, h, entry);
	atomic_fetch_sub_explicit(&all->out, 1, memory_order_relaxed);
}

bool ha_hookup_abandon(struct ha_hookup *h)
{
	struct ha_hookups *all = &h->ctx->hookups;
	bool ours;

	pthread_mutex_lock(&all->lock);
	ours = atomic_load_explicit(&h->state, memory_order_relaxed) != HA_HOOKUP_RUNNING;
	if (ours) {
		take_out(all, h);
	} else {
		h->abandoned = true;
		ha_opening_take(h->opening); /* the rail may leave it */
		h->qp->qp_context = NULL;
		h->cq->cq_context = NULL;
		atomic_fetch_sub_explicit(&all->out, 1, memory_order_relaxed);
	}
	pthread_mutex_unlock(&all->lock);
	if (ours)
		free(h);
	return ours;
}

void ha_hookup_free(struct ha_hookup *h)
{
	(void)ha_hookup_abandon(h);
}

uint64_t ha_hookups_round(struct ha_ctx *ctx)
{
	struct ha_hookups *all = &ctx->hookups;
	struct ha_hookup *h;

	if (atomic_load_explicit(&all->some_ended, memory_order_relaxed))
		join_ended(all);
	if (!atomic_load_explicit(&all->out, memory_order_relaxed))
		return UINT64_MAX;
	for (;;) {
		pthread_mutex_lock(&all->lock);
		h = TAILQ_FIRST(&all->over);
		if (h)
			TAILQ_REMOVE(&all->over, h, entry);
		pthread_mutex_unlock(&all->lock);
		if (!h)
			break;
		atomic_fetch_sub_explicit(&all->out, 1, memory_order_relaxed);
		h->done(h->arg);
		ctx->loop.worked = true;
	}
	return all->ops || !ctx->loop.threaded ? UINT64_MAX : add_if_held_up(ctx);
}

void ha_hookups_close(struct ha_ctx *ctx)
{
	struct ha_hookups *all = &ctx->hookups;

	if (all->ops)
		all->ops->finish(all->ops_arg);
	pthread_mutex_lock(&all->lock);
	all->stop = true;
	pthread_cond_broadcast(&all->wake);
	while (!LIST_EMPTY(&all->workers))
		pthread_cond_wait(&all->gone, &all->lock);
	pthread_mutex_unlock(&all->lock);
	join_ended(all);
	pthread_cond_destroy(&all->gone);
	pthread_cond_destroy(&all->wake);
	pthread_mutex_destroy(&all->lock);
}
