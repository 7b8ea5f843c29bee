/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reaper.h - destroys what a failed path leaves behind, on a thread that nobody waits for
 *
 * Destroying a queue pair may block in the kernel until the last packet that it has handed over is
 * gone: with rdma_rxe three seconds on a NIC without carrier, 50 on one whose ring stands still.
 * The driver would answer no peer meanwhile.
 */
#ifndef HA_PLUGIN_REAPER_H
#define HA_PLUGIN_REAPER_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/queue.h>

struct ha_ctx;
struct ha_retired;
struct ha_nic;
struct ha_opening;

struct ha_reaper {
	pthread_mutex_t lock; /* all below */
	pthread_cond_t wake;
	STAILQ_HEAD(, ha_retired) retired;
	pthread_t thread;
	bool running, stop;
};

void ha_reaper_open(struct ha_ctx *ctx);
/* Waits until everything is destroyed. */
void ha_reaper_close(struct ha_ctx *ctx);

/*
 * Takes a queue pair that can reach no memory any more, and its completion queue; both may be NULL.
 * They are on `opening`. Under ctx->drive, because their events name no connection from here on.
 * False: there is no thread for that, they are still the caller's.
 */
bool ha_reaper_take(struct ha_ctx *ctx, struct ha_opening *opening, struct ibv_qp *qp,
		    struct ibv_cq *cq);
/* Closes an opening that has no user any more, and frees it; with nic, the last one on it, the
 * context as well. By itself where there is no thread. Under ctx->drive. */
void ha_reaper_close_opening(struct ha_ctx *ctx, struct ha_opening *over, struct ha_nic *nic);

#endif
