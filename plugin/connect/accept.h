/* SPDX-License-Identifier: BSD-3-Clause */
/* accept.h - listeners and the knocks on them */
#ifndef HA_CORE_ACCEPT_H
#define HA_CORE_ACCEPT_H

#include "plugin/connect/pending.h"
#include "base/loop.h"

struct ha_listen {
	struct ha_watch watch; /* first, so that ready() finds the listener */
	struct ha_ctx *ctx;
	struct ha_listen *next, **pprev; /* ctx->listens, under ctx->lock; removed under ctx->drive as well */
	struct ha_oob_conn *oob;
	struct ha_pending *accepts; /* under ctx->lock */
	_Atomic unsigned ready;	    /* of them, connections that ha_accept has not collected */
	struct ha_bundle *spare;    /* whose queue pair the handle names, until a peer takes it; under ctx->drive */
	unsigned strangers;	    /* knocks that have not shown the nonce; under ctx->drive */
	uint64_t nonce;
	int dev;
	struct ha_comm_opts opts;
};

/* All under ctx->drive. Look for knocks on every listener; look at listeners or let them be. */
void ha_listens_poll(struct ha_ctx *ctx);
void ha_listens_watch(struct ha_ctx *ctx, bool on);
/* A connection in the making at this end has failed: out of its list, free. */
void ha_accept_drop(struct ha_pending *p);
/* One more is ready. */
void ha_accept_count(struct ha_listen *listen);

#endif
