/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/device/reaper.h"

#include "plugin/connect/ctx.h"
#include "rdma/verbs/ops.h"

#include <signal.h>
#include <stdlib.h>

struct ha_grave {
	struct ha_grave *next;
	struct ibv_qp *qp;
	struct ibv_cq *cq;
};

void ha_reaper_open(struct ha_ctx *ctx)
{
	struct ha_reaper *r = &ctx->reaper;

	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->wake, NULL);
	r->tail = &r->graves;
}

static struct ha_grave *next_grave(struct ha_reaper *r)
{
	struct ha_grave *g;

	pthread_mutex_lock(&r->lock);
	while (!r->graves && !r->stop)
		pthread_cond_wait(&r->wake, &r->lock);
	g = r->graves;
	if (g) {
		r->graves = g->next;
		if (!r->graves)
			r->tail = &r->graves;
	}
	pthread_mutex_unlock(&r->lock);
	return g;
}

static void *reaper_main(void *arg)
{
	struct ha_ctx *ctx = arg;
	struct ha_grave *g;

	while ((g = next_grave(&ctx->reaper)) != NULL) {
		if (g->qp)
			ctx->verbs->destroy_qp(ctx->verbs, g->qp);
		if (g->cq)
			ctx->verbs->destroy_cq(ctx->verbs, g->cq);
		free(g);
	}
	return NULL;
}

/* On first use: a process whose paths never fail has no such thread. The host program's signals are
 * not for it. */
static bool running(struct ha_ctx *ctx)
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

bool ha_reaper_take(struct ha_ctx *ctx, struct ibv_qp *qp, struct ibv_cq *cq)
{
	struct ha_reaper *r = &ctx->reaper;
	struct ha_grave *g;

	if (ha_ctx_self_driven(ctx) || !running(ctx))
		return false;
	g = malloc(sizeof(*g));
	if (!g)
		return false;
	if (qp)
		qp->qp_context = NULL;
	if (cq)
		cq->cq_context = NULL;
	*g = (struct ha_grave) { .qp = qp, .cq = cq };
	pthread_mutex_lock(&r->lock);
	*r->tail = g;
	r->tail = &g->next;
	pthread_cond_signal(&r->wake);
	pthread_mutex_unlock(&r->lock);
	return true;
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
