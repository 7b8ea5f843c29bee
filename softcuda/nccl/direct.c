/* SPDX-License-Identifier: BSD-3-Clause */
#include "softcuda/nccl/direct.h"
#include "softcuda/nccl/shared_memory.h"

/* An empty slot holds 0, so an address is stored plus one: a buffer of no bytes may have none. */
#define EXCHANGE_BIAS 1u

void use_network(struct endpoint *endpoint)
{
	if (!endpoint->fifo)
		return;
	endpoint->transfer = TRANSFER_NET;
	if (!endpoint->sends)
		/* the proxy may receive into the user's buffer */
		store_relaxed(&endpoint_slot(endpoint)->size, 0);
}

void offer_buffer(struct endpoint *endpoint, char *own, char *as_seen_by_peer)
{
	if (!endpoint->info->pointer_exchange)
		return;
	endpoint->exchange = EXCHANGE_OFFER;
	endpoint->direct = own;
	endpoint->offered = as_seen_by_peer;
}

void expect_buffer(struct endpoint *endpoint, void *registered)
{
	endpoint->direct = registered;
	if (endpoint->info->pointer_exchange)
		endpoint->exchange = EXCHANGE_EXPECT;
}

static bool exchange_address(struct endpoint *endpoint)
{
	void **slot = endpoint->info->pointer_exchange;
	uint64_t content;

	if (endpoint->exchange == EXCHANGE_NONE)
		return true;
	content = load_acquire(slot);
	if (endpoint->exchange == EXCHANGE_OFFER) {
		if (content)
			/* the peer has not taken the address of the operation before */
			return false;
		store_release(slot, (uint64_t)(uintptr_t)endpoint->offered + EXCHANGE_BIAS);
	} else {
		if (!content)
			return false;
		endpoint->direct = (char *)(uintptr_t)(content - EXCHANGE_BIAS);
		store_release(slot, 0);
	}
	endpoint->exchange = EXCHANGE_NONE;
	return true;
}

bool exchange_addresses(struct lane *lane)
{
	bool complete = true;

	for (unsigned i = 0; i < lane->recv_count; i++)
		complete &= exchange_address(&lane->recv[i]);
	for (unsigned i = 0; i < lane->send_count; i++)
		complete &= exchange_address(&lane->send[i]);
	return complete;
}

static bool user_buffer_is_free(const struct endpoint *endpoint, unsigned steps_per_slice,
				bool is_p2p)
{
	const struct fifo_slot *last;

	if (endpoint->transfer == TRANSFER_NET) {
		last = &endpoint->fifo[(endpoint->step - steps_per_slice) % FIFO_STEPS];
		return load_acquire(&last->size) == (uint64_t)-1;
	}
	if (endpoint->transfer == TRANSFER_READ && is_p2p)
		return load_acquire(endpoint->waited) >= endpoint->step;
	return true;
}

bool user_buffers_are_free(struct lane *lane)
{
	for (unsigned i = 0; i < lane->send_count; i++) {
		if (!user_buffer_is_free(&lane->send[i], lane->steps_per_slice, lane->is_p2p))
			return false;
	}
	return true;
}
