/* SPDX-License-Identifier: BSD-3-Clause */
#include "softcuda/nccl/collective.h"

/* Bytes in which the host counts a chunk. */
static size_t grain_bytes(enum protocol protocol)
{
	switch (protocol) {
	case PROTOCOL_LL:
		return 16;
	case PROTOCOL_LL128:
		return LL128_GROUP_LINES * LL128_DATA_BYTES;
	default:
		return 512;
	}
}

void divide_work(struct cursor *cursor, const struct collective_task *task)
{
	const struct division *division = &task->work->division;
	ptrdiff_t grain =
		(ptrdiff_t)(grain_bytes(task->function->protocol) / task->reduction.element_bytes);
	unsigned low = task->work->channel_low;
	unsigned high = task->work->channel_high;
	unsigned channel = (unsigned)task->context->channel_id;
	/* -1 where there is one channel only */
	ptrdiff_t middle = (ptrdiff_t)high - (ptrdiff_t)low - 1;
	ptrdiff_t count_low = (ptrdiff_t)division->count_low;
	ptrdiff_t count_middle = (ptrdiff_t)division->count_middle;

	cursor->total = count_low + middle * count_middle + (ptrdiff_t)division->count_high;
	if (channel == low) {
		cursor->start = 0;
		cursor->count = count_low;
		cursor->chunk = (ptrdiff_t)division->grains_low * grain;
	} else if (channel == high) {
		cursor->start = count_low + middle * count_middle;
		cursor->count = (ptrdiff_t)division->count_high;
		cursor->chunk = (ptrdiff_t)division->grains_high * grain;
	} else {
		cursor->start =
			count_low + ((ptrdiff_t)channel - (ptrdiff_t)low - 1) * count_middle;
		cursor->count = count_middle;
		cursor->chunk = (ptrdiff_t)division->grains_middle * grain;
	}
	cursor->position = 0;
	cursor->step = 0;
}

void start_lane(struct lane *lane, const struct collective_task *task, next_operation_fn *next)
{
	ptrdiff_t buffer = task->context->comm->buffer_bytes[PROTOCOL_SIMPLE];

	init_lane(lane, task->context, task->function->protocol, next);
	lane->work = task->work;
	lane->reduction = task->reduction;
	lane->input = task->work->send_buffer;
	lane->output = task->work->recv_buffer;
	lane->step_elements = buffer / FIFO_STEPS / (ptrdiff_t)task->reduction.element_bytes;
}

ptrdiff_t chunk_at_position(const struct cursor *cursor)
{
	ptrdiff_t left = cursor->count - cursor->position;

	return left < cursor->chunk ? left : cursor->chunk;
}
