/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * collnet_direct.c - all-reduce: each of a host's GPUs with a NIC, a head, sums a share of the data
 * of all its GPUs
 *
 * Up to four lanes: data for the other heads are scattered, shares of the other GPUs are summed and
 * given to the network, results come from the network and go to the other GPUs, results of the
 * other heads are gathered.
 */
#include "softcuda/nccl/collnet.h"
#include "softcuda/nccl/direct.h"
#include "softcuda/nccl/move.h"
#include "softcuda/nccl/simple.h"

#define SUM_CONNECTION 1
#define RESULT_CONNECTION 0

static const struct direct *direct_of(const struct lane *lane)
{
	return &lane->context->channel->collnet_direct;
}

/*
 * Shares of the heads within a round: side by side for each channel, or, where the network works on
 * user buffers, those of all channels side by side for each head.
 */
struct shares {
	struct collnet_division division;
	ptrdiff_t heads;
	ptrdiff_t first;  /* share of head 0 of this channel */
	ptrdiff_t stride; /* to the next head's */
};

static void find_shares(struct shares *shares, const struct lane *lane)
{
	bool by_head = network_uses_buffers(lane->work);
	struct collnet_division *division = &shares->division;

	divide_collnet(division, lane);
	shares->heads = direct_of(lane)->head_count;
	shares->first = by_head ? division->part * division->chunk
				: division->part * shares->heads * division->chunk;
	shares->stride = by_head ? division->channels * division->chunk : division->chunk;
}

static void next_round(struct lane *lane, const struct shares *shares)
{
	lane->cursor.position += shares->division.channels * shares->heads * shares->division.chunk;
}

/* A chunk of what this head is responsible for. */
static bool next_share(struct lane *lane, struct operation *operation, unsigned flags)
{
	struct shares shares;
	ptrdiff_t offset;
	ptrdiff_t left;

	find_shares(&shares, lane);
	if (lane->cursor.position >= shares.division.count)
		return false;
	offset = lane->cursor.position + shares.first + direct_of(lane)->head_rank * shares.stride;
	left = shares.division.count - offset;
	operation->flags = flags;
	operation->source = offset;
	operation->destination = offset;
	operation->count = left < shares.division.chunk ? left : shares.division.chunk;
	next_round(lane, &shares);
	return true;
}

static bool next_sum(struct lane *lane, struct operation *operation)
{
	unsigned flags = OPERATION_SEND | OPERATION_INPUT;

	if (lane->recv_count)
		flags |= OPERATION_RECV;
	return next_share(lane, operation, flags);
}

static bool next_result(struct lane *lane, struct operation *operation)
{
	unsigned flags = OPERATION_RECV | OPERATION_STORE | OPERATION_FINISH;

	if (lane->send_count)
		flags |= OPERATION_SEND;
	return next_share(lane, operation, flags);
}

/* The chunks of all other heads in this round. */
static bool next_exchange(struct lane *lane, struct operation *operation)
{
	struct shares shares;
	ptrdiff_t offset;

	find_shares(&shares, lane);
	if (lane->cursor.position >= shares.division.count)
		return false;
	offset = lane->cursor.position + shares.first;
	operation->flags = lane->send_count ? OPERATION_SEND : OPERATION_RECV;
	operation->source = offset;
	operation->destination = offset;
	operation->count = shares.division.chunk;
	operation->limit = shares.division.count - offset;
	if (!network_uses_buffers(lane->work) &&
	    operation->limit > shares.heads * shares.division.chunk)
		operation->limit = shares.heads * shares.division.chunk;
	next_round(lane, &shares);
	return true;
}

/*
 * Where the share of the i-th of the other heads lies, and how much of it there is; own data are
 * left out.
 */
static ptrdiff_t share_of_peer(const struct lane *lane, unsigned i, ptrdiff_t *count)
{
	int own = direct_of(lane)->head_rank;
	struct shares shares;
	ptrdiff_t offset;

	find_shares(&shares, lane);
	offset = (ptrdiff_t)i * shares.stride;
	if (own >= 0 && (int)i >= own)
		offset += shares.stride;
	*count = lane->operation.limit - offset;
	if (*count > lane->operation.count)
		*count = lane->operation.count;
	return offset;
}

static void move_scattered(struct lane *lane)
{
	for (unsigned i = 0; i < lane->send_count; i++) {
		struct movement movement = { .prepare = true };
		ptrdiff_t count;
		ptrdiff_t offset = lane->operation.source + share_of_peer(lane, i, &count);

		if (count <= 0)
			continue;
		add_source(&movement,
			   lane->input + offset * (ptrdiff_t)lane->reduction.element_bytes);
		add_destination(&movement, slot_address(&lane->send[i]));
		move_elements(&lane->reduction, &movement, (size_t)count);
	}
}

static void move_gathered(struct lane *lane)
{
	for (unsigned i = 0; i < lane->recv_count; i++) {
		struct movement movement = { 0 };
		ptrdiff_t count;
		ptrdiff_t offset = lane->operation.destination + share_of_peer(lane, i, &count);

		if (count <= 0)
			continue;
		add_source(&movement, slot_address(&lane->recv[i]));
		add_destination(&movement,
				lane->output + offset * (ptrdiff_t)lane->reduction.element_bytes);
		move_elements(&lane->reduction, &movement, (size_t)count);
	}
}

static void open_exchange(struct lane *lane, const struct collective_task *task,
			  move_pieces_fn *move)
{
	start_collnet_lane(lane, task, next_exchange);
	lane->protocol = &protocol_pieces;
	lane->move_pieces = move;
}

static ptrdiff_t registered_steps(const struct collective_task *task)
{
	return NETWORK_STEPS(
		(ptrdiff_t)(task->work->collnet.count * task->reduction.element_bytes));
}

static void open_sums(struct lane *lane, const struct collective_task *task, bool notifies)
{
	const struct direct *direct = &task->context->channel->collnet_direct;

	if (notifies) {
		start_notify_lane(lane, task, registered_steps(task));
	} else {
		start_collnet_lane(lane, task, next_sum);
		open_lane_receivers(lane, direct->down, DIRECT_ARITY, SUM_CONNECTION);
	}
	open_lane_senders(lane, &direct->out, 1, SUM_CONNECTION);
}

static void open_results(struct lane *lane, const struct collective_task *task, bool notifies)
{
	const struct direct *direct = &task->context->channel->collnet_direct;

	if (notifies) {
		start_notify_lane(lane, task, registered_steps(task));
		open_lane_receivers(lane, &direct->out, 1, RESULT_CONNECTION);
		return;
	}
	start_collnet_lane(lane, task, next_result);
	open_lane_receivers(lane, &direct->out, 1, RESULT_CONNECTION);
	open_lane_senders(lane, direct->down, DIRECT_ARITY, RESULT_CONNECTION);
}

unsigned open_collnet_all_reduce(struct lane *lanes, const struct collective_task *task)
{
	const struct direct *direct = &task->context->channel->collnet_direct;
	bool notifies = direct->down[0] < 0 && network_uses_buffers(task->work);
	unsigned count = 0;

	if (direct->up[0] >= 0) {
		open_exchange(&lanes[count], task, move_scattered);
		open_lane_senders(&lanes[count++], direct->up, DIRECT_ARITY, SUM_CONNECTION);
		open_exchange(&lanes[count], task, move_gathered);
		open_lane_receivers(&lanes[count++], direct->up, DIRECT_ARITY, RESULT_CONNECTION);
	}
	if (direct->out >= 0) {
		open_sums(&lanes[count++], task, notifies);
		open_results(&lanes[count++], task, notifies);
	}
	return count;
}
