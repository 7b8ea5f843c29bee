/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * collnet_rails.c - all-gather and reduce-scatter by the network, every GPU of a host being a head
 *
 * GPUs with the same number on their hosts form a rail. The network gathers, or sums, the data of a
 * rail's ranks, host after host; within a host each head passes its rail's data on to the others,
 * or sums theirs.
 */
#include "softcuda/nccl/collnet.h"
#include "softcuda/nccl/direct.h"
#include "softcuda/nccl/move.h"
#include "softcuda/nccl/simple.h"

#define TO_NETWORK_CONNECTION 1
#define FROM_NETWORK_CONNECTION 0

static const struct direct *direct_of(const struct lane *lane)
{
	return &lane->context->channel->collnet_direct;
}

static ptrdiff_t larger_of(ptrdiff_t a, ptrdiff_t b)
{
	return a > b ? a : b;
}

static ptrdiff_t smaller_of(ptrdiff_t a, ptrdiff_t b)
{
	return a < b ? a : b;
}

/* This channel's elements of a rail in the current round. */
struct range {
	ptrdiff_t start;
	ptrdiff_t end;
};

/* False: there is no further round. */
static bool take_range(struct lane *lane, struct range *range)
{
	struct collnet_division division;
	ptrdiff_t total;

	divide_collnet(&division, lane);
	total = division.count * lane->context->comm->node_count;
	if (lane->cursor.position >= total)
		return false;
	range->start = smaller_of(lane->cursor.position + division.part * division.chunk, total);
	range->end = smaller_of(range->start + division.chunk, total);
	lane->cursor.position += division.channels * division.chunk;
	return true;
}

/* What of the range is of this host, and so in this rank's own buffer. */
static bool next_own(struct lane *lane, struct operation *operation, unsigned flags)
{
	struct collnet_division division;
	struct range range;
	ptrdiff_t own;

	divide_collnet(&division, lane);
	own = lane->context->comm->node * division.count;
	if (!take_range(lane, &range))
		return false;
	range.start = larger_of(range.start, own);
	range.end = smaller_of(range.end, own + division.count);
	operation->flags = flags;
	operation->source = range.start - own;
	operation->destination = range.start - own;
	operation->count = larger_of(range.end - range.start, 0);
	return true;
}

static bool next_to_network(struct lane *lane, struct operation *operation)
{
	return next_own(lane, operation, OPERATION_SEND | OPERATION_INPUT);
}

static bool next_from_network(struct lane *lane, struct operation *operation)
{
	return next_own(lane, operation, OPERATION_RECV | OPERATION_STORE | OPERATION_FINISH);
}

static bool next_range(struct lane *lane, struct operation *operation)
{
	struct range range;

	if (!take_range(lane, &range))
		return false;
	operation->flags = 0;
	if (lane->recv_count)
		operation->flags |= OPERATION_RECV;
	if (lane->send_count)
		operation->flags |= OPERATION_SEND;
	operation->source = range.start;
	operation->count = range.end - range.start;
	return true;
}

/* A piece of the range that is one rank's. Counts in elements. */
struct piece {
	int rank;
	ptrdiff_t user;   /* in the buffer that holds the data of all ranks */
	ptrdiff_t offset; /* in a connection's slot */
	ptrdiff_t count;
};

/* The piece that starts `offset` behind the start of the range. False: the range ends there. */
static bool find_piece(const struct lane *lane, int rail, ptrdiff_t offset, struct piece *piece)
{
	ptrdiff_t start = lane->operation.source + offset;
	struct collnet_division division;
	ptrdiff_t node;

	if (offset >= lane->operation.count)
		return false;
	divide_collnet(&division, lane);
	node = start / division.count;
	piece->rank = lane->context->comm
			      ->collnet_dense_to_rank[node * direct_of(lane)->head_count + rail];
	piece->user = piece->rank * division.count + start - node * division.count;
	piece->offset = offset;
	piece->count =
		smaller_of(lane->operation.count - offset, (node + 1) * division.count - start);
	return true;
}

static int rail_of_peer(const struct lane *lane, unsigned i)
{
	return (direct_of(lane)->head_rank + 1 + (int)i) % direct_of(lane)->head_count;
}

static char *in_slot(const struct lane *lane, const struct endpoint *endpoint,
		     const struct piece *piece)
{
	return slot_address(endpoint) + piece->offset * (ptrdiff_t)lane->reduction.element_bytes;
}

static char *in_user_buffer(const struct lane *lane, char *buffer, const struct piece *piece)
{
	return buffer + piece->user * (ptrdiff_t)lane->reduction.element_bytes;
}

/* NULL where the piece is already in its place. */
static char *in_output(const struct lane *lane, const struct piece *piece)
{
	struct collnet_division division;
	char *own;

	divide_collnet(&division, lane);
	own = lane->output +
	      lane->context->comm->rank * division.count * (ptrdiff_t)lane->reduction.element_bytes;
	if (((const struct work_collective *)lane->work)->send_buffer == own &&
	    piece->rank == lane->context->comm->rank)
		return NULL;
	return in_user_buffer(lane, lane->output, piece);
}

/* All-gather: what came from the network is kept and passed on. */
static void move_gathered(struct lane *lane)
{
	ptrdiff_t offset = 0;
	struct piece piece;

	for (; find_piece(lane, direct_of(lane)->head_rank, offset, &piece);
	     offset += piece.count) {
		struct movement movement = { 0 };

		add_source(&movement, in_slot(lane, &lane->recv[0], &piece));
		add_destination(&movement, in_output(lane, &piece));
		for (unsigned i = 0; i < lane->send_count; i++) {
			const struct endpoint *peer = &lane->send[i];
			bool direct = peer->transfer == TRANSFER_WRITE;

			add_destination(&movement,
					direct ? in_user_buffer(lane, peer->direct, &piece)
					       : in_slot(lane, peer, &piece));
		}
		move_elements(&lane->reduction, &movement, (size_t)piece.count);
	}
}

/*
 * All-gather: what the other heads have received, and have not written into our buffer themselves.
 */
static void move_passed_on(struct lane *lane)
{
	struct piece piece;

	for (unsigned i = 0; i < lane->recv_count; i++) {
		int rail = rail_of_peer(lane, i);

		if (lane->recv[i].transfer == TRANSFER_WRITE)
			continue;
		for (ptrdiff_t offset = 0; find_piece(lane, rail, offset, &piece);
		     offset += piece.count) {
			struct movement movement = { 0 };

			add_source(&movement, in_slot(lane, &lane->recv[i], &piece));
			add_destination(&movement, in_output(lane, &piece));
			move_elements(&lane->reduction, &movement, (size_t)piece.count);
		}
	}
}

/* Reduce-scatter: data of the other rails go to their heads. */
static void move_to_heads(struct lane *lane)
{
	struct piece piece;

	for (unsigned i = 0; i < lane->send_count; i++) {
		int rail = rail_of_peer(lane, i);

		for (ptrdiff_t offset = 0; find_piece(lane, rail, offset, &piece);
		     offset += piece.count) {
			struct movement movement = { .prepare = true };

			add_source(&movement, in_user_buffer(lane, lane->input, &piece));
			add_destination(&movement, in_slot(lane, &lane->send[i], &piece));
			move_elements(&lane->reduction, &movement, (size_t)piece.count);
		}
	}
}

/* Reduce-scatter: data of the own rail are summed and given to the network. */
static void move_sums(struct lane *lane)
{
	ptrdiff_t offset = 0;
	struct piece piece;

	for (; find_piece(lane, direct_of(lane)->head_rank, offset, &piece);
	     offset += piece.count) {
		struct movement movement = { .prepare = true };

		add_source(&movement, in_user_buffer(lane, lane->input, &piece));
		for (unsigned i = 0; i < lane->recv_count; i++)
			add_source(&movement, in_slot(lane, &lane->recv[i], &piece));
		add_destination(&movement, in_slot(lane, &lane->send[0], &piece));
		move_elements(&lane->reduction, &movement, (size_t)piece.count);
	}
}

static void start_pieces(struct lane *lane, const struct collective_task *task,
			 move_pieces_fn *move)
{
	start_collnet_lane(lane, task, next_range);
	lane->protocol = &protocol_pieces;
	lane->move_pieces = move;
}

/* The network works on user buffers: steps that it takes for the data of all hosts. */
static ptrdiff_t registered_steps(const struct collective_task *task)
{
	const struct direct *direct = &task->context->channel->collnet_direct;
	const struct work_collective *work = task->work;
	ptrdiff_t total = task->context->comm->node_count * (ptrdiff_t)work->collnet.count;
	ptrdiff_t channels = (ptrdiff_t)work->channel_high - (ptrdiff_t)work->channel_low + 1;
	ptrdiff_t round = channels * (ptrdiff_t)work->collnet.chunk_count;

	if (direct->down[0] < 0 || !NETWORK_STEPS_ARE_ROUNDS)
		return NETWORK_STEPS(total * (ptrdiff_t)task->reduction.element_bytes);
	return (total + round - 1) / round;
}

/* True: the host's GPUs have nothing to exchange, or this version does not ask. */
static bool network_does_all(const struct collective_task *task)
{
	const struct direct *direct = &task->context->channel->collnet_direct;

	return network_uses_buffers(task->work) &&
	       (direct->down[0] < 0 || !NETWORK_STEPS_ARE_ROUNDS);
}

unsigned open_collnet_all_gather(struct lane *lanes, const struct collective_task *task)
{
	const struct direct *direct = &task->context->channel->collnet_direct;
	unsigned count = 0;

	if (network_uses_buffers(task->work))
		start_notify_lane(&lanes[count], task, registered_steps(task));
	else
		start_collnet_lane(&lanes[count], task, next_to_network);
	open_lane_senders(&lanes[count++], &direct->out, 1, TO_NETWORK_CONNECTION);
	if (network_does_all(task)) {
		start_notify_lane(&lanes[count], task, registered_steps(task));
		open_lane_receivers(&lanes[count++], &direct->out, 1, FROM_NETWORK_CONNECTION);
	} else {
		start_pieces(&lanes[count], task, move_gathered);
		open_lane_receivers(&lanes[count], &direct->out, 1, FROM_NETWORK_CONNECTION);
		open_lane_senders(&lanes[count], direct->heads + 1,
				  (unsigned)direct->head_count - 1, FROM_NETWORK_CONNECTION);
		choose_collective_transfers(&lanes[count++], task->work, FROM_NETWORK_CONNECTION,
					    FROM_NETWORK_CONNECTION);
	}
	if (direct->head_count > 1) {
		start_pieces(&lanes[count], task, move_passed_on);
		open_lane_receivers(&lanes[count], direct->heads + 1,
				    (unsigned)direct->head_count - 1, FROM_NETWORK_CONNECTION);
		choose_collective_transfers(&lanes[count++], task->work, FROM_NETWORK_CONNECTION,
					    FROM_NETWORK_CONNECTION);
	}
	return count;
}

unsigned open_collnet_reduce_scatter(struct lane *lanes, const struct collective_task *task)
{
	const struct direct *direct = &task->context->channel->collnet_direct;
	unsigned others = (unsigned)direct->head_count - 1;
	unsigned count = 0;

	if (others) {
		start_pieces(&lanes[count], task, move_to_heads);
		open_lane_senders(&lanes[count++], direct->heads + 1, others,
				  TO_NETWORK_CONNECTION);
	}
	if (network_does_all(task)) {
		start_notify_lane(&lanes[count], task, registered_steps(task));
	} else {
		start_pieces(&lanes[count], task, move_sums);
		open_lane_receivers(&lanes[count], direct->heads + 1, others,
				    TO_NETWORK_CONNECTION);
	}
	open_lane_senders(&lanes[count++], &direct->out, 1, TO_NETWORK_CONNECTION);
	if (network_uses_buffers(task->work))
		start_notify_lane(&lanes[count], task, registered_steps(task));
	else
		start_collnet_lane(&lanes[count], task, next_from_network);
	open_lane_receivers(&lanes[count++], &direct->out, 1, FROM_NETWORK_CONNECTION);
	return count;
}
