/* SPDX-License-Identifier: BSD-3-Clause */
#include "softcuda/nccl/collnet.h"

void divide_collnet(struct collnet_division *division, const struct lane *lane)
{
	const struct work_collective *work = lane->work;

	division->count = (ptrdiff_t)work->collnet.count;
	division->chunk = (ptrdiff_t)work->collnet.chunk_count;
	division->part = lane->context->channel_id - (int)work->channel_low;
	division->channels = (ptrdiff_t)work->channel_high - (ptrdiff_t)work->channel_low + 1;
}

void start_collnet_lane(struct lane *lane, const struct collective_task *task,
			next_operation_fn *next)
{
	start_lane(lane, task, next);
	set_lane_slices(lane, 1, 1);
}

static bool next_notification(struct lane *lane, struct operation *operation)
{
	if (lane->cursor.step++)
		return false;
	operation->flags = 0;
	operation->count = lane->cursor.count;
	return true;
}

void start_notify_lane(struct lane *lane, const struct collective_task *task, ptrdiff_t steps)
{
	start_collnet_lane(lane, task, next_notification);
	lane->protocol = &protocol_notify;
	lane->cursor.count = steps;
}
