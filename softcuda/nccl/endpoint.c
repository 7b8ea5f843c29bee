/* SPDX-License-Identifier: BSD-3-Clause */
#include "softcuda/nccl/endpoint.h"
#include "softcuda/nccl/shared_memory.h"

static void open_endpoint(struct endpoint *endpoint, struct connection_info *info, int peer,
			  unsigned round)
{
	endpoint->info = info;
	endpoint->fifo = info->fifo;
	endpoint->step = (info->step + round - 1) / round * round;
	endpoint->step_bytes = (uint32_t)info->step_bytes;
	endpoint->direct = NULL;
	endpoint->offered = NULL;
	endpoint->peer = peer;
	endpoint->transfer = TRANSFER_BUFFER;
	endpoint->exchange = EXCHANGE_NONE;
}

void open_receiver(struct endpoint *endpoint, struct connection_info *info, int peer,
		   unsigned round)
{
	open_endpoint(endpoint, info, peer, round);
	endpoint->sends = false;
	endpoint->waited = info->tail;
	endpoint->posted = info->head;
	endpoint->seen = load_acquire(endpoint->waited);
	if (endpoint->step != info->step)
		/* return the credits of the steps left out */
		store_release(endpoint->posted, endpoint->step);
}

void open_sender(struct endpoint *endpoint, struct connection_info *info, int peer, unsigned round)
{
	open_endpoint(endpoint, info, peer, round);
	endpoint->sends = true;
	endpoint->waited = info->head;
	endpoint->posted = info->tail;
	endpoint->seen = load_acquire(endpoint->waited);
}

void close_endpoint(struct endpoint *endpoint)
{
	endpoint->info->step = endpoint->step;
}

bool endpoint_is_ready(struct endpoint *endpoint, unsigned steps)
{
	uint64_t credit = endpoint->sends ? FIFO_STEPS : 0;
	uint64_t needed = endpoint->step + steps;

	if (endpoint->seen + credit >= needed)
		return true;
	endpoint->seen = load_acquire(endpoint->waited);
	return endpoint->seen + credit >= needed;
}

void announce_size(struct endpoint *endpoint, size_t bytes)
{
	/*
	 * The proxy reads it after the tail (Simple), or polls for it before it polls the lines'
	 * flags (LL).
	 */
	if (endpoint->fifo)
		store_relaxed(&endpoint_slot(endpoint)->size, bytes);
}

void post_steps(struct endpoint *endpoint, unsigned steps)
{
	endpoint->step += steps;
	store_release(endpoint->posted, endpoint->step);
}
