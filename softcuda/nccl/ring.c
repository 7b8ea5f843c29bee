/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ring.c - the collectives on a ring: each rank receives from the one before it and sends to the
 * one behind it
 *
 * In all of them the data of a chunk start at one rank and travel round the ring; what differs is
 * whose data a rank handles in its s-th step, and what it does with them.
 */
#include "softcuda/nccl/collective.h"
#include "softcuda/nccl/direct.h"

static const struct work_collective *work_of(const struct lane *lane)
{
	return lane->work;
}

static void fill_operation(struct operation *operation, unsigned flags, ptrdiff_t source,
			   ptrdiff_t destination, ptrdiff_t count)
{
	operation->flags = flags;
	operation->source = source;
	operation->destination = destination;
	operation->count = count;
}

/* Go to the next step; after `steps` of them to the next position. */
static void advance_cursor(struct cursor *cursor, int steps, ptrdiff_t round)
{
	if (++cursor->step < steps)
		return;
	cursor->step = 0;
	cursor->position += round;
}

/*
 * All-reduce: n chunks at a time. In steps 0 to n-1 chunks are summed along the ring, each ending
 * at another rank; in steps n-1 to 2n-2 the sums go round.
 */
static unsigned all_reduce_flags(int step, int ranks)
{
	unsigned direct = REDUCING_IS_DIRECT ? OPERATION_DIRECT : 0;

	if (step == 0)
		return OPERATION_SEND | OPERATION_INPUT | direct;
	if (step < ranks - 1)
		return OPERATION_RECV | OPERATION_SEND | OPERATION_INPUT | direct;
	if (step == ranks - 1)
		return OPERATION_RECV | OPERATION_SEND | OPERATION_INPUT | OPERATION_STORE |
		       OPERATION_FINISH | OPERATION_DIRECT_SEND | direct;
	if (step < 2 * ranks - 2)
		return OPERATION_RECV | OPERATION_SEND | OPERATION_STORE | OPERATION_DIRECT;
	return OPERATION_RECV | OPERATION_STORE | OPERATION_DIRECT;
}

static bool next_all_reduce(struct lane *lane, struct operation *operation)
{
	struct cursor *cursor = &lane->cursor;
	int ranks = lane->context->comm->rank_count;
	ptrdiff_t left = cursor->count - cursor->position;
	ptrdiff_t alignment = 16 / (ptrdiff_t)lane->reduction.element_bytes;
	ptrdiff_t chunk = cursor->chunk;
	ptrdiff_t offset;
	int index;

	if (left <= 0)
		return false;
	if (left < chunk * ranks) {
		chunk = (left + ranks - 1) / ranks;
		chunk = (chunk + alignment - 1) / alignment * alignment;
	}
	index = (lane->context->channel->ring.index + 2 * ranks - 1 - cursor->step) % ranks;
	offset = index * chunk;
	left -= offset;
	offset += cursor->start + cursor->position;
	fill_operation(operation, all_reduce_flags(cursor->step, ranks), offset, offset,
		       left < chunk ? left : chunk);
	advance_cursor(cursor, 2 * ranks - 1, cursor->chunk * ranks);
	return true;
}

/* All-gather: in step s a rank handles the data of the rank that is s places before it. */
static bool next_all_gather(struct lane *lane, struct operation *operation)
{
	struct cursor *cursor = &lane->cursor;
	int ranks = lane->context->comm->rank_count;
	int whose = lane->context->channel->ring.user_ranks[(ranks - cursor->step) % ranks];
	ptrdiff_t source = cursor->start + cursor->position;
	ptrdiff_t destination = source + whose * cursor->total;
	ptrdiff_t size = (ptrdiff_t)lane->reduction.element_bytes;
	bool in_place = lane->input + source * size == lane->output + destination * size;
	unsigned flags = OPERATION_DIRECT;

	if (cursor->position >= cursor->count)
		return false;
	if (cursor->step == 0) {
		flags |= OPERATION_SEND | OPERATION_INPUT;
		if (!in_place && !lane->offloaded)
			flags |= OPERATION_STORE;
	} else {
		source = destination;
		flags |= OPERATION_RECV | OPERATION_STORE;
		if (cursor->step < ranks - 1)
			flags |= OPERATION_SEND;
	}
	fill_operation(operation, flags, source, destination, chunk_at_position(cursor));
	advance_cursor(cursor, ranks, cursor->chunk);
	return true;
}

/*
 * Reduce-scatter: in step s a rank adds to the data for the rank that is s+1 places before it; its
 * own come last.
 */
static bool next_reduce_scatter(struct lane *lane, struct operation *operation)
{
	struct cursor *cursor = &lane->cursor;
	int ranks = lane->context->comm->rank_count;
	ptrdiff_t destination = cursor->start + cursor->position;
	unsigned flags = OPERATION_INPUT;
	int whose;

	if (cursor->position >= cursor->count)
		return false;
	whose = lane->context->channel->ring.user_ranks[ranks - 1 - cursor->step];
	if (cursor->step > 0)
		flags |= OPERATION_RECV;
	if (cursor->step < ranks - 1)
		flags |= OPERATION_SEND;
	else
		flags |= OPERATION_STORE | OPERATION_FINISH;
	fill_operation(operation, flags, destination + whose * cursor->total, destination,
		       chunk_at_position(cursor));
	advance_cursor(cursor, ranks, cursor->chunk);
	return true;
}

static bool next_reduce(struct lane *lane, struct operation *operation)
{
	struct cursor *cursor = &lane->cursor;
	const struct ring *ring = &lane->context->channel->ring;
	int ranks = lane->context->comm->rank_count;
	int root = (int)work_of(lane)->root;
	ptrdiff_t offset = cursor->start + cursor->position;
	unsigned flags = OPERATION_INPUT;

	if (cursor->position >= cursor->count)
		return false;
	if (ring->user_ranks[ranks - 1] != root)
		flags |= OPERATION_RECV;
	if (lane->context->comm->rank == root)
		flags |= OPERATION_STORE | OPERATION_FINISH;
	else
		flags |= OPERATION_SEND;
	fill_operation(operation, flags, offset, offset, chunk_at_position(cursor));
	advance_cursor(cursor, 1, cursor->chunk);
	return true;
}

static bool next_broadcast(struct lane *lane, struct operation *operation)
{
	struct cursor *cursor = &lane->cursor;
	const struct ring *ring = &lane->context->channel->ring;
	int root = (int)work_of(lane)->root;
	ptrdiff_t offset = cursor->start + cursor->position;
	unsigned flags = BROADCAST_IS_DIRECT ? OPERATION_DIRECT : 0;

	if (cursor->position >= cursor->count)
		return false;
	if (ring->user_ranks[0] == root) {
		flags |= OPERATION_SEND | OPERATION_INPUT;
		if (lane->input != lane->output && !network_moves_all(work_of(lane)))
			flags |= OPERATION_STORE;
	} else {
		flags |= OPERATION_RECV | OPERATION_STORE;
		if (ring->user_ranks[1] != root)
			flags |= OPERATION_SEND;
	}
	fill_operation(operation, flags, offset, offset, chunk_at_position(cursor));
	advance_cursor(cursor, 1, cursor->chunk);
	return true;
}

static next_operation_fn *next_of_collective(enum collective collective)
{
	switch (collective) {
	case COLLECTIVE_ALL_REDUCE:
		return next_all_reduce;
	case COLLECTIVE_ALL_GATHER:
		return next_all_gather;
	case COLLECTIVE_REDUCE_SCATTER:
		return next_reduce_scatter;
	case COLLECTIVE_REDUCE:
		return next_reduce;
	default:
		return next_broadcast;
	}
}

/* Where the network moves all data between user buffers, what is left is to copy a rank's own. */
static bool next_own_copy(struct lane *lane, struct operation *operation)
{
	const struct cursor *cursor = &lane->cursor;

	if (lane->cursor.step++)
		return false;
	/* The position is that of this rank's data in the output. */
	fill_operation(operation, OPERATION_INPUT | OPERATION_STORE, cursor->start,
		       cursor->start + cursor->position, cursor->count);
	return true;
}

static unsigned open_own_copy(struct lane *lane, const struct collective_task *task)
{
	bool gathers = task->function->collective == COLLECTIVE_ALL_GATHER;

	start_lane(lane, task, next_own_copy);
	divide_work(&lane->cursor, task);
	if (gathers)
		lane->cursor.position = task->context->comm->rank * lane->cursor.total;
	else if (task->context->comm->rank != (int)task->work->root)
		return 0;
	return 1;
}

/* Reduce and broadcast pass on single steps, the others chunks of two slices of two steps. */
static void choose_slices(struct lane *lane, enum collective collective)
{
	if (collective == COLLECTIVE_REDUCE || collective == COLLECTIVE_BROADCAST)
		set_lane_slices(lane, 1, 1);
	else
		set_lane_slices(lane, 2, 2);
}

/* Sums that are passed on are nobody's result: there is no user buffer for them. */
static bool may_be_direct(enum collective collective)
{
	if (collective == COLLECTIVE_BROADCAST)
		return BROADCAST_IS_DIRECT;
	return collective == COLLECTIVE_ALL_REDUCE || collective == COLLECTIVE_ALL_GATHER;
}

static void offload_all_gather(struct lane *lane)
{
	lane->offloaded = true;
	lane->cursor.chunk = NET_REGISTERED_CHUNK;
	lane->step_elements = NET_REGISTERED_CHUNK;
	set_lane_slices(lane, 1, 1);
}

unsigned open_ring(struct lane *lanes, const struct collective_task *task)
{
	const struct ring *ring = &task->context->channel->ring;
	enum collective collective = task->function->collective;
	bool network_moves = network_moves_all(task->work);

	start_lane(&lanes[0], task, next_of_collective(collective));
	divide_work(&lanes[0].cursor, task);
	choose_slices(&lanes[0], collective);
	if (network_moves && collective == COLLECTIVE_ALL_GATHER)
		offload_all_gather(&lanes[0]);
	open_lane_receivers(&lanes[0], &ring->previous, 1, 0);
	open_lane_senders(&lanes[0], &ring->next, 1, 0);
	if (may_be_direct(collective))
		choose_collective_transfers(&lanes[0], task->work, 0, 0);
	if (network_moves &&
	    (collective == COLLECTIVE_ALL_GATHER || collective == COLLECTIVE_BROADCAST))
		return 1 + open_own_copy(&lanes[1], task);
	return 1;
}
