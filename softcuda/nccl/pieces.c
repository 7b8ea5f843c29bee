/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pieces.c - slices of the Simple protocol that are made of pieces from, or for, many places of a
 * user buffer
 */
#include "softcuda/nccl/simple.h"

static void begin_pieces(struct lane *lane)
{
	(void)lane;
}

static enum progress advance_pieces(struct lane *lane)
{
	if (!peers_are_ready(lane))
		return PROGRESS_NONE;
	if (lane->operation.count > 0)
		lane->move_pieces(lane);
	post_slice(lane, (size_t)lane->operation.count);
	return PROGRESS_DONE;
}

const struct protocol_functions protocol_pieces = {
	.id = PROTOCOL_SIMPLE,
	.advance = advance_pieces,
	.begin = begin_pieces,
};
