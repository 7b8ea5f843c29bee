/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comm.c - a communicator comes and goes; whoever calls progress moves it
 */
#include "plugin/rma/comm.h"

#include "base/clock.h"
#include "plugin/ctx.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

int ha_rma_listen(struct ha_ctx *ctx, int dev, const struct ha_comm_opts *opts, void *handle,
		  struct ha_rma_listen **out)
{
	struct ha_rma_listen *l = calloc(1, sizeof(*l));
	int err;

	*out = NULL;
	if (!l)
		return -ENOMEM;
	l->ctx = ctx;
	l->dev = dev;
	l->opts = opts ? *opts : (struct ha_comm_opts) { .traffic_class = -1 };
	l->opts.one_sided = true;
	l->users = 1;
	err = ha_listen(ctx, dev, &l->opts, handle, &l->listen);
	if (err) {
		free(l);
		return err;
	}
	pthread_mutex_init(&l->lock, NULL);
	*out = l;
	return 0;
}

void ha_rma_close_listen(struct ha_rma_listen *l)
{
	unsigned left;

	if (!l)
		return;
	pthread_mutex_lock(&l->lock);
	left = --l->users;
	pthread_mutex_unlock(&l->lock);
	if (left)
		return;
	ha_close_listen(l->listen);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

int ha_rma_connect(struct ha_rma_listen *l, const void *const *handles, int nranks, int rank,
		   struct ha_rma **out)
{
	struct ha_rma *rma;

	*out = NULL;
	if (nranks < 1 || rank < 0 || rank >= nranks)
		return -EINVAL;
	rma = calloc(1, sizeof(*rma));
	if (!rma)
		return -ENOMEM;
	rma->handle = calloc((size_t)nranks, sizeof(*rma->handle));
	rma->peer = calloc((size_t)nranks, sizeof(*rma->peer));
	if (!rma->handle || !rma->peer) {
		free(rma->handle);
		free(rma->peer);
		free(rma);
		return -ENOMEM;
	}
	pthread_mutex_init(&rma->lock, NULL);
	rma->ctx = l->ctx;
	rma->listen = l;
	rma->nranks = nranks;
	rma->rank = rank;
	TAILQ_INIT(&rma->busy);
	TAILQ_INIT(&rma->sources);
	LIST_INIT(&rma->gets);
	SLIST_INIT(&rma->slabs);
	STAILQ_INIT(&rma->unused);
	for (int i = 0; i < nranks; i++) {
		memcpy(rma->handle[i], handles[i], HA_HANDLE_MAX);
		STAILQ_INIT(&rma->peer[i].waiting);
		STAILQ_INIT(&rma->peer[i].posted);
	}
	pthread_mutex_lock(&l->lock);
	l->users++;
	pthread_mutex_unlock(&l->lock);
	*out = rma;
	return 0;
}

void ha_rma_set_traffic_class(struct ha_rma *rma, int traffic_class)
{
	pthread_mutex_lock(&rma->lock);
	rma->listen->opts.traffic_class = traffic_class;
	pthread_mutex_unlock(&rma->lock);
}

static void close_peer(struct ha_rma *rma, struct ha_rma_peer *p, const void *handle)
{
	if (p->connecting)
		ha_connect_abandon(rma->ctx, handle);
	if (p->send)
		ha_close_send(p->send);
	p->send = NULL; /* with what was registered there */
	free(p->mr);
}

void ha_rma_close(struct ha_rma *rma)
{
	struct ha_rma_source *s;
	struct ha_rma_slab *slab;

	if (!rma)
		return;
	for (int i = 0; i < rma->nranks; i++)
		close_peer(rma, &rma->peer[i], rma->handle[i]);
	while ((s = TAILQ_FIRST(&rma->sources)) != NULL) {
		TAILQ_REMOVE(&rma->sources, s, link);
		ha_rma_source_close(s);
	}
	for (unsigned i = 0; i < rma->nwindows; i++)
		if (rma->window[i])
			(void)ha_rma_deregister(rma, rma->window[i]);
	while ((slab = SLIST_FIRST(&rma->slabs)) != NULL) {
		SLIST_REMOVE_HEAD(&rma->slabs, link);
		free(slab);
	}
	ha_rma_close_listen(rma->listen);
	pthread_mutex_destroy(&rma->lock);
	free(rma->window);
	free(rma->handle);
	free(rma->peer);
	free(rma);
}

/* What waits is posted by every look; completions are left to the tests while there are some. */
static bool leave_to_tests(struct ha_rma_peer *p)
{
	bool tested = p->tested;

	p->tested = false;
	return tested && STAILQ_EMPTY(&p->waiting);
}

static int look_at_all(struct ha_rma *rma)
{
	struct ha_rma_peer *p, *next;
	int err = rma->error ? rma->error : ha_rma_sources_step(rma);

	for (p = TAILQ_FIRST(&rma->busy); p && !err; p = next) {
		next = TAILQ_NEXT(p, link);
		if (!leave_to_tests(p))
			err = ha_rma_peer_step(rma, p);
	}
	/* The end counts: a look that took long does not make another one due. */
	atomic_store_explicit(&rma->looked, ha_clock_now(rma->ctx->clock), memory_order_relaxed);
	return err;
}

static bool is_look_due(const struct ha_rma *rma)
{
	uint64_t looked = atomic_load_explicit(&rma->looked, memory_order_relaxed);

	return ha_clock_now(rma->ctx->clock) - looked >= HA_RMA_LOOK_NS;
}

int ha_rma_progress(struct ha_rma *rma)
{
	int err;

	if (!is_look_due(rma) || pthread_mutex_trylock(&rma->lock))
		return ha_rma_error(rma);
	err = look_at_all(rma);
	pthread_mutex_unlock(&rma->lock);
	return err;
}

/*
 * Only the oldest one looks for completions: with many in flight each call would. What goes to
 * ourselves is taken here, too: NCCL's proxy, when it replays a graph, waits for such a put by
 * test alone, in the thread that calls progress. Any other one to ourselves looks as progress
 * does: nobody need test the older ones, and a get is in no list while its answer is on its way.
 */
static int move_op(struct ha_rma *rma, const struct ha_rma_op *op)
{
	struct ha_rma_peer *p = &rma->peer[op->rank];
	bool own = op->rank == rma->rank;
	int err;

	if (STAILQ_FIRST(&p->posted) != op && STAILQ_FIRST(&p->waiting) != op)
		return own && is_look_due(rma) ? look_at_all(rma) : 0;
	err = ha_rma_peer_step(rma, p);
	p->tested = true;
	if (!err && own && op->state != HA_RMA_DONE)
		err = ha_rma_sources_step(rma);
	return err;
}

int ha_rma_test(struct ha_rma *rma, struct ha_rma_op *op, int *done)
{
	int err = 0;

	*done = 0;
	pthread_mutex_lock(&rma->lock);
	if (op->state != HA_RMA_DONE)
		err = rma->error ? rma->error : move_op(rma, op);
	if (op->state == HA_RMA_DONE) {
		ha_rma_op_free(rma, op);
		*done = 1;
		err = 0;
	}
	pthread_mutex_unlock(&rma->lock);
	return err;
}
