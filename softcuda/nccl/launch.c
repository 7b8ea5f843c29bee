/* SPDX-License-Identifier: BSD-3-Clause */
#include "softcuda/nccl/launch.h"
#include "softcuda/nccl/block.h"
#include "softcuda/nccl/idle.h"
#include "softcuda/nccl/shared_memory.h"

#include <stdio.h>
#include <stdlib.h>

static bool is_aborted(const struct kernel_arguments *arguments)
{
	return load_relaxed_32(arguments->comm->abort_flag) != 0;
}

/* One round through all blocks. */
static enum progress advance_blocks(struct block *blocks, unsigned count)
{
	enum progress progress = PROGRESS_DONE;

	for (unsigned i = 0; i < count; i++) {
		enum progress one;

		if (blocks[i].state == BLOCK_DONE)
			continue;
		one = advance_block(&blocks[i]);
		if (one == PROGRESS_MOVED)
			progress = PROGRESS_MOVED;
		else if (progress == PROGRESS_DONE)
			progress = PROGRESS_NONE;
	}
	return progress;
}

static void run_blocks(struct block *blocks, unsigned count,
		       const struct kernel_arguments *arguments)
{
	static _Thread_local struct idle idle;
	enum progress progress;

	leave_idle(&idle);
	do {
		progress = advance_blocks(blocks, count);
		if (progress == PROGRESS_MOVED) {
			leave_idle(&idle);
		} else if (progress == PROGRESS_NONE) {
			if (is_aborted(arguments))
				return;
			wait_idle(&idle);
		}
	} while (progress != PROGRESS_DONE);
}

void run_batches(const struct softcuda_launch *launch)
{
	const struct kernel_arguments *arguments = launch->parameters;
	unsigned count = (unsigned)__builtin_popcountll(arguments->channel_mask);
	struct block *blocks;

	blocks = malloc(count * sizeof(*blocks));
	if (!blocks) {
		fprintf(stderr, "softcuda: no memory for the %u channels of an NCCL kernel\n",
			count);
		abort();
	}
	for (unsigned i = 0; i < count; i++)
		start_block(&blocks[i], arguments, i);
	run_blocks(blocks, count, arguments);
	free(blocks);
}
