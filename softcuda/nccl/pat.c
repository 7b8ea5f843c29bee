/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pat.c - steps of a PAT schedule, one after the other
 *
 * A GPU works on several steps at a time; in the schedule's own order they come to the same, for no
 * step waits for a later one of its rank. A message is put together in its slot by several steps,
 * and read by several: counters move where the schedule says so.
 */
#include "softcuda/nccl/pat.h"
#include "softcuda/nccl/collective.h"
#include "softcuda/nccl/move.h"

/* The lane's operations do nothing but name the step that is to be taken. */
static bool next_step(struct lane *lane, struct operation *operation)
{
	operation->flags = 0;
	operation->count = 0;
	return next_pat_step(&lane->pat->schedule, &lane->pat->step);
}

static void begin_step(struct lane *lane)
{
	(void)lane;
}

/* Slots ahead of the connection's position. */
static unsigned recv_ahead(const struct pat *pat)
{
	return pat->schedule.gathers ? pat->step.step_offset : 0;
}

static unsigned send_ahead(const struct pat *pat)
{
	return pat->schedule.gathers ? 0 : pat->step.step_offset;
}

static bool step_is_ready(struct pat *pat)
{
	const struct pat_step *step = &pat->step;

	if (step->recv_dimension >= 0 &&
	    !endpoint_is_ready(&pat->recv[step->recv_dimension], recv_ahead(pat) + 1))
		return false;
	return step->send_dimension < 0 ||
	       endpoint_is_ready(&pat->send[step->send_dimension], send_ahead(pat) + 1);
}

/*
 * Where a message's element lies that is `offset` from the start of the slot `ahead` of the current
 * one.
 */
static char *address_in_slot(const struct lane *lane, const struct endpoint *endpoint,
			     unsigned ahead, ptrdiff_t offset)
{
	char *buffer = endpoint->info->buffers[PROTOCOL_SIMPLE];
	size_t slot = (endpoint->step + ahead) % FIFO_STEPS * endpoint->step_bytes;

	return buffer + slot + offset * (ptrdiff_t)lane->reduction.element_bytes;
}

/* The end of a step's data, counted from the connection's first step. */
static ptrdiff_t position_of(const struct lane *lane, const struct endpoint *endpoint,
			     unsigned ahead, ptrdiff_t offset)
{
	ptrdiff_t slot = endpoint->step_bytes / (ptrdiff_t)lane->reduction.element_bytes;

	return offset + lane->pat->step.count + (ptrdiff_t)(endpoint->step + ahead) * slot;
}

/* True where `position` is further than what was done before; then it is what was done. */
static bool goes_further(ptrdiff_t *done, ptrdiff_t position)
{
	if (*done >= position)
		return false;
	*done = position;
	return true;
}

/* The first data for a place are the user's own; what comes later is added. */
static void move_reduced(struct lane *lane)
{
	struct pat *pat = lane->pat;
	const struct pat_step *step = &pat->step;
	ptrdiff_t size = (ptrdiff_t)lane->reduction.element_bytes;
	struct movement movement = { .finish = step->final };
	bool is_first;
	char *place;

	if (step->send_dimension >= 0) {
		const struct endpoint *peer = &pat->send[step->send_dimension];

		place = address_in_slot(lane, peer, send_ahead(pat), step->send_offset);
		is_first =
			goes_further(&pat->filled[step->send_dimension],
				     position_of(lane, peer, send_ahead(pat), step->send_offset));
	} else {
		place = lane->output + step->output * size;
		is_first = goes_further(&pat->user_done, step->output + step->count);
	}
	movement.prepare = is_first;
	add_source(&movement, is_first ? lane->input + step->input * size : place);
	if (step->recv_dimension >= 0)
		add_source(&movement, address_in_slot(lane, &pat->recv[step->recv_dimension], 0,
						      step->recv_offset));
	add_destination(&movement, place);
	move_elements(&lane->reduction, &movement, (size_t)step->count);
}

/* What is passed on several times is put into the user's output the first time. */
static void move_gathered(struct lane *lane)
{
	struct pat *pat = lane->pat;
	const struct pat_step *step = &pat->step;
	ptrdiff_t size = (ptrdiff_t)lane->reduction.element_bytes;
	struct movement movement = { 0 };
	bool is_first;

	if (step->recv_dimension >= 0) {
		const struct endpoint *peer = &pat->recv[step->recv_dimension];

		add_source(&movement,
			   address_in_slot(lane, peer, recv_ahead(pat), step->recv_offset));
		is_first =
			goes_further(&pat->read[step->recv_dimension],
				     position_of(lane, peer, recv_ahead(pat), step->recv_offset));
	} else {
		add_source(&movement, lane->input + step->input * size);
		is_first = goes_further(&pat->user_done, step->input + step->count);
	}
	if (step->send_dimension >= 0)
		add_destination(&movement, address_in_slot(lane, &pat->send[step->send_dimension],
							   0, step->send_offset));
	if (is_first)
		add_destination(&movement, lane->output + step->output * size);
	move_elements(&lane->reduction, &movement, (size_t)step->count);
}

static void post_step(struct lane *lane)
{
	struct pat *pat = lane->pat;
	const struct pat_step *step = &pat->step;
	struct endpoint *peer;

	if (step->send_dimension >= 0 && step->post_send) {
		peer = &pat->send[step->send_dimension];
		announce_size(peer, (size_t)(step->send_offset + step->count) *
					    lane->reduction.element_bytes);
		post_steps(peer, 1);
		close_endpoint(peer);
	}
	if (step->recv_dimension >= 0 && step->post_recv) {
		peer = &pat->recv[step->recv_dimension];
		post_steps(peer, 1);
		close_endpoint(peer);
	}
}

static enum progress advance_step(struct lane *lane)
{
	if (!step_is_ready(lane->pat))
		return PROGRESS_NONE;
	if (lane->pat->schedule.gathers)
		move_gathered(lane);
	else
		move_reduced(lane);
	post_step(lane);
	return PROGRESS_DONE;
}

static const struct protocol_functions protocol_pat = {
	.id = PROTOCOL_SIMPLE,
	.advance = advance_step,
	.begin = begin_step,
};

/* Data of a reduction travel to higher ranks, those of a gather to lower ones. */
static void open_dimension(struct lane *lane, int dimension)
{
	const struct lane_context *context = lane->context;
	int ranks = context->comm->rank_count;
	int delta = 1 << dimension;
	int higher = (context->comm->rank + delta) % ranks;
	int lower = (context->comm->rank - delta + ranks) % ranks;
	int from = lane->pat->schedule.gathers ? higher : lower;
	int to = lane->pat->schedule.gathers ? lower : higher;

	open_receiver(&lane->pat->recv[dimension], &context->channel->peers[from]->recv[0], from,
		      1);
	open_sender(&lane->pat->send[dimension], &context->channel->peers[to]->send[0], to, 1);
	lane->pat->filled[dimension] = 0;
	lane->pat->read[dimension] = 0;
}

unsigned open_pat(struct lane *lane, const struct collective_task *task)
{
	const struct kernel_comm *comm = task->context->comm;
	bool gathers = task->function->collective == COLLECTIVE_ALL_GATHER;
	struct cursor *cursor = &lane->cursor;

	start_lane(lane, task, next_step);
	divide_work(cursor, task);
	lane->protocol = &protocol_pat;
	lane->pat = task->pat;
	lane->pat->user_done = 0;
	start_pat(&lane->pat->schedule, gathers, comm->rank, comm->rank_count,
		  task->reduction.element_bytes, cursor->total, cursor->start,
		  cursor->start + cursor->count, cursor->chunk);
	for (int dimension = 0; 1 << dimension < comm->rank_count; dimension++)
		open_dimension(lane, dimension);
	return 1;
}
