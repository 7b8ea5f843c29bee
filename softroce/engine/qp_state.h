/* SPDX-License-Identifier: BSD-3-Clause */
/* qp_state.h - the queue pair's incarnation: transitions, errors, and what flushing does */
#ifndef SOFTROCE_ENGINE_QP_STATE_H
#define SOFTROCE_ENGINE_QP_STATE_H

#include <infiniband/verbs.h>
#include <stdbool.h>

struct sr_qp;

/* Into the error state: everything posted completes as flushed, in order. Answers already owed to
 * the peer stay owed. */
void sr_qp_enter_error(struct sr_qp *qp);
/* Back to how it was created: queues empty, completions forgotten. */
void sr_qp_reset(struct sr_qp *qp);

#endif
