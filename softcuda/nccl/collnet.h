/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * collnet.h - what collectives have in common whose sums, or broadcasts, the network itself makes
 */
#ifndef SOFTCUDA_NCCL_COLLNET_H
#define SOFTCUDA_NCCL_COLLNET_H

#include "softcuda/nccl/collective.h"

/* How a collective is divided: every channel takes a chunk of each round. Counts in elements. */
struct collnet_division {
	ptrdiff_t count; /* of the whole collective, or of one rank */
	ptrdiff_t chunk;
	ptrdiff_t part; /* this channel's number among them */
	ptrdiff_t channels;
};

void divide_collnet(struct collnet_division *division, const struct lane *lane);

/* A lane of the Simple protocol with single steps. */
void start_collnet_lane(struct lane *lane, const struct collective_task *task,
			next_operation_fn *next);

/* A lane that lets the network go on by `steps`, and waits for it where it has receivers. */
void start_notify_lane(struct lane *lane, const struct collective_task *task, ptrdiff_t steps);

#endif
