/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * collnet_chain.c - all-reduce: sums go up a chain of the host's GPUs and into the network, results
 * come down again
 *
 * In the peers the network is one more rank, behind the last. Up uses the second connection of each
 * two peers, down the first.
 */
#include "softcuda/nccl/collnet.h"
#include "softcuda/nccl/direct.h"

#define UP_CONNECTION 1
#define DOWN_CONNECTION 0

static bool next_of_chain(struct lane *lane, struct operation *operation, unsigned flags)
{
	struct collnet_division division;
	ptrdiff_t offset;
	ptrdiff_t left;

	divide_collnet(&division, lane);
	if (lane->cursor.position >= division.count)
		return false;
	offset = lane->cursor.position + division.part * division.chunk;
	left = division.count - offset;
	operation->flags = flags;
	operation->source = offset;
	operation->destination = offset;
	operation->count = left < division.chunk ? left : division.chunk;
	lane->cursor.position += division.channels * division.chunk;
	return true;
}

static bool next_up(struct lane *lane, struct operation *operation)
{
	unsigned flags =
		OPERATION_SEND | OPERATION_INPUT | (REDUCING_IS_DIRECT ? OPERATION_DIRECT : 0);

	if (lane->recv_count)
		flags |= OPERATION_RECV;
	return next_of_chain(lane, operation, flags);
}

/* Who receives from the network finishes the result for all. */
static bool next_down(struct lane *lane, struct operation *operation)
{
	unsigned flags = OPERATION_RECV | OPERATION_STORE | OPERATION_DIRECT;

	if (lane->recv[0].peer == lane->context->comm->rank_count)
		flags |= OPERATION_FINISH;
	if (lane->send_count)
		flags |= OPERATION_SEND;
	return next_of_chain(lane, operation, flags);
}

static ptrdiff_t registered_steps(const struct collective_task *task)
{
	return NETWORK_STEPS(
		(ptrdiff_t)(task->work->collnet.count * task->reduction.element_bytes));
}

static void open_up(struct lane *lane, const struct collective_task *task)
{
	const struct tree *chain = &task->context->channel->collnet_chain;

	if (chain->down[0] < 0 && network_uses_buffers(task->work)) {
		start_notify_lane(lane, task, registered_steps(task));
		open_lane_senders(lane, &chain->up, 1, UP_CONNECTION);
		return;
	}
	start_collnet_lane(lane, task, next_up);
	open_lane_receivers(lane, chain->down, 1, UP_CONNECTION);
	open_lane_senders(lane, &chain->up, 1, UP_CONNECTION);
	choose_collective_transfers(lane, task->work, UP_CONNECTION, UP_CONNECTION);
}

static void open_down(struct lane *lane, const struct collective_task *task)
{
	const struct tree *chain = &task->context->channel->collnet_chain;
	bool from_network = chain->up == task->context->comm->rank_count;

	if (from_network && chain->down[0] < 0 && network_uses_buffers(task->work)) {
		start_notify_lane(lane, task, registered_steps(task));
		open_lane_receivers(lane, &chain->up, 1, DOWN_CONNECTION);
		return;
	}
	start_collnet_lane(lane, task, next_down);
	open_lane_receivers(lane, &chain->up, 1, DOWN_CONNECTION);
	open_lane_senders(lane, chain->down, 1, DOWN_CONNECTION);
	choose_collective_transfers(lane, task->work, DOWN_CONNECTION, DOWN_CONNECTION);
}

unsigned open_collnet_chain(struct lane *lanes, const struct collective_task *task)
{
	open_up(&lanes[0], task);
	open_down(&lanes[1], task);
	return 2;
}
