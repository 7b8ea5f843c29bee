/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * broadcasts.c - an all-gather of different sizes: many broadcasts on one ring, a chunk of each in
 * turn
 */
#include "softcuda/nccl/broadcasts.h"

static bool any_bytes_left(const struct work_broadcast *works, ptrdiff_t count)
{
	for (ptrdiff_t i = 0; i < count; i++) {
		if (works[i].bytes)
			return true;
	}
	return false;
}

static unsigned flags_of_depth(const struct work_broadcast *work, int ranks)
{
	if (work->ring_depth == 0 && work->send_buffer == work->recv_buffer)
		return OPERATION_SEND | OPERATION_INPUT;
	if (work->ring_depth == 0)
		return OPERATION_SEND | OPERATION_INPUT | OPERATION_STORE;
	if (work->ring_depth == ranks - 1)
		return OPERATION_RECV | OPERATION_STORE;
	return OPERATION_RECV | OPERATION_STORE | OPERATION_SEND;
}

/* The cursor's step is the work whose turn it is, its total the number of works. */
static bool next_of_broadcasts(struct lane *lane, struct operation *operation)
{
	struct work_broadcast *works = lane->broadcasts;
	struct work_broadcast *work;
	size_t bytes;

	if (!any_bytes_left(works, lane->cursor.total))
		return false;
	while (!works[lane->cursor.step].bytes)
		lane->cursor.step = (lane->cursor.step + 1) % (int)lane->cursor.total;
	work = &works[lane->cursor.step];
	lane->cursor.step = (lane->cursor.step + 1) % (int)lane->cursor.total;
	bytes = work->bytes < (size_t)work->chunk_bytes ? work->bytes : (size_t)work->chunk_bytes;
	lane->input = work->send_buffer;
	lane->output = work->recv_buffer;
	operation->flags = flags_of_depth(work, lane->context->comm->rank_count);
	operation->source = (ptrdiff_t)work->bytes_done;
	operation->destination = (ptrdiff_t)work->bytes_done;
	operation->count = (ptrdiff_t)bytes;
	work->bytes -= bytes;
	work->bytes_done += bytes;
	return true;
}

unsigned open_broadcasts(struct lane *lane, const struct lane_context *context,
			 enum protocol protocol, struct work_broadcast *works, unsigned count)
{
	const struct ring *ring = &context->channel->ring;

	init_lane(lane, context, protocol, next_of_broadcasts);
	find_copy(&lane->reduction);
	lane->broadcasts = works;
	lane->cursor.total = count;
	lane->step_elements = context->comm->buffer_bytes[PROTOCOL_SIMPLE] / (int)FIFO_STEPS;
	open_lane_receivers(lane, &ring->previous, 1, 0);
	open_lane_senders(lane, &ring->next, 1, 0);
	return 1;
}
