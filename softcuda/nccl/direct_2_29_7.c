/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * direct_2_29_7.c - direct transfers as NCCL 2.29.7 arranges them
 *
 * Only buffers that the user registered are used directly. In a collective the sender writes, except where the work
 * says that the receiver reads; in a send and receive the connection says which. The receiver of a write, or the sender
 * of a read, puts its buffer's address, as its peer sees it, into the connection's slot; the other end takes it out.
 */
#include "softcuda/nccl/direct.h"
#include "softcuda/nccl/shared_memory.h"

#define CONNECTION_DIRECT_PEER (CONNECTION_DIRECT_WRITE | CONNECTION_DIRECT_READ)

static void use_network(struct endpoint *endpoint)
{
	if (!(endpoint->info->flags & CONNECTION_DIRECT_NIC))
		return;
	endpoint->transfer = TRANSFER_NET;
	if (!endpoint->sends)
		store_relaxed(&endpoint_slot(endpoint)->size, 0); /* the proxy waits for this before it receives */
}

/* The end whose user buffer is used makes the offer. Without a slot there is nothing to exchange. */
static void start_exchange(struct endpoint *endpoint, char *own, char *as_seen_by_peer, void *registered)
{
	bool offers = endpoint->sends == (endpoint->transfer == TRANSFER_READ);

	if (!endpoint->info->pointer_exchange) {
		endpoint->direct = offers ? NULL : registered;
		return;
	}
	endpoint->exchange = offers ? EXCHANGE_OFFER : EXCHANGE_EXPECT;
	endpoint->direct = offers ? own : NULL;
	endpoint->offered = as_seen_by_peer;
}

static enum transfer collective_transfer(const struct work_collective *work, unsigned connection)
{
	if (connection == 1 && work->direct)
		return TRANSFER_READ;
	return work->direct & CONNECTION_DIRECT_READ ? TRANSFER_READ : TRANSFER_WRITE;
}

static void choose_for_receiver(struct lane *lane, unsigned i, const struct work_collective *work, unsigned connection)
{
	const struct work_registered *registered = (const struct work_registered *)work;
	struct endpoint *endpoint = &lane->recv[i];
	int32_t local = lane->context->comm->rank_to_local_rank[endpoint->peer];

	endpoint->transfer = collective_transfer(work, connection);
	if (endpoint->transfer == TRANSFER_WRITE)
		start_exchange(endpoint, lane->output, (char *)(work->recv_remote[local] + work->recv_offset), NULL);
	else if (endpoint->info->pointer_exchange)
		start_exchange(endpoint, NULL, NULL, NULL);
	else
		start_exchange(endpoint, NULL, NULL, registered->down_inputs[i]);
}

static void choose_for_sender(struct lane *lane, unsigned i, const struct work_collective *work, unsigned connection)
{
	const struct work_registered *registered = (const struct work_registered *)work;
	struct endpoint *endpoint = &lane->send[i];
	int32_t local = lane->context->comm->rank_to_local_rank[endpoint->peer];

	endpoint->transfer = collective_transfer(work, connection);
	if (endpoint->transfer == TRANSFER_READ && lane->recv_count)
		start_exchange(endpoint, lane->output, (char *)(work->recv_remote[local] + work->recv_offset), NULL);
	else if (endpoint->transfer == TRANSFER_READ)
		start_exchange(endpoint, lane->input, (char *)(work->send_remote[local] + work->send_offset), NULL);
	else if (endpoint->info->pointer_exchange)
		start_exchange(endpoint, NULL, NULL, NULL);
	else
		start_exchange(endpoint, NULL, NULL, registered->down_outputs[i]);
}

void choose_collective_transfers(struct lane *lane, const struct work_collective *work, unsigned recv_connection,
				 unsigned send_connection)
{
	for (unsigned i = 0; i < lane->recv_count; i++) {
		if (work->registered && lane->recv[i].info->flags & CONNECTION_DIRECT_PEER)
			choose_for_receiver(lane, i, work, recv_connection);
		if (work->net_registered)
			use_network(&lane->recv[i]);
	}
	for (unsigned i = 0; i < lane->send_count; i++) {
		if (work->registered && lane->send[i].info->flags & CONNECTION_DIRECT_PEER)
			choose_for_sender(lane, i, work, send_connection);
		if (work->net_registered)
			use_network(&lane->send[i]);
	}
}

void choose_p2p_transfer(struct lane *lane, const struct work_p2p *work)
{
	bool sends = lane->send_count != 0;
	struct endpoint *endpoint = sends ? &lane->send[0] : &lane->recv[0];
	bool by_ipc = sends ? work->send_ipc_registered : work->recv_ipc_registered;
	bool by_network = sends ? work->send_net_registered : work->recv_net_registered;
	char *buffer = sends ? lane->input : lane->output;

	if (by_ipc && endpoint->info->flags & CONNECTION_DIRECT_PEER) {
		bool writes = endpoint->info->flags & CONNECTION_DIRECT_WRITE;

		endpoint->transfer = writes ? TRANSFER_WRITE : TRANSFER_READ;
		start_exchange(endpoint, buffer, buffer, NULL);
	}
	if (by_network)
		use_network(endpoint);
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
			return false; /* the peer has not taken the address of the operation before */
		store_release(slot, (uint64_t)(uintptr_t)endpoint->offered);
	} else {
		if (!content)
			return false;
		endpoint->direct = (char *)(uintptr_t)content;
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

static bool user_buffer_is_free(const struct endpoint *endpoint, unsigned steps_per_slice, bool is_p2p)
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
