/* SPDX-License-Identifier: BSD-3-Clause */
#include "softcuda/nccl/lane.h"
#include "softcuda/nccl/direct.h"

#include <string.h>

static const struct protocol_functions *const protocols[PROTOCOL_COUNT] = {
	[PROTOCOL_LL] = &protocol_ll,
	[PROTOCOL_LL128] = &protocol_ll128,
	[PROTOCOL_SIMPLE] = &protocol_simple,
};

void init_lane(struct lane *lane, const struct lane_context *context, enum protocol protocol,
	       next_operation_fn *next)
{
	lane->state = LANE_OPENING;
	lane->context = context;
	lane->protocol = protocols[protocol];
	lane->next = next;
	lane->move_pieces = NULL;
	lane->work = NULL;
	lane->broadcasts = NULL;
	lane->pat = NULL;
	lane->input = NULL;
	lane->output = NULL;
	lane->step_elements = 0;
	lane->is_p2p = false;
	lane->offloaded = false;
	lane->recv_count = 0;
	lane->send_count = 0;
	lane->slice.active = false;
	memset(&lane->cursor, 0, sizeof(lane->cursor));
	set_lane_slices(lane, 1, 1);
}

void set_lane_slices(struct lane *lane, unsigned slices_per_chunk, unsigned steps_per_slice)
{
	lane->slices_per_chunk = (uint8_t)slices_per_chunk;
	lane->steps_per_slice = (uint8_t)steps_per_slice;
}

/* A chunk of the Simple protocol starts at a step that is a multiple of the chunk's steps. */
static unsigned chunk_steps(const struct lane *lane)
{
	if (lane->protocol->id != PROTOCOL_SIMPLE)
		return 1;
	return lane->slices_per_chunk * lane->steps_per_slice;
}

void open_lane_receivers(struct lane *lane, const int32_t *peers, unsigned count,
			 unsigned connection)
{
	for (unsigned i = 0; i < count && peers[i] >= 0; i++) {
		struct connection_info *info =
			&lane->context->channel->peers[peers[i]]->recv[connection];

		open_receiver(&lane->recv[lane->recv_count++], info, peers[i], chunk_steps(lane));
	}
}

void open_lane_senders(struct lane *lane, const int32_t *peers, unsigned count, unsigned connection)
{
	for (unsigned i = 0; i < count && peers[i] >= 0; i++) {
		struct connection_info *info =
			&lane->context->channel->peers[peers[i]]->send[connection];

		open_sender(&lane->send[lane->send_count++], info, peers[i], chunk_steps(lane));
	}
}

static enum progress run_lane(struct lane *lane)
{
	enum progress progress;

	if (!lane->slice.active) {
		if (!lane->next(lane, &lane->operation)) {
			lane->state = LANE_CLOSING;
			return PROGRESS_MOVED;
		}
		if (lane->operation.count < 0)
			lane->operation.count = 0;
		memset(&lane->slice, 0, sizeof(lane->slice));
		lane->slice.active = true;
		lane->protocol->begin(lane);
	}
	progress = lane->protocol->advance(lane);
	if (progress != PROGRESS_DONE)
		return progress;
	lane->slice.active = false;
	return PROGRESS_MOVED;
}

static void close_lane(struct lane *lane)
{
	for (unsigned i = 0; i < lane->recv_count; i++)
		close_endpoint(&lane->recv[i]);
	for (unsigned i = 0; i < lane->send_count; i++)
		close_endpoint(&lane->send[i]);
	lane->state = LANE_DONE;
}

enum progress advance_lane(struct lane *lane)
{
	switch (lane->state) {
	case LANE_OPENING:
		if (!exchange_addresses(lane))
			return PROGRESS_NONE;
		lane->state = LANE_RUNNING;
		return PROGRESS_MOVED;
	case LANE_RUNNING:
		return run_lane(lane);
	case LANE_CLOSING:
		if (!user_buffers_are_free(lane))
			return PROGRESS_NONE;
		close_lane(lane);
		return PROGRESS_DONE;
	case LANE_DONE:
		break;
	}
	return PROGRESS_DONE;
}
