/* SPDX-License-Identifier: BSD-3-Clause */
/* op.c - operations as their callers see them, until they are freed; and their end */
#include "ina/host/front/front.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void ina_front_end(struct ha_ina_op *op, int result)
{
	struct ha_ina_group *g = op->group;
	struct ha_ina *ctx = op->ctx;

	assert(STAILQ_FIRST(&g->ops) == op);
	STAILQ_REMOVE_HEAD(&g->ops, link);
	if (g->filling == op)
		g->filling = STAILQ_FIRST(&g->ops);
	if (g->asking == op)
		g->asking = STAILQ_FIRST(&g->ops);
	op->group = NULL;
	if (op->ready && !ctx->forked)
		ina_cuda_forget(op->ready);
	op->ready = NULL;
	op->result = result;
	g->cut |= result != 0;
	if (result)
		memcpy(op->why, g->why, sizeof(op->why));
	ctx->ops--;
	if (op->notify_set)
		STAILQ_INSERT_TAIL(&ctx->notify.list, op, link_notify);
	atomic_store_explicit(&op->ended, true, memory_order_release);
	pthread_cond_broadcast(&ctx->changed);
}

/* What ended it goes into the sentence of the call that says so. */
static int result_of(struct ha_ina_op *op)
{
	if (op->result)
		ina_front_fail(op->ctx, 0, "%s", op->why);
	return op->result;
}

bool ha_ina_test(struct ha_ina_op *op, int *result)
{
	if (!atomic_load_explicit(&op->ended, memory_order_acquire))
		return false;
	*result = result_of(op);
	return true;
}

static struct timespec to_deadline(uint64_t ns)
{
	struct timespec t;
	uint64_t sum;

	clock_gettime(CLOCK_MONOTONIC, &t);
	sum = (uint64_t)t.tv_nsec + ns % 1000000000;
	t.tv_sec += (time_t)(ns / 1000000000 < 1u << 30 ? ns / 1000000000 : 1u << 30) +
		    (time_t)(sum / 1000000000);
	t.tv_nsec = (long)(sum % 1000000000);
	return t;
}

int ha_ina_wait(struct ha_ina_op *op, uint64_t timeout_ns)
{
	struct timespec until = to_deadline(timeout_ns);
	int err = 0;

	if (!atomic_load_explicit(&op->ended, memory_order_acquire)) {
		pthread_mutex_lock(&op->ctx->lock);
		while (!atomic_load_explicit(&op->ended, memory_order_acquire) && err != ETIMEDOUT)
			err = pthread_cond_timedwait(&op->ctx->changed, &op->ctx->lock, &until);
		if (!atomic_load_explicit(&op->ended, memory_order_acquire)) {
			ina_front_fail(op->ctx, 0, "the operation has not ended yet");
			pthread_mutex_unlock(&op->ctx->lock);
			return -ETIME;
		}
		pthread_mutex_unlock(&op->ctx->lock);
	}
	return result_of(op);
}

int ha_ina_notify(struct ha_ina_op *op, void (*call)(void *arg, int result), void *arg)
{
	struct ha_ina *ctx = op->ctx;
	bool direct = false;

	pthread_mutex_lock(&ctx->lock);
	if (op->notify || !call) {
		ina_front_fail(ctx, -EINVAL, "an operation notifies one function, once");
		pthread_mutex_unlock(&ctx->lock);
		return -EINVAL;
	}
	op->notify = call;
	op->notify_arg = arg;
	if (atomic_load_explicit(&op->ended, memory_order_relaxed)) {
		direct = ctx->closing || !ctx->thread.runs; /* nobody else is there any more */
		if (!direct) {
			op->notify_set = true;
			STAILQ_INSERT_TAIL(&ctx->notify.list, op, link_notify);
			ina_front_kick(ctx);
		}
	} else {
		op->notify_set = true;
	}
	pthread_mutex_unlock(&ctx->lock);
	if (direct)
		call(arg, op->result);
	return 0;
}

size_t ha_ina_op_segments(const struct ha_ina_op *op)
{
	return op->request.coll == HA_INA_BARRIER ? 0 : op->pieces;
}

bool ha_ina_op_done(const struct ha_ina_op *op, size_t segment)
{
	return segment < ha_ina_op_segments(op) &&
	       atomic_load_explicit(&op->piece[segment].state, memory_order_acquire) == DONE;
}

unsigned ha_ina_op_met(const struct ha_ina_op *op)
{
	return atomic_load_explicit(&op->ended, memory_order_acquire) ? op->met : 0;
}

void ha_ina_op_free(struct ha_ina_op *op)
{
	struct ha_ina *ctx;

	if (!op)
		return;
	ctx = op->ctx;
	pthread_mutex_lock(&ctx->lock);
	if (!atomic_load_explicit(&op->ended, memory_order_relaxed)) {
		ina_front_group_fail(op->group, -ECANCELED, true,
				     "an operation was freed before it had ended");
		ina_front_kick(ctx);
	}
	while (!atomic_load_explicit(&op->ended, memory_order_relaxed) || op->notify_set)
		pthread_cond_wait(&ctx->changed, &ctx->lock);
	free(op->piece);
	free(op);
	ina_front_put(ctx);
}
