/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * send.h - the send queue of a software NIC: one entry at a time, its landing at the peer, its
 * completion
 */
#ifndef HA_GPU_SOFT_SEND_H
#define HA_GPU_SOFT_SEND_H

#include "gpu/soft/nic.h"

/* Looks at the doorbell; under sq_lock. */
void soft_send_bell(struct soft_qp *qp);
/* Executes, repeats or flushes the next entry; under sq_lock. True: it did something. */
bool soft_send_step(struct soft_qp *qp);
/* Ends a fault that has begun and found no more entries. */
void soft_fault_step(struct soft_nic *n);
/* Requests to this NIC that were held and are due. */
bool soft_land_due(struct soft_nic *n);

/* The range that a key covers, or NULL: no such key, outside, or no right to it. */
const struct soft_mr *soft_mr_find(const struct soft_nic *n, uint32_t key, uint64_t address,
				   uint64_t bytes, bool remote);

/* A completion of the entry `counter`; syndrome 0: good. */
void soft_complete(struct soft_qp *qp, struct soft_cq *cq, unsigned opcode, unsigned syndrome,
		   uint16_t counter, uint32_t bytes, uint32_t imm);

/* Counters are several threads'. */
static inline void soft_count(uint64_t *counter)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

#endif
