/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * collective.h - the lanes of a collective, one opener for each algorithm
 *
 * An opener fills in up to four lanes and returns how many. It does not wait.
 */
#ifndef SOFTCUDA_NCCL_COLLECTIVE_H
#define SOFTCUDA_NCCL_COLLECTIVE_H

#include "softcuda/nccl/function_table.h"
#include "softcuda/nccl/lane.h"

/* One work of a batch, and all that its lanes need to know. */
struct collective_task {
	const struct lane_context *context;
	const struct device_function *function;
	const struct work_collective *work;
	struct reduction reduction;
	struct pat *pat; /* for the lane of a PAT */
};

unsigned open_ring(struct lane *lanes, const struct collective_task *task);
unsigned open_tree(struct lane *lanes, const struct collective_task *task);
unsigned open_collnet_chain(struct lane *lanes, const struct collective_task *task);
unsigned open_collnet_all_reduce(struct lane *lanes, const struct collective_task *task);
unsigned open_collnet_all_gather(struct lane *lanes, const struct collective_task *task);
unsigned open_collnet_reduce_scatter(struct lane *lanes, const struct collective_task *task);
unsigned open_pat(struct lane *lanes, const struct collective_task *task);

/* The elements of the task's channel. */
void divide_work(struct cursor *cursor, const struct collective_task *task);

/* A lane with the task's work, reduction, buffers and protocol, without endpoints. */
void start_lane(struct lane *lane, const struct collective_task *task, next_operation_fn *next);

/* Elements of the chunk at the cursor's position. */
ptrdiff_t chunk_at_position(const struct cursor *cursor);

#endif
