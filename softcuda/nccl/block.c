/* SPDX-License-Identifier: BSD-3-Clause */
#include "softcuda/nccl/block.h"
#include "softcuda/nccl/broadcasts.h"
#include "softcuda/nccl/collective.h"
#include "softcuda/nccl/profiler.h"

#include <stdio.h>
#include <stdlib.h>

static int channel_of_index(uint64_t mask, unsigned index)
{
	while (index--)
		mask &= mask - 1;
	return __builtin_ctzll(mask);
}

void start_block(struct block *block, const struct kernel_arguments *arguments, unsigned index)
{
	struct kernel_comm_and_channels *comm = (struct kernel_comm_and_channels *)arguments->comm;
	int channel_id = channel_of_index(arguments->channel_mask, index);

	block->state = BLOCK_LOADING;
	block->arguments = arguments;
	block->channel = &comm->channels[channel_id];
	block->context.comm = &comm->comm;
	block->context.channel = block->channel;
	block->context.channel_id = channel_id;
	block->batch_index = index;
	block->work_counter = read_work_counter(block->channel);
}

/*
 * What cannot come from the NCCL that the layout is for: better to end here than to damage the
 * user's data.
 */
static void fail_block(const struct block *block, const char *what)
{
	fprintf(stderr,
		"softcuda: NCCL " LAYOUT_VERSION ", rank %d, channel %d: the launch has %s\n",
		block->context.comm->rank, block->context.channel_id, what);
	abort();
}

static void start_batch(struct block *block)
{
	const char *error;

	error = load_batch(&block->batch, block->arguments, block->batch_index,
			   (unsigned)block->context.channel_id);
	if (error)
		fail_block(block, error);
	block->function = find_function(block->batch.function);
	if (!block->function)
		fail_block(block, "the number of an unknown function");
	block->work_next = 0;
	block->lane_count = 0;
	note_works_started(&block->batch, &block->context, block->work_counter);
	block->state = BLOCK_WORKING;
}

typedef unsigned open_collective_fn(struct lane *lanes, const struct collective_task *task);

static open_collective_fn *collnet_direct_opener(enum collective collective)
{
	switch (collective) {
	case COLLECTIVE_ALL_GATHER:
		return open_collnet_all_gather;
	case COLLECTIVE_REDUCE_SCATTER:
		return open_collnet_reduce_scatter;
	default:
		return open_collnet_all_reduce;
	}
}

/* NULL: hosts do not have what the algorithm needs. */
static open_collective_fn *find_opener(const struct device_function *function)
{
	switch (function->algorithm) {
	case ALGORITHM_RING:
		return open_ring;
	case ALGORITHM_TREE:
		return open_tree;
	case ALGORITHM_COLLNET_CHAIN:
		return open_collnet_chain;
	case ALGORITHM_COLLNET_DIRECT:
		return collnet_direct_opener(function->collective);
#if LAYOUT_HAS_PAT
	case ALGORITHM_PAT:
		return open_pat;
#endif
	default:
		return NULL;
	}
}

static bool is_signed_integer(enum element_type type)
{
	return type == ELEMENT_INT8 || type == ELEMENT_INT32 || type == ELEMENT_INT64;
}

/* The operator's argument as reduce.h takes it. */
static uint64_t argument_of_work(const struct work_collective *work,
				 const struct device_function *function)
{
	uint64_t argument = work->argument;

	if (work->argument_is_pointer)
		argument = load_argument((const void *)(uintptr_t)argument,
					 element_bytes(function->type), function->operator);
	if (AVERAGE_IS_PLAIN_DIVISOR && function->operator== REDUCE_SUM_DIVIDE)
		argument = argument << 1 | is_signed_integer(function->type);
	return argument;
}

static void open_collective(struct block *block, const struct work_collective *work)
{
	const struct device_function *function = block->function;
	open_collective_fn *open = find_opener(function);
	struct collective_task task = {
		.context = &block->context, .function = function, .work = work, .pat = &block->pat
	};
	uint64_t argument = argument_of_work(work, function);

	if (!open)
		fail_block(block, "an algorithm that hosts do not have (NVLS); exclude it by "
				  "NCCL_ALGO=^NVLS,NVLSTree");
	if (!find_reduction(&task.reduction, function->type, function->operator, argument))
		fail_block(block, "an unknown reduction");
	block->lane_count = open(block->lanes, &task);
}

static void open_all_p2p(struct block *block)
{
	if (block->batch.work_count > P2P_WORKS_PER_BATCH)
		fail_block(block, "too many sends and receives in one batch");
	for (; block->work_next < block->batch.work_count; block->work_next++) {
		const struct work_p2p *work = work_of_batch(&block->batch, block->work_next);

		block->lane_count +=
			open_p2p(block->lanes + block->lane_count, &block->context, work);
	}
}

static void open_all_broadcasts(struct block *block)
{
#if LAYOUT_HAS_BROADCASTS
	struct work_broadcast *works = (struct work_broadcast *)block->batch.works;

	block->lane_count =
		open_broadcasts(block->lanes, &block->context, block->function->protocol, works,
				block->batch.work_count);
#endif
	block->work_next = block->batch.work_count;
}

/* False: all works of the batch have been started. */
static bool open_next_works(struct block *block)
{
	if (block->work_next == block->batch.work_count)
		return false;
	switch (block->batch.type) {
	case WORK_P2P:
		open_all_p2p(block);
		break;
	case WORK_COLLECTIVE:
	case WORK_COLLECTIVE_REGISTERED:
		open_collective(block, work_of_batch(&block->batch, block->work_next));
		block->work_next++;
		break;
	case WORK_BROADCASTS:
		open_all_broadcasts(block);
		break;
	}
	return true;
}

static void finish_batch(struct block *block)
{
	note_works_completed(&block->batch, &block->context, block->work_counter);
	block->work_counter += block->batch.work_count;
	if (block->batch.jump) {
		block->batch_index = block->batch.last + block->batch.jump;
		block->state = BLOCK_LOADING;
		return;
	}
	write_work_counter(block->channel, block->work_counter);
	block->state = BLOCK_DONE;
}

static enum progress advance_lanes(struct block *block)
{
	enum progress progress = PROGRESS_DONE;

	for (unsigned i = 0; i < block->lane_count; i++) {
		enum progress one = advance_lane(&block->lanes[i]);

		if (one == PROGRESS_MOVED)
			progress = PROGRESS_MOVED;
		else if (one == PROGRESS_NONE && progress == PROGRESS_DONE)
			progress = PROGRESS_NONE;
	}
	return progress;
}

enum progress advance_block(struct block *block)
{
	enum progress progress;

	switch (block->state) {
	case BLOCK_LOADING:
		start_batch(block);
		open_next_works(block);
		return PROGRESS_MOVED;
	case BLOCK_WORKING:
		progress = advance_lanes(block);
		if (progress != PROGRESS_DONE)
			return progress;
		if (!open_next_works(block))
			finish_batch(block);
		return PROGRESS_MOVED;
	case BLOCK_DONE:
		break;
	}
	return PROGRESS_DONE;
}
