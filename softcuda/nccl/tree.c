/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tree.c - all-reduce on a tree: sums go up, the result comes down
 *
 * The root does both in one lane. Every other rank has two lanes: chunks that were summed further
 * down are passed up while results of earlier chunks come down.
 */
#include "softcuda/nccl/collective.h"
#include "softcuda/nccl/direct.h"

static bool next_of_tree(struct lane *lane, struct operation *operation, unsigned flags)
{
	struct cursor *cursor = &lane->cursor;

	if (cursor->position >= cursor->count)
		return false;
	operation->flags = flags;
	operation->source = cursor->start + cursor->position;
	operation->destination = operation->source;
	operation->count = chunk_at_position(cursor);
	cursor->position += cursor->chunk;
	return true;
}

static bool next_at_root(struct lane *lane, struct operation *operation)
{
	return next_of_tree(lane, operation,
			    OPERATION_RECV | OPERATION_SEND | OPERATION_INPUT | OPERATION_STORE |
				    OPERATION_FINISH | OPERATION_DIRECT_SEND |
				    (REDUCING_IS_DIRECT ? OPERATION_DIRECT : 0));
}

static bool next_up(struct lane *lane, struct operation *operation)
{
	unsigned flags =
		OPERATION_SEND | OPERATION_INPUT | (REDUCING_IS_DIRECT ? OPERATION_DIRECT : 0);

	if (lane->recv_count)
		flags |= OPERATION_RECV;
	return next_of_tree(lane, operation, flags);
}

static bool next_down(struct lane *lane, struct operation *operation)
{
	unsigned flags = OPERATION_RECV | OPERATION_STORE | OPERATION_DIRECT;

	if (lane->send_count)
		flags |= OPERATION_SEND;
	return next_of_tree(lane, operation, flags);
}

static void open_tree_lane(struct lane *lane, const struct collective_task *task,
			   next_operation_fn *next)
{
	start_lane(lane, task, next);
	divide_work(&lane->cursor, task);
}

unsigned open_tree(struct lane *lanes, const struct collective_task *task)
{
	const struct tree *tree = &task->context->channel->tree;

	if (tree->up < 0) {
		open_tree_lane(&lanes[0], task, next_at_root);
		open_lane_receivers(&lanes[0], tree->down, TREE_ARITY, 0);
		open_lane_senders(&lanes[0], tree->down, TREE_ARITY, 0);
		choose_collective_transfers(&lanes[0], task->work, 0, 0);
		return 1;
	}
	open_tree_lane(&lanes[0], task, next_up);
	open_lane_receivers(&lanes[0], tree->down, TREE_ARITY, 0);
	open_lane_senders(&lanes[0], &tree->up, 1, 0);
	choose_collective_transfers(&lanes[0], task->work, 0, 0);
	open_tree_lane(&lanes[1], task, next_down);
	open_lane_receivers(&lanes[1], &tree->up, 1, 0);
	open_lane_senders(&lanes[1], tree->down, TREE_ARITY, 0);
	choose_collective_transfers(&lanes[1], task->work, 0, 0);
	return 2;
}
