/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unordered.h - a queue pair whose messages arrive in any order (NCCL_IB_OOO_RQ)
 *
 * Work requests are kept for a moment, up to HELD_NS of the wire's time, and leave in an order that
 * dice decide. They complete in the order in which they were posted, as mlx5dv_create_qp(3) has it.
 */
#ifndef HA_SIM_UNORDERED_H
#define HA_SIM_UNORDERED_H

#include <infiniband/verbs.h>
#include <stdbool.h>

struct sim_cq;
struct sim_qp;
struct sim_verbs;

/* This one is, from its creation on. -ENOMEM. */
int sim_unordered_begin(struct sim_qp *qp);
/* It goes, or is reset: nothing of what it was given completes any more. */
void sim_unordered_forget(struct sim_qp *qp);
void sim_unordered_end(struct sim_qp *qp);
/* What is held on this host leaves in a moment. */
void sim_unordered_ask(struct sim_verbs *v);
/* As post_send. */
int sim_unordered_post(struct sim_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
/* The queue's next completion, of whichever kind of queue pair. False: there is none now. */
bool sim_unordered_poll(struct sim_cq *cq, struct ibv_wc *wc);

#endif
