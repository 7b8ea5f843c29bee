/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * direct_2_29_7.c - direct transfers as NCCL 2.29.7 arranges them
 *
 * Only buffers that the user registered are used directly. In a collective the sender writes,
 * except where the work says that the receiver reads; in a send and receive the connection says
 * which. The receiver of a write, or the sender of a read, puts its buffer's address, as its peer
 * sees it, into the connection's slot; the other end takes it out.
 */
#include "softcuda/nccl/direct.h"

#define CONNECTION_DIRECT_PEER (CONNECTION_DIRECT_WRITE | CONNECTION_DIRECT_READ)

static enum transfer collective_transfer(const struct work_collective *work, unsigned connection)
{
	if (connection == 1 && work->direct)
		return TRANSFER_READ;
	return work->direct & CONNECTION_DIRECT_READ ? TRANSFER_READ : TRANSFER_WRITE;
}

static void choose_for_receiver(struct lane *lane, unsigned i, const struct work_collective *work,
				unsigned connection)
{
	const struct work_registered *registered = (const struct work_registered *)work;
	struct endpoint *endpoint = &lane->recv[i];
	int32_t local = lane->context->comm->rank_to_local_rank[endpoint->peer];

	endpoint->transfer = collective_transfer(work, connection);
	if (endpoint->transfer == TRANSFER_WRITE)
		offer_buffer(endpoint, lane->output,
			     (char *)(work->recv_remote[local] + work->recv_offset));
	else
		expect_buffer(endpoint,
			      endpoint->info->pointer_exchange ? NULL : registered->down_inputs[i]);
}

static void choose_for_sender(struct lane *lane, unsigned i, const struct work_collective *work,
			      unsigned connection)
{
	const struct work_registered *registered = (const struct work_registered *)work;
	struct endpoint *endpoint = &lane->send[i];
	int32_t local = lane->context->comm->rank_to_local_rank[endpoint->peer];

	endpoint->transfer = collective_transfer(work, connection);
	if (endpoint->transfer == TRANSFER_WRITE)
		expect_buffer(endpoint, endpoint->info->pointer_exchange
						? NULL
						: registered->down_outputs[i]);
	else if (lane->recv_count)
		offer_buffer(endpoint, lane->output,
			     (char *)(work->recv_remote[local] + work->recv_offset));
	else
		offer_buffer(endpoint, lane->input,
			     (char *)(work->send_remote[local] + work->send_offset));
}

void choose_collective_transfers(struct lane *lane, const struct work_collective *work,
				 unsigned recv_connection, unsigned send_connection)
{
	for (unsigned i = 0; i < lane->recv_count; i++) {
		if (work->registered && lane->recv[i].info->flags & CONNECTION_DIRECT_PEER)
			choose_for_receiver(lane, i, work, recv_connection);
		if (work->net_registered && lane->recv[i].info->flags & CONNECTION_DIRECT_NIC)
			use_network(&lane->recv[i]);
	}
	for (unsigned i = 0; i < lane->send_count; i++) {
		if (work->registered && lane->send[i].info->flags & CONNECTION_DIRECT_PEER)
			choose_for_sender(lane, i, work, send_connection);
		if (work->net_registered && lane->send[i].info->flags & CONNECTION_DIRECT_NIC)
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
		if (sends == writes)
			expect_buffer(endpoint, NULL);
		else
			offer_buffer(endpoint, buffer, buffer);
	}
	if (by_network && endpoint->info->flags & CONNECTION_DIRECT_NIC)
		use_network(endpoint);
}
