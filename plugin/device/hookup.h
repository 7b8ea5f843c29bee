/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hookup.h - connects queue pairs to their peers, on threads that nobody waits for
 *
 * Bringing a queue pair to RTR may block in the kernel: rdma_rxe and every RoCE driver ask for the
 * peer's link address, three seconds for one that does not answer. Whoever drives all
 * connections would stand still, so he hands the queue pair over, goes on, and finds the result
 * later. A thread is started when a hookup has waited for a moment because all others are held up;
 * so in ordinary times there is one, and a device that hangs holds up its own.
 *
 * While it is under way, the queue pair is the hookup's: nobody else changes or destroys it. Who
 * does not want it any more abandons it, at any time; then the thread destroys it. A context
 * without a service thread has no such threads either: the result is there at once.
 */
#ifndef HA_PLUGIN_HOOKUP_H
#define HA_PLUGIN_HOOKUP_H

#include "plugin/device/wire_end.h"

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct ha_ctx;
struct ha_device;
struct ha_hookup_worker;
struct ha_opening;

#define HA_RTR_MASK                                                                     \
	(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | \
	 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define HA_RTS_MASK                                                                            \
	(IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | \
	 IBV_QP_MAX_QP_RD_ATOMIC)

enum ha_hookup_state { HA_HOOKUP_QUEUED, HA_HOOKUP_RUNNING, HA_HOOKUP_OVER };

struct ha_hookup {
	/* The caller's words, before the start. */
	struct ha_device *dev;
	struct ha_opening *opening; /* of it, that the queue pair is on */
	struct ibv_qp *qp;          /* in INIT */
	struct ibv_cq *cq; /* its completion queue, which goes with it when it is abandoned */
	struct ibv_qp_attr rtr, rts;
	struct ha_wire_ece ece, peer_ece; /* ece: then what was agreed on */
	bool listener;                    /* asks the driver what it has made of the options */
	void (*done)(void *arg);          /* it is over; in a round, under ctx->drive */
	void *arg;
	/* The result. */
	int err;
	const char *failed, *advice; /* what could not be done; NULL, or what to look at */
	/* Its own. */
	struct ha_ctx *ctx;
	_Atomic int state; /* enum ha_hookup_state; changed under the lock */
	bool abandoned;    /* under the lock */
	uint64_t since;
	TAILQ_ENTRY(ha_hookup) entry; /* in ha_hookups.queue, then in .over */
};

TAILQ_HEAD(ha_hookup_list, ha_hookup);

/* Who runs them in the place of threads: the simulator. */
struct ha_hookup_ops {
	/* ha_hookup_run(h) must follow some time, in whatever order. */
	void (*start)(void *arg, struct ha_hookup *h);
	/* For all that are still out: now. */
	void (*finish)(void *arg);
};

struct ha_hookups {
	pthread_mutex_t lock;      /* all below, and ha_device.hookups */
	pthread_cond_t wake, gone; /* there is work; a thread has ended */
	struct ha_hookup_list queue, over;
	LIST_HEAD(, ha_hookup_worker) workers, ended;
	unsigned nworkers, held_up; /* how many there are; in the kernel */
	bool stop;
	atomic_bool some_ended;          /* `ended` is worth a look */
	_Atomic unsigned out;            /* started, and its end not seen by a round */
	const struct ha_hookup_ops *ops; /* NULL: threads, or the caller */
	void *ops_arg;
};

void ha_hookups_open(struct ha_ctx *ctx, const struct ha_hookup_ops *ops, void *arg);
/* Waits for those that are under way in the kernel. All have been abandoned or are over. */
void ha_hookups_close(struct ha_ctx *ctx);
/* Part of a round: report those that are over. Returns when the next round must come, UINT64_MAX:
 * a thread will wake it. */
uint64_t ha_hookups_round(struct ha_ctx *ctx);

/* Takes *h, which is allocated, until it is freed or abandoned. Under ctx->drive. */
void ha_hookup_start(struct ha_ctx *ctx, struct ha_hookup *h);
static inline bool ha_hookup_over(const struct ha_hookup *h)
{
	/* Acquire: pairs with the release that ends it; the result is there. */
	return atomic_load_explicit(&h->state, memory_order_acquire) == HA_HOOKUP_OVER;
}
/* Frees it. Under ctx->drive, because events of its queue pair name nobody from here on. True: the
 * queue pair has not been touched, or all is over, and it is the caller's again; false: it is
 * destroyed when the kernel gives it back. */
bool ha_hookup_abandon(struct ha_hookup *h);
/* Of one that is over. */
void ha_hookup_free(struct ha_hookup *h);
/* For those who run them. */
void ha_hookup_run(struct ha_hookup *h);

#endif
