/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reorder.h - a send queue whose work requests leave in any order (NCCL_IB_OOO_RQ)
 *
 * In front of a queue pair that keeps their order. Work requests are held for a moment and leave in
 * an order that dice decide; they complete in the order in which they were posted, as
 * mlx5dv_create_qp(3) has it. One thread at a time.
 */
#ifndef HA_SIM_REORDER_H
#define HA_SIM_REORDER_H

#include "base/rng.h"

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <sys/queue.h>

struct sim_held;

struct sim_reorder {
	STAILQ_HEAD(, sim_held) posted; /* not completed; the oldest first */
	unsigned held;                  /* of them, those that have not left */
	uint64_t left, overtook;        /* ever; and before one that had been posted earlier */
	struct sr_rng dice;
	/* The queue pair behind it takes a work request, which asks for a completion and has a
	 * number of ours. 0: it has. */
	int (*leave)(void *qp, struct ibv_send_wr *wr);
	void *qp;
};

void sim_reorder_init(struct sim_reorder *r, uint64_t seed,
		      int (*leave)(void *qp, struct ibv_send_wr *wr), void *qp);
/* As post_send: 0, or a positive errno and the first that is not taken. */
int sim_reorder_post(struct sim_reorder *r, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
/* Some of what is held leaves. To be called now and then as long as something is. */
void sim_reorder_turn(struct sim_reorder *r);
/* A completion of the queue pair behind it. */
void sim_reorder_done(const struct ibv_wc *wc);
/* The next that the caller asked for, with its own number, or that failed. False: there is none. */
bool sim_reorder_take(struct sim_reorder *r, struct ibv_wc *wc);
/* The queue pair goes, or is reset: nothing of what was posted completes any more. */
void sim_reorder_forget(struct sim_reorder *r);

#endif
