/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * block.h - one channel of a launch: its batches of works, one after the other
 *
 * Works of a batch of collectives run in order, sends and receives of a batch side by side.
 */
#ifndef SOFTCUDA_NCCL_BLOCK_H
#define SOFTCUDA_NCCL_BLOCK_H

#include "softcuda/nccl/batch.h"
#include "softcuda/nccl/function_table.h"
#include "softcuda/nccl/lane.h"
#include "softcuda/nccl/p2p.h"
#include "softcuda/nccl/pat.h"

/* The states of a block, in order; from WORKING it goes back to LOADING for the next batch. */
enum block_state { BLOCK_LOADING, BLOCK_WORKING, BLOCK_DONE };

struct block {
	enum block_state state;
	const struct kernel_arguments *arguments;
	struct channel *channel;
	struct lane_context context;
	const struct device_function *function;
	unsigned batch_index;
	unsigned work_next; /* the first work of the batch that has not been started */
	unsigned lane_count;
	uint64_t work_counter;
	struct lane lanes[P2P_LANES];
	struct batch batch;
	struct pat pat;
};

/* Block `index` of a launch runs the channel of the index-th bit that is set in the mask. */
void start_block(struct block *block, const struct kernel_arguments *arguments, unsigned index);

enum progress advance_block(struct block *block);

#endif
