/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * close.c - the end of a connection, in whatever state it is
 *
 * Three phases. A sender waits for what was complete before it was acknowledged. Then, under
 * ctx->drive, the bundle leaves the context's list and its socket's watch goes: a round that was
 * running has ended, and no later one finds it. At last it is the caller's alone: BYE, queue pairs,
 * memory.
 */
#include "plugin/connect/ctx.h"
#include "plugin/connect/setup.h"
#include "plugin/transfer/guard.h"

#include "base/clock.h"

#include <time.h>

#define DRAIN_NS (2 * HA_NS_PER_S)
#define DRAIN_STEP_NS 20000

static int close_bundle(struct ha_bundle *b)
{
	struct ha_ctx *ctx = b->ctx;

	pthread_mutex_lock(&ctx->drive);
	ha_bundle_retire(b);
	pthread_mutex_unlock(&ctx->drive);
	ha_bundle_free(b);
	return 0;
}

/* Nothing is outstanding of which the program does not know, or the connection has its error. */
static bool is_over(struct ha_send *s)
{
	bool over;

	if (ha_bundle_enter(&s->b) == HA_NOT_NOW)
		return false;
	ha_bundle_poll(&s->b);
	over = s->b.error || ha_send_is_drained(s);
	ha_bundle_leave(&s->b);
	return over;
}

/* Sends that were complete when they were posted (HA_NCCL_COPY_MAX) go before the queue pair does,
 * over a standby if need be. */
static void drain(struct ha_send *s)
{
	const struct timespec step = { .tv_nsec = DRAIN_STEP_NS };
	uint64_t until = ha_clock_now(&ha_clock_live) + DRAIN_NS;

	while (!is_over(s) && ha_clock_now(&ha_clock_live) < until) {
		if (ha_ctx_self_driven(s->b.ctx))
			s->b.ctx->progress(s->b.ctx);
		nanosleep(&step, NULL);
	}
}

int ha_close_send(struct ha_send *comm)
{
	if (comm->copy_max)
		drain(comm);
	return close_bundle(&comm->b);
}

int ha_close_recv(struct ha_recv *comm)
{
	return close_bundle(&comm->b);
}
