/* SPDX-License-Identifier: BSD-3-Clause */
/* ll.c - the LL protocol: every 8 bytes carry 4 bytes of data and a flag. For small messages. */
#include "softcuda/nccl/lines.h"
#include "softcuda/nccl/shared_memory.h"

#include <string.h>

#define LL_LINE_BYTES 16u
#define LL_DATA_BYTES 8u

/* Flags are 32 bits wide and come round again. Where the bits of this mask are all set in a step's
 * number, its slot is written to its end, so that no line keeps a flag that could be taken for one
 * of the next round. */
#define LL_CLEANING_MASK 0x7ffffff8u

static uint64_t flag_of_step(uint64_t step)
{
	return (uint64_t)(uint32_t)(step + 1) << 32;
}

/* Each half is complete in itself: its flag came with its data. */
static unsigned read_ll(char *data, const char *lines, unsigned count, uint64_t step)
{
	uint64_t flag = flag_of_step(step);
	uint64_t flag_bits = 0xffffffffull << 32;

	for (unsigned i = 0; i < count; i++) {
		uint64_t low = load_relaxed(lines + i * LL_LINE_BYTES);
		uint64_t high = load_relaxed(lines + i * LL_LINE_BYTES + 8);
		uint64_t value = (low & 0xffffffffu) | high << 32;

		if ((low & flag_bits) != flag || (high & flag_bits) != flag)
			return i;
		memcpy(data + i * LL_DATA_BYTES, &value, sizeof(value));
	}
	return count;
}

static void write_ll(char *lines, const char *data, size_t bytes, unsigned count, uint64_t step)
{
	uint64_t flag = flag_of_step(step);

	(void)bytes;
	for (unsigned i = 0; i < count; i++) {
		uint64_t value;

		memcpy(&value, data + i * LL_DATA_BYTES, sizeof(value));
		store_relaxed(lines + i * LL_LINE_BYTES, (value & 0xffffffffu) | flag);
		store_relaxed(lines + i * LL_LINE_BYTES + 8, value >> 32 | flag);
	}
}

static bool step_needs_cleaning(uint64_t step)
{
	return (step & LL_CLEANING_MASK) == LL_CLEANING_MASK;
}

static const struct line_format format = {
	.data_bytes = LL_DATA_BYTES,
	.line_bytes = LL_LINE_BYTES,
	.group = 1,
	.protocol = PROTOCOL_LL,
	.read = read_ll,
	.write = write_ll,
	.fills_slot = step_needs_cleaning,
};

static void clean_rest(const struct lane *lane, const struct endpoint *endpoint, unsigned from)
{
	char *slot = line_slot(lane, endpoint, &format);
	uint64_t flag = flag_of_step(endpoint->step);

	for (unsigned i = from; i < lines_of_slot(lane, &format); i++) {
		store_relaxed(slot + i * LL_LINE_BYTES, flag);
		store_relaxed(slot + i * LL_LINE_BYTES + 8, flag);
	}
}

static void begin_ll(struct lane *lane)
{
	(void)lane;
}

static void finish_ll(struct lane *lane, unsigned lines)
{
	for (unsigned i = 0; lane->operation.flags & OPERATION_RECV && i < lane->recv_count; i++)
		post_steps(&lane->recv[i], 1);
	for (unsigned i = 0; lane->operation.flags & OPERATION_SEND && i < lane->send_count; i++) {
		if (step_needs_cleaning(lane->send[i].step))
			clean_rest(lane, &lane->send[i], lines);
		lane->send[i].step++; /* the flags signal the receiver; nobody looks at the tail */
	}
}

static enum progress advance_ll(struct lane *lane)
{
	unsigned lines = lines_of_operation(lane, &format);
	enum progress progress;

	if (!begin_sending_lines(lane, &format))
		return PROGRESS_NONE;
	progress = advance_lines(lane, &format);
	if (progress == PROGRESS_DONE)
		finish_ll(lane, lines);
	return progress;
}

const struct protocol_functions protocol_ll = {
	.id = PROTOCOL_LL,
	.advance = advance_ll,
	.begin = begin_ll,
};
