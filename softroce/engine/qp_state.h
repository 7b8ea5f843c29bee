/* SPDX-License-Identifier: BSD-3-Clause */
/* qp_state.h - the queue pair's incarnation: transitions, errors, and what flushing does */
#ifndef SOFTROCE_ENGINE_QP_STATE_H
#define SOFTROCE_ENGINE_QP_STATE_H

#include "softroce/engine/nic.h"
#include <infiniband/verbs.h>
#include <stdbool.h>

struct sr_qp;

/* Into the error state: everything posted completes as flushed, in order. Answers already owed to
 * the peer stay owed. */
void sr_qp_enter_error(struct sr_qp *qp);
/* Back to how it was created: queues empty, completions forgotten. */
void sr_qp_reset(struct sr_qp *qp);

/*
 * The queue pairs on completion queues that overran go to the error state; called at the end of
 * every entry point.
 */
void sr_nic_stop_overrun(struct sr_nic *nic);

static inline void sr_nic_settle(struct sr_nic *nic)
{
	if (__builtin_expect(nic->cq_overrun, 0))
		sr_nic_stop_overrun(nic);
}

#endif
