/* SPDX-License-Identifier: BSD-3-Clause */
#include "softcuda/nccl/batch.h"
#include "softcuda/nccl/shared_memory.h"

#include <string.h>

static const size_t work_sizes[] = {
	[WORK_P2P] = sizeof(struct work_p2p),
	[WORK_COLLECTIVE] = sizeof(struct work_collective),
	[WORK_COLLECTIVE_REGISTERED] = sizeof(struct work_registered),
#if LAYOUT_HAS_BROADCASTS
	[WORK_BROADCASTS] = sizeof(struct work_broadcast),
#else
	[WORK_BROADCASTS] = 0,
#endif
};

/*
 * Works lie in the launch's arguments, or in a buffer that may wrap between any two groups of 16
 * bytes.
 */
static void copy_work(char *to, const struct kernel_arguments *arguments, size_t offset,
		      size_t bytes)
{
	if (arguments->storage == STORAGE_ARGUMENTS) {
		memcpy(to, (const char *)arguments + offset, bytes);
		return;
	}
	for (size_t i = 0; i < bytes; i += 16)
		memcpy(to + i, arguments->work_buffer + ((offset + i) & arguments->work_mask), 16);
}

/* False: there is no room for all of them. */
static bool copy_works(struct batch *batch, const struct kernel_arguments *arguments,
		       const struct work_batch *from)
{
	for (uint64_t bits = from->offset_bits; bits; bits &= bits - 1) {
		size_t offset =
			from->offset_base + (size_t)__builtin_ctzll(bits) * batch->work_bytes;

		if ((batch->work_count + 1) * batch->work_bytes > BATCH_WORK_BYTES)
			return false;
		copy_work(batch->works + batch->work_count * batch->work_bytes, arguments, offset,
			  batch->work_bytes);
		batch->work_count++;
	}
	return true;
}

#if LAYOUT_HAS_WORK_CONSUMED
/* The host may use the buffer again up to the last work that was copied. */
static void acknowledge_works(const struct batch *batch, const struct kernel_arguments *arguments,
			      const struct work_batch *last, unsigned channel_id)
{
	uint32_t works = 64 - (uint32_t)__builtin_clzll(last->offset_bits);

	if (arguments->storage == STORAGE_FIFO)
		store_release_32(&arguments->comm->work_consumed[channel_id],
				 last->offset_base + works * (uint32_t)batch->work_bytes);
}
#endif

const char *load_batch(struct batch *batch, const struct kernel_arguments *arguments,
		       unsigned index, unsigned channel_id)
{
	const struct work_batch *batches = (const struct work_batch *)(arguments + 1);
	const struct work_batch *from = &batches[index];

	batch->type = (enum work_type)from->work_type;
	batch->function = from->function;
	batch->work_count = 0;
	batch->work_bytes = work_sizes[batch->type];
	if (!batch->work_bytes)
		return "works of an unknown type";
	for (;;) {
		if (!copy_works(batch, arguments, from))
			return "too many works in one batch";
		if (!from->next_extends)
			break;
		index += from->next_jump;
		from = &batches[index];
	}
	batch->last = index;
	batch->jump = from->next_jump;
#if LAYOUT_HAS_WORK_CONSUMED
	acknowledge_works(batch, arguments, from, channel_id);
#else
	(void)channel_id;
#endif
	return NULL;
}
