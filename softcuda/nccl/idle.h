/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * idle.h - what a stream's thread does while all its lanes wait for peers
 *
 * A GPU polls on processors of its own; here ranks, proxy threads and NICs share a few. So a thread
 * polls for a moment, then gives the processor to whoever wants it between two looks, and in the
 * end sleeps, longer the longer it has waited.
 */
#ifndef SOFTCUDA_NCCL_IDLE_H
#define SOFTCUDA_NCCL_IDLE_H

#include "base/yield.h"

#include <stdbool.h>

/*
 * A thread's, all zero at first. It outlives a launch: how long yields take on this machine is
 * learned once.
 */
struct idle {
	struct ha_yield yield;
	unsigned polls;    /* since something moved */
	uint64_t since_ns; /* when polling gave way to yielding */
	bool naps_exactly;
};

/* Something moved, or a launch begins. */
static inline void leave_idle(struct idle *idle)
{
	idle->polls = 0;
}

/* Nothing moved. */
void wait_idle(struct idle *idle);

#endif
