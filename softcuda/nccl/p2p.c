/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * p2p.c - sends and receives: all of a batch at the same time, each divided over several channels
 */
#include "softcuda/nccl/p2p.h"
#include "softcuda/nccl/direct.h"

#include <string.h>

/* A size as the host packs it into 8 bits: 3 bits of mantissa below 5 of exponent, rounded down. */
static uint32_t decode_size(uint8_t packed)
{
	uint32_t exponent = packed >> 3;
	uint32_t mantissa = packed & 7u;

	if (exponent == 0)
		return mantissa;
	return (mantissa | 8u) << (exponent - 1);
}

static unsigned reverse_bits(unsigned value, unsigned bits)
{
	unsigned reversed = 0;

	for (unsigned i = 0; i < bits; i++)
		reversed |= (value >> i & 1u) << (bits - 1 - i);
	return reversed;
}

/* Which part of a transfer is this channel's? The number of channels is a power of two. */
static unsigned part_of_channel(const struct work_p2p *work, int channel_id)
{
	unsigned part = ((unsigned)channel_id - work->channel_base) & (work->channels - 1u);

	if (LAYOUT_P2P_PARTS_REVERSED)
		return reverse_bits(part, (unsigned)__builtin_popcount(work->channels - 1u));
	return part;
}

struct piece {
	char *address;
	size_t bytes;
};

/*
 * False: this channel has no part in the transfer. A part may be empty; its steps are taken all the
 * same.
 */
static bool take_piece(struct piece *piece, const struct work_p2p *work, bool sends, int channel_id)
{
	unsigned parts = sends ? work->send_channels : work->recv_channels;
	size_t bytes = sends ? work->send_bytes : work->recv_bytes;
	unsigned part = part_of_channel(work, channel_id);
	size_t part_bytes;
	size_t start;

	if (part >= parts)
		return false;
	part_bytes = (bytes + parts - 1) / parts;
	part_bytes =
		(part_bytes + P2P_PART_ALIGNMENT - 1) / P2P_PART_ALIGNMENT * P2P_PART_ALIGNMENT;
	start = part * part_bytes < bytes ? part * part_bytes : bytes;
	piece->address = (sends ? work->send_address : work->recv_address) + start;
	piece->bytes = bytes - start < part_bytes ? bytes - start : part_bytes;
	return true;
}

/* Chunks until all bytes are done, and one even for none. */
static bool next_chunk(struct lane *lane, struct operation *operation)
{
	struct cursor *cursor = &lane->cursor;

	if (cursor->step && cursor->position >= cursor->count)
		return false;
	cursor->step = 1;
	operation->flags = OPERATION_DIRECT;
	operation->flags |= lane->send_count ? OPERATION_SEND | OPERATION_INPUT
					     : OPERATION_RECV | OPERATION_STORE;
	operation->source = cursor->position;
	operation->destination = cursor->position;
	operation->count = cursor->count - cursor->position;
	if (operation->count > cursor->chunk)
		operation->count = cursor->chunk;
	cursor->position += operation->count;
	return true;
}

static void start_p2p_lane(struct lane *lane, const struct lane_context *context,
			   const struct work_p2p *work, const struct piece *piece, bool sends)
{
	bool is_ll = sends ? work->send_ll : work->recv_ll;
	int32_t peer = sends ? work->send_rank : work->recv_rank;

	init_lane(lane, context, is_ll ? PROTOCOL_LL : PROTOCOL_SIMPLE, next_chunk);
	lane->is_p2p = true;
	lane->work = work;
	find_copy(&lane->reduction);
	lane->cursor.count = (ptrdiff_t)piece->bytes;
	lane->cursor.chunk = decode_size(sends ? work->send_chunk : work->recv_chunk);
	lane->step_elements = context->comm->p2p_chunk_bytes;
	if (p2p_uses_large_chunks(context->comm, work, sends)) {
		lane->cursor.chunk = P2P_LARGE_CHUNK;
		lane->step_elements = P2P_LARGE_CHUNK;
	}
	if (sends) {
		lane->input = piece->address;
		open_lane_senders(lane, &peer, 1, 1);
	} else {
		lane->output = piece->address;
		open_lane_receivers(lane, &peer, 1, 1);
	}
	choose_p2p_transfer(lane, work);
}

unsigned open_p2p(struct lane *lanes, const struct lane_context *context,
		  const struct work_p2p *work)
{
	struct piece sent = { 0 };
	struct piece received = { 0 };
	bool sends = take_piece(&sent, work, true, context->channel_id);
	bool receives = take_piece(&received, work, false, context->channel_id);
	unsigned count = 0;

	if (work->send_rank == context->comm->rank) {
		if (sends)
			memmove(received.address, sent.address, sent.bytes);
		return 0;
	}
	if (sends)
		start_p2p_lane(&lanes[count++], context, work, &sent, true);
	if (receives)
		start_p2p_lane(&lanes[count++], context, work, &received, false);
	return count;
}
