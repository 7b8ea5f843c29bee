/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/device/reaper.h"

#include "plugin/ctx.h"
#include "plugin/device/opening.h"
#include "rdma/verbs/ops.h"

#include <signal.h>
#include <stdlib.h>

struct ha_retired {
	STAILQ_ENTRY(ha_retired) entry;
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	struct ha_opening *opening; /* that they are on: a user */
	/* in their place: of a device that has failed, that nobody uses any more */
	struct ha_opening *over;
	struct ha_nic *nic; /* with it: its last one; NULL: it is not */
};

void ha_reaper_open(struct ha_ctx *ctx)
{
	struct ha_reaper *r = &ctx->reaper;

	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->wake, NULL);
	STAILQ_INIT(&r->retired);
}

static struct ha_retired *take_retired(struct ha_reaper *r)
{
	struct ha_retired *g;

	pthread_mutex_lock(&r->lock);
	while (STAILQ_EMPTY(&r->retired) && !r->stop)
		pthread_cond_wait(&r->wake, &r->lock);
	g = STAILQ_FIRST(&r->retired);
	if (g)
		STAILQ_REMOVE_HEAD(&r->retired, entry);
	pthread_mutex_unlock(&r->lock);
	return g;
}

static void destroy_retired(struct ha_ctx *ctx, const struct ha_retired *g)
{
	if (g->qp)
		ctx->verbs->destroy_qp(ctx->verbs, g->qp);
	if (g->cq)
		ctx->verbs->destroy_cq(ctx->verbs, g->cq);
	ha_opening_put(g->opening);
	if (g->over)
		ha_opening_close(g->over);
	if (g->nic)
		ctx->verbs->close(ctx->verbs, g->nic->verbs);
	free(g->nic);
}

static void *reaper_main(void *arg)
{
	struct ha_ctx *ctx = arg;
	struct ha_retired *g;

	while ((g = take_retired(&ctx->reaper)) != NULL) {
		destroy_retired(ctx, g);
		free(g);
	}
	return NULL;
}

/* On first use: a process whose paths never fail has no such thread. The host program's signals are
 * not for it. */
static bool ensure_running(struct ha_ctx *ctx)
{
	struct ha_reaper *r = &ctx->reaper;
	sigset_t all, old;

	if (r->running)
		return true;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r->running = !pthread_create(&r->thread, NULL, reaper_main, ctx);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r->running)
		pthread_setname_np(r->thread, "hawser-reaper");
	return r->running;
}

/* False: there is no thread. */
static bool enqueue_retired(struct ha_ctx *ctx, const struct ha_retired *what)
{
	struct ha_reaper *r = &ctx->reaper;
	struct ha_retired *g;

	if (!ctx->loop.threaded || !ensure_running(ctx))
		return false;
	g = malloc(sizeof(*g));
	if (!g)
		return false;
	*g = *what;
	pthread_mutex_lock(&r->lock);
	STAILQ_INSERT_TAIL(&r->retired, g, entry);
	pthread_cond_signal(&r->wake);
	pthread_mutex_unlock(&r->lock);
	return true;
}

bool ha_reaper_take(struct ha_ctx *ctx, struct ha_opening *opening, struct ibv_qp *qp,
		    struct ibv_cq *cq)
{
	const struct ha_retired what = { .qp = qp, .cq = cq, .opening = ha_opening_take(opening) };
	void *qp_context = qp ? qp->qp_context : NULL, *cq_context = cq ? cq->cq_context : NULL;

	if (qp)
		qp->qp_context = NULL;
	if (cq)
		cq->cq_context = NULL;
	if (enqueue_retired(ctx, &what))
		return true;
	ha_opening_put(opening);
	if (qp)
		qp->qp_context = qp_context;
	if (cq)
		cq->cq_context = cq_context;
	return false;
}

void ha_reaper_close_opening(struct ha_ctx *ctx, struct ha_opening *over, struct ha_nic *nic)
{
	const struct ha_retired what = { .over = over, .nic = nic };

	if (!enqueue_retired(ctx, &what))
		destroy_retired(ctx, &what);
}

void ha_reaper_close(struct ha_ctx *ctx)
{
	struct ha_reaper *r = &ctx->reaper;

	pthread_mutex_lock(&r->lock);
	r->stop = true;
	pthread_cond_signal(&r->wake);
	pthread_mutex_unlock(&r->lock);
	if (r->running)
		pthread_join(r->thread, NULL);
	pthread_cond_destroy(&r->wake);
	pthread_mutex_destroy(&r->lock);
}
