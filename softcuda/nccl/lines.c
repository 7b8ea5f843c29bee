/* SPDX-License-Identifier: BSD-3-Clause */
#include "softcuda/nccl/lines.h"
#include "softcuda/nccl/move.h"

#include <string.h>

/* A block of lines on its way: their data from each peer, from the user, and combined. */
struct block {
	char received[DIRECT_ARITY][LINES_BLOCK_BYTES] __attribute__((aligned(64)));
	char user[LINES_BLOCK_BYTES] __attribute__((aligned(64)));
	char result[LINES_BLOCK_BYTES] __attribute__((aligned(64)));
};

unsigned lines_of_slot(const struct lane *lane, const struct line_format *format)
{
	return (unsigned)lane->context->comm->buffer_bytes[format->protocol] / FIFO_STEPS /
	       format->line_bytes;
}

char *line_slot(const struct lane *lane, const struct endpoint *endpoint,
		const struct line_format *format)
{
	size_t slot_bytes =
		(size_t)lane->context->comm->buffer_bytes[format->protocol] / FIFO_STEPS;

	return endpoint->info->buffers[format->protocol] + endpoint->step % FIFO_STEPS * slot_bytes;
}

static size_t operation_bytes(const struct lane *lane)
{
	return (size_t)lane->operation.count * lane->reduction.element_bytes;
}

unsigned lines_of_operation(const struct lane *lane, const struct line_format *format)
{
	size_t group_bytes = (size_t)format->data_bytes * format->group;

	return (unsigned)((operation_bytes(lane) + group_bytes - 1) / group_bytes * format->group);
}

static size_t announced_bytes(const struct lane *lane, const struct endpoint *endpoint,
			      const struct line_format *format)
{
	unsigned lines = lines_of_operation(lane, format);

	if (format->fills_slot && format->fills_slot(endpoint->step))
		lines = lines_of_slot(lane, format);
	return (size_t)lines * format->line_bytes;
}

bool begin_sending_lines(struct lane *lane, const struct line_format *format)
{
	if (lane->slice.index || !(lane->operation.flags & OPERATION_SEND))
		return true;
	for (unsigned i = 0; i < lane->send_count; i++) {
		if (!endpoint_is_ready(&lane->send[i], 1))
			return false;
	}
	for (unsigned i = 0; i < lane->send_count; i++)
		announce_size(&lane->send[i], announced_bytes(lane, &lane->send[i], format));
	lane->slice.index = 1;
	return true;
}

/* The number of lines, from the current one on, that have arrived from all peers. */
static unsigned receive_lines(struct lane *lane, const struct line_format *format,
			      struct block *block, unsigned count)
{
	size_t offset = (size_t)lane->slice.offset * format->line_bytes;

	for (unsigned i = 0;
	     lane->operation.flags & OPERATION_RECV && i < lane->recv_count && count; i++) {
		const char *lines = line_slot(lane, &lane->recv[i], format) + offset;

		count = format->read(block->received[i], lines, count, lane->recv[i].step);
	}
	return count;
}

/*
 * Combine what `block` holds; the address of the result. `bytes`: of the user's data, zero behind
 * the last element.
 */
static const char *combine_lines(struct lane *lane, struct block *block, size_t bytes,
				 size_t padded, size_t offset)
{
	const struct operation *operation = &lane->operation;
	size_t size = lane->reduction.element_bytes;
	const char *user = NULL;
	struct movement movement = {
		.prepare = operation->flags & OPERATION_INPUT,
		.finish = operation->flags & OPERATION_FINISH,
	};

	if (operation->flags & OPERATION_INPUT)
		user = lane->input + operation->source * (ptrdiff_t)size + offset;
	if (operation->flags & OPERATION_STORED)
		user = lane->output + operation->source * (ptrdiff_t)size + offset;
	if (user && bytes) {
		memcpy(block->user, user, bytes);
		memset(block->user + bytes, 0, padded - bytes);
		add_source(&movement, block->user);
	}
	for (unsigned i = 0; operation->flags & OPERATION_RECV && i < lane->recv_count; i++)
		add_source(&movement, block->received[i]);
	add_destination(&movement, block->result);
	move_elements(&lane->reduction, &movement, bytes ? padded / size : 0);
	return block->result;
}

static void pass_lines_on(struct lane *lane, const struct line_format *format, const char *data,
			  size_t bytes, unsigned count)
{
	const struct operation *operation = &lane->operation;
	ptrdiff_t destination = operation->destination * (ptrdiff_t)lane->reduction.element_bytes;
	size_t lines_offset = (size_t)lane->slice.offset * format->line_bytes;
	size_t data_offset = (size_t)lane->slice.offset * format->data_bytes;

	for (unsigned i = 0; operation->flags & OPERATION_SEND && i < lane->send_count; i++) {
		char *lines = line_slot(lane, &lane->send[i], format) + lines_offset;

		format->write(lines, data, bytes, count, lane->send[i].step);
	}
	if (operation->flags & OPERATION_STORE && bytes)
		memcpy(lane->output + destination + data_offset, data, bytes);
}

/* One block; the number of lines moved. */
static unsigned move_block(struct lane *lane, const struct line_format *format, unsigned lines)
{
	unsigned most = LINES_BLOCK_BYTES / format->data_bytes;
	unsigned count = lines - (unsigned)lane->slice.offset;
	size_t offset = (size_t)lane->slice.offset * format->data_bytes;
	size_t left = operation_bytes(lane) > offset ? operation_bytes(lane) - offset : 0;
	struct block block;
	const char *data;
	size_t padded;
	size_t bytes;

	if (count > most)
		count = most;
	count = receive_lines(lane, format, &block, count);
	padded = (size_t)count * format->data_bytes;
	bytes = left < padded ? left : padded;
	data = combine_lines(lane, &block, bytes, padded, offset);
	pass_lines_on(lane, format, data, bytes, count);
	lane->slice.offset += count;
	return count;
}

enum progress advance_lines(struct lane *lane, const struct line_format *format)
{
	unsigned lines = lines_of_operation(lane, format);
	bool moved = false;

	while ((unsigned)lane->slice.offset < lines) {
		if (!move_block(lane, format, lines))
			return moved ? PROGRESS_MOVED : PROGRESS_NONE;
		moved = true;
	}
	return PROGRESS_DONE;
}
