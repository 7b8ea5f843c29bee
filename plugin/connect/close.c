/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * close.c - the end of a connection, in whatever state it is
 *
 * Three phases. A sender waits for what was complete before it was acknowledged (drain.h). Then,
 * under ctx->drive, the bundle leaves the context's list and its socket's watch goes: a round that
 * was running has ended, and no later one finds it. At last it is the caller's alone: BYE, queue
 * pairs, memory.
 */
#include "plugin/connect/drain.h"
#include "plugin/connect/setup.h"
#include "plugin/ctx.h"

static int close_bundle(struct ha_bundle *b)
{
	struct ha_ctx *ctx = b->ctx;

	pthread_mutex_lock(&ctx->drive);
	ha_bundle_retire(b);
	pthread_mutex_unlock(&ctx->drive);
	ha_bundle_free(b);
	return 0;
}

int ha_close_send(struct ha_send *comm)
{
	if (comm->copy_max)
		ha_drain_send(comm);
	return close_bundle(&comm->b);
}

int ha_close_recv(struct ha_recv *comm)
{
	return close_bundle(&comm->b);
}
