/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * direct_2_22_3.c - direct transfers as NCCL 2.22.3 arranges them
 *
 * Between GPUs of one process results are written into the receiver's user buffer, registered or
 * not: the receiver puts its address into the connection's slot. Of registered buffers this
 * version's kernels also read those of other processes (CollNet inside a host, in CUDA graphs).
 * That is left out: such data go through the connection's buffers, which both ends, being ours, do
 * alike, and nobody else can see a difference.
 */
#include "softcuda/nccl/direct.h"

static bool is_written_directly(const struct lane *lane, const struct endpoint *endpoint,
				unsigned connection)
{
	return lane->protocol->id == PROTOCOL_SIMPLE && connection == 0 && !endpoint->fifo &&
	       endpoint->info->flags & CONNECTION_DIRECT_WRITE;
}

static void write_directly(struct endpoint *endpoint, char *output)
{
	endpoint->transfer = TRANSFER_WRITE;
	if (endpoint->sends)
		expect_buffer(endpoint, NULL);
	else
		offer_buffer(endpoint, output, output);
}

void choose_collective_transfers(struct lane *lane, const struct work_collective *work,
				 unsigned recv_connection, unsigned send_connection)
{
	(void)work;
	for (unsigned i = 0; i < lane->recv_count; i++) {
		if (is_written_directly(lane, &lane->recv[i], recv_connection))
			write_directly(&lane->recv[i], lane->output);
	}
	for (unsigned i = 0; i < lane->send_count; i++) {
		if (is_written_directly(lane, &lane->send[i], send_connection))
			write_directly(&lane->send[i], NULL);
	}
}

void choose_p2p_transfer(struct lane *lane, const struct work_p2p *work)
{
	bool sends = lane->send_count != 0;
	struct endpoint *endpoint = sends ? &lane->send[0] : &lane->recv[0];

	if (sends ? work->send_net_registered : work->recv_net_registered)
		use_network(endpoint);
	else if (is_written_directly(lane, endpoint, 0))
		write_directly(endpoint, lane->output);
}
