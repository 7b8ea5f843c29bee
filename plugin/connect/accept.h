/* SPDX-License-Identifier: BSD-3-Clause */
/* accept.h - listeners and the incoming connections on them */
#ifndef HA_PLUGIN_ACCEPT_H
#define HA_PLUGIN_ACCEPT_H

#include "base/loop.h"
#include "plugin/connect/pending.h"

#include <sys/queue.h>

struct ha_listen {
	struct ha_watch watch; /* first, so that ready() finds the listener */
	struct ha_ctx *ctx;
	/* ctx->setup.listens, under ctx->lock; removed under ctx->drive as well */
	LIST_ENTRY(ha_listen) entry;
	struct ha_oob_conn *oob;
	LIST_HEAD(, ha_pending) accepts; /* under ctx->lock */
	_Atomic unsigned ready;          /* of them, connections that ha_accept has not collected */
	/* whose queue pair the handle names, until a peer takes it; under ctx->drive */
	struct ha_bundle *spare;
	/* incoming connections that have not shown the nonce; under ctx->drive */
	unsigned unauthenticated;
	uint64_t nonce;
	int asked;                /* the device that NCCL named, fused or not */
	int dev;                  /* the port of its first rail */
	struct ha_comm_opts opts; /* the ports of the other rails */
};

/* All under ctx->drive. Look for incoming connections on every listener. */
void ha_listens_poll(struct ha_ctx *ctx);
/* A device has failed: what is kept on it for peers to come goes. */
void ha_listens_leave(struct ha_ctx *ctx);
/* For loops that run out of descriptors: look at no listener for a while. */
void ha_listens_mute(struct ha_ctx *ctx);
/* Part of a round: that while may be over. Returns when it is; UINT64_MAX: no listener is muted. */
uint64_t ha_listens_round(struct ha_ctx *ctx, uint64_t now);

#endif
