/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * simple.c - the Simple protocol: data in slots, announced by the counters
 *
 * A chunk is moved in slices; each takes `steps_per_slice` steps of every connection that takes
 * part, also where the slice is empty, for peers and proxies count steps.
 */
#include "softcuda/nccl/simple.h"
#include "softcuda/nccl/move.h"
#include "softcuda/nccl/shared_memory.h"

static ptrdiff_t divide_up(ptrdiff_t value, ptrdiff_t by)
{
	return (value + by - 1) / by;
}

static void begin_simple(struct lane *lane)
{
	ptrdiff_t smallest = lane->step_elements * lane->steps_per_slice / 32;
	ptrdiff_t even = divide_up(lane->operation.count, 16 * lane->slices_per_chunk) * 16;

	lane->slice.size = even > smallest ? even : smallest;
}

bool peers_are_ready(struct lane *lane)
{
	unsigned steps = lane->steps_per_slice;

	for (unsigned i = 0; lane->operation.flags & OPERATION_RECV && i < lane->recv_count; i++) {
		if (!endpoint_is_ready(&lane->recv[i], steps))
			return false;
	}
	for (unsigned i = 0; lane->operation.flags & OPERATION_SEND && i < lane->send_count; i++) {
		if (!endpoint_is_ready(&lane->send[i], steps))
			return false;
	}
	return true;
}

char *slot_address(const struct endpoint *endpoint)
{
	struct fifo_slot *slot;

	if (endpoint->fifo) {
		slot = endpoint_slot(endpoint);
		if ((int32_t)load_relaxed_32(&slot->mode) == FIFO_MODE_OFFSET)
			return endpoint->info->buffers[PROTOCOL_SIMPLE] +
			       (int32_t)load_relaxed_32(&slot->offset);
	}
	return endpoint->info->buffers[PROTOCOL_SIMPLE] +
	       endpoint->step % FIFO_STEPS * endpoint->step_bytes;
}

/* Where the data of the current slice lies that this endpoint receives. */
static const char *source_address(const struct lane *lane, const struct endpoint *endpoint)
{
	size_t size = lane->reduction.element_bytes;
	ptrdiff_t source = (lane->operation.source + lane->slice.offset) * (ptrdiff_t)size;
	ptrdiff_t destination =
		(lane->operation.destination + lane->slice.offset) * (ptrdiff_t)size;

	if (!(lane->operation.flags & OPERATION_DIRECT_RECV))
		return slot_address(endpoint);
	switch (endpoint->transfer) {
	case TRANSFER_NET:
		return lane->output + source;
	case TRANSFER_READ:
		return endpoint->direct + source;
	case TRANSFER_WRITE:
		return endpoint->direct + destination;
	case TRANSFER_BUFFER:
		break;
	}
	return slot_address(endpoint);
}

/*
 * Where this endpoint's copy of the slice goes; NULL: the peer or the network takes it from a user
 * buffer of ours.
 */
static char *destination_address(const struct lane *lane, const struct endpoint *endpoint)
{
	size_t size = lane->reduction.element_bytes;
	ptrdiff_t destination =
		(lane->operation.destination + lane->slice.offset) * (ptrdiff_t)size;

	if (!(lane->operation.flags & OPERATION_DIRECT_SEND))
		return slot_address(endpoint);
	switch (endpoint->transfer) {
	case TRANSFER_NET:
		return lane->operation.flags & OPERATION_RECV ? lane->output + destination : NULL;
	case TRANSFER_READ:
		return NULL;
	case TRANSFER_WRITE:
		return endpoint->direct + destination;
	case TRANSFER_BUFFER:
		break;
	}
	return slot_address(endpoint);
}

static void move_slice(struct lane *lane, size_t count)
{
	const struct operation *operation = &lane->operation;
	size_t size = lane->reduction.element_bytes;
	ptrdiff_t source = (operation->source + lane->slice.offset) * (ptrdiff_t)size;
	ptrdiff_t destination = (operation->destination + lane->slice.offset) * (ptrdiff_t)size;
	struct movement movement = {
		.prepare = operation->flags & OPERATION_INPUT,
		.finish = operation->flags & OPERATION_FINISH,
	};

	if (operation->flags & OPERATION_INPUT)
		add_source(&movement, lane->input + source);
	if (operation->flags & OPERATION_STORED)
		add_source(&movement, lane->output + source);
	for (unsigned i = 0; operation->flags & OPERATION_RECV && i < lane->recv_count; i++)
		add_source(&movement, source_address(lane, &lane->recv[i]));
	if (operation->flags & OPERATION_STORE)
		add_destination(&movement, lane->output + destination);
	for (unsigned i = 0; operation->flags & OPERATION_SEND && i < lane->send_count; i++)
		add_destination(&movement, destination_address(lane, &lane->send[i]));
	move_elements(&lane->reduction, &movement, count);
}

void post_slice(struct lane *lane, size_t count)
{
	unsigned steps = lane->steps_per_slice;

	for (unsigned i = 0; lane->operation.flags & OPERATION_RECV && i < lane->recv_count; i++)
		post_steps(&lane->recv[i], steps);
	for (unsigned i = 0; lane->operation.flags & OPERATION_SEND && i < lane->send_count; i++) {
		announce_size(&lane->send[i], count * lane->reduction.element_bytes);
		post_steps(&lane->send[i], steps);
	}
}

static enum progress advance_simple(struct lane *lane)
{
	ptrdiff_t left = lane->operation.count - lane->slice.offset;
	ptrdiff_t count = left < lane->slice.size ? left : lane->slice.size;

	if (!peers_are_ready(lane))
		return PROGRESS_NONE;
	if (count > 0 && !lane->offloaded)
		move_slice(lane, (size_t)count);
	post_slice(lane, (size_t)count);
	lane->slice.offset += count;
	lane->slice.index++;
	return lane->slice.index == lane->slices_per_chunk ? PROGRESS_DONE : PROGRESS_MOVED;
}

const struct protocol_functions protocol_simple = {
	.id = PROTOCOL_SIMPLE,
	.advance = advance_simple,
	.begin = begin_simple,
};
