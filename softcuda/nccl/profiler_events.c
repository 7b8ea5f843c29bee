/* SPDX-License-Identifier: BSD-3-Clause */
#include "softcuda/nccl/profiler.h"
#include "softcuda/nccl/shared_memory.h"

#include <time.h>

/* A GPU's global timer: nanoseconds of the wall clock. */
static uint64_t read_timer(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool work_is_profiled(const struct batch *batch, unsigned index)
{
	const void *work = work_of_batch(batch, index);

	switch (batch->type) {
	case WORK_P2P:
		return ((const struct work_p2p *)work)->profiled;
	case WORK_COLLECTIVE:
	case WORK_COLLECTIVE_REGISTERED:
		return ((const struct work_collective *)work)->profiled;
	case WORK_BROADCASTS:
		break;
	}
	return false;
}

static void note_works(const struct batch *batch, struct profiler_channel *channels, int channel_id,
		       uint64_t counter)
{
	for (unsigned i = 0; i < batch->work_count; i++) {
		uint64_t number = counter + 1 + i;
		struct profiler_event *event;

		if (!work_is_profiled(batch, i))
			continue;
		event = &channels[channel_id].events[number % PROFILER_EVENTS];
		store_relaxed(&event->timestamp, read_timer());
		/* the host's thread polls it, then reads the time */
		store_release(&event->counter, number);
	}
}

uint64_t read_work_counter(const struct channel *channel)
{
	return channel->work_counter;
}

void write_work_counter(struct channel *channel, uint64_t counter)
{
	channel->work_counter = counter;
}

void note_works_started(const struct batch *batch, const struct lane_context *context,
			uint64_t counter)
{
	note_works(batch, context->comm->work_started, context->channel_id, counter);
}

void note_works_completed(const struct batch *batch, const struct lane_context *context,
			  uint64_t counter)
{
	note_works(batch, context->comm->work_completed, context->channel_id, counter);
}
