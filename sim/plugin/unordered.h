/* SPDX-License-Identifier: BSD-3-Clause */
/* unordered.h - queue pairs whose messages arrive in any order (sim/kit/reorder.h), in virtual
 * time */
#ifndef HA_SIM_UNORDERED_H
#define HA_SIM_UNORDERED_H

#include <infiniband/verbs.h>
#include <stdbool.h>

struct sim_cq;
struct sim_qp;

/* This one is, from its creation on. -ENOMEM. */
int sim_unordered_begin(struct sim_qp *qp);
/* It is reset: nothing of what it was given completes any more. */
void sim_unordered_forget(struct sim_qp *qp);
/* It goes. */
void sim_unordered_end(struct sim_qp *qp);
/* As post_send. */
int sim_unordered_post(struct sim_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
/* The queue's next completion, of whichever kind of queue pair. False: there is none now. */
bool sim_unordered_poll(struct sim_cq *cq, struct ibv_wc *wc);

#endif
