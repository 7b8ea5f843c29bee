/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ll128.c - the LL128 protocol: 120 bytes of data and a flag of 8 bytes in a line that arrives in
 * ascending order
 *
 * Data stand in the lines in their own order. (NCCL's kernels permute them within a line as their
 * registers happen to lie; both ends of a connection are ours, and nobody in between looks at the
 * data.)
 */
#include "softcuda/nccl/lines.h"
#include "softcuda/nccl/shared_memory.h"

#include <string.h>

static unsigned read_ll128(char *data, const char *lines, unsigned count, uint64_t step)
{
	for (unsigned i = 0; i < count; i++) {
		const char *line = lines + (size_t)i * LL128_LINE_BYTES;

		if (load_acquire(line + LL128_DATA_BYTES) != step + 1)
			return i;
		memcpy(data + (size_t)i * LL128_DATA_BYTES, line, LL128_DATA_BYTES);
	}
	return count;
}

/*
 * Lines behind the data carry the flag, too: the receiver and the proxy wait for all flags of a
 * group.
 */
static void write_ll128(char *lines, const char *data, size_t bytes, unsigned count, uint64_t step)
{
	for (unsigned i = 0; i < count; i++) {
		char *line = lines + (size_t)i * LL128_LINE_BYTES;
		size_t offset = (size_t)i * LL128_DATA_BYTES;

		if (offset < bytes)
			memcpy(line, data + offset, LL128_DATA_BYTES);
		store_release(line + LL128_DATA_BYTES, step + 1);
	}
}

static const struct line_format format = {
	.data_bytes = LL128_DATA_BYTES,
	.line_bytes = LL128_LINE_BYTES,
	.group = LL128_GROUP_LINES,
	.protocol = PROTOCOL_LL128,
	.read = read_ll128,
	.write = write_ll128,
};

static void begin_ll128(struct lane *lane)
{
	(void)lane;
}

static void finish_ll128(struct lane *lane)
{
	for (unsigned i = 0; lane->operation.flags & OPERATION_RECV && i < lane->recv_count; i++)
		post_steps(&lane->recv[i], 1);
	for (unsigned i = 0; lane->operation.flags & OPERATION_SEND && i < lane->send_count; i++) {
		if (lane->send[i].fifo)
			post_steps(&lane->send[i], 1); /* a proxy looks at the tail as well */
		else
			lane->send[i].step++;
	}
}

static enum progress advance_ll128(struct lane *lane)
{
	enum progress progress;

	if (!begin_sending_lines(lane, &format))
		return PROGRESS_NONE;
	progress = advance_lines(lane, &format);
	if (progress == PROGRESS_DONE)
		finish_ll128(lane);
	return progress;
}

const struct protocol_functions protocol_ll128 = {
	.id = PROTOCOL_LL128,
	.advance = advance_ll128,
	.begin = begin_ll128,
};
