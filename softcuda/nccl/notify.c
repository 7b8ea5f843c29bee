/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * notify.c - where the network works on user buffers by itself: counters start it, and show when it
 * has finished
 */
#include "softcuda/nccl/lane.h"

static void begin_notify(struct lane *lane)
{
	unsigned steps = (unsigned)lane->operation.count;

	for (unsigned i = 0; i < lane->send_count; i++)
		post_steps(&lane->send[i], steps);
	for (unsigned i = 0; i < lane->recv_count; i++)
		post_steps(&lane->recv[i], steps);
}

/* All steps that were announced must have come back from the network. */
static enum progress advance_notify(struct lane *lane)
{
	for (unsigned i = 0; i < lane->recv_count; i++) {
		if (!endpoint_is_ready(&lane->recv[i], 0))
			return PROGRESS_NONE;
	}
	return PROGRESS_DONE;
}

const struct protocol_functions protocol_notify = {
	.id = PROTOCOL_SIMPLE,
	.advance = advance_notify,
	.begin = begin_notify,
};
