/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/job/layout.h"

static double factor_one(int ranks)
{
	return 1;
}

static double factor_part(int ranks)
{
	return (double)(ranks - 1) / ranks;
}

static double factor_twice(int ranks)
{
	return 2.0 * (ranks - 1) / ranks;
}

static int one_block(int ranks)
{
	return 1;
}

static int all_blocks(int ranks)
{
	return ranks;
}

static void share_place(const struct ha_extent *x, size_t *send_at, size_t *recv_at)
{
	*send_at = *recv_at = 0;
}

/* all-gather: a rank's contribution lies where it will be in the result */
static void send_inside(const struct ha_extent *x, size_t *send_at, size_t *recv_at)
{
	*send_at = (size_t)x->rank * x->block;
	*recv_at = 0;
}

/* reduce-scatter: a rank's result lies where its own part of the contribution was */
static void recv_inside(const struct ha_extent *x, size_t *send_at, size_t *recv_at)
{
	*send_at = 0;
	*recv_at = (size_t)x->rank * x->block;
}

/* ---- what must come out ---- */

static bool expect_reduction(const struct ha_extent *x, int k, struct ha_segment *segment)
{
	*segment = (struct ha_segment) { .count = x->block, .rank = -1 };
	return !k;
}

static bool expect_reduction_at_root(const struct ha_extent *x, int k, struct ha_segment *segment)
{
	return expect_reduction(x, k, segment) && x->rank == x->root;
}

static bool expect_own_part(const struct ha_extent *x, int k, struct ha_segment *segment)
{
	*segment = (struct ha_segment) { .count = x->block,
					 .from = (size_t)x->rank * x->block,
					 .rank = -1 };
	return !k;
}

static bool expect_everybody(const struct ha_extent *x, int k, struct ha_segment *segment)
{
	*segment = (struct ha_segment) { .at = (size_t)k * x->block, .count = x->block, .rank = k };
	return k < x->ranks;
}

static bool expect_everybody_at_root(const struct ha_extent *x, int k, struct ha_segment *segment)
{
	return expect_everybody(x, k, segment) && x->rank == x->root;
}

static bool expect_root(const struct ha_extent *x, int k, struct ha_segment *segment)
{
	*segment = (struct ha_segment) { .count = x->block, .rank = x->root };
	return !k;
}

static bool expect_part_of_root(const struct ha_extent *x, int k, struct ha_segment *segment)
{
	*segment = (struct ha_segment) { .count = x->block,
					 .from = (size_t)x->rank * x->block,
					 .rank = x->root };
	return !k;
}

static bool expect_part_of_everybody(const struct ha_extent *x, int k, struct ha_segment *segment)
{
	*segment = (struct ha_segment) { .at = (size_t)k * x->block,
					 .count = x->block,
					 .from = (size_t)x->rank * x->block,
					 .rank = k };
	return k < x->ranks;
}

static bool expect_previous(const struct ha_extent *x, int k, struct ha_segment *segment)
{
	*segment = (struct ha_segment) { .count = x->block,
					 .rank = (x->rank + x->ranks - 1) % x->ranks };
	return !k;
}

/* Pairs of ranks, the even one first; a last rank without a partner expects nothing. */
static bool expect_even(const struct ha_extent *x, int k, struct ha_segment *segment)
{
	*segment = (struct ha_segment) { .count = x->block, .rank = x->rank & ~1 };
	return !k && (x->rank ^ 1) < x->ranks;
}

/* ---- the operations ---- */

const struct ha_layout ha_layout_allreduce = { .reduces = true,
					       .in_place = true,
					       .bus_factor = factor_twice,
					       .send_blocks = one_block,
					       .recv_blocks = one_block,
					       .overlap = share_place,
					       .segment = expect_reduction };

const struct ha_layout ha_layout_allgather = { .in_place = true,
					       .splits = true,
					       .bus_factor = factor_part,
					       .send_blocks = one_block,
					       .recv_blocks = all_blocks,
					       .overlap = send_inside,
					       .segment = expect_everybody };

const struct ha_layout ha_layout_reducescatter = { .reduces = true,
						   .in_place = true,
						   .splits = true,
						   .bus_factor = factor_part,
						   .send_blocks = all_blocks,
						   .recv_blocks = one_block,
						   .overlap = recv_inside,
						   .segment = expect_own_part };

const struct ha_layout ha_layout_broadcast = { .rooted = true,
					       .in_place = true,
					       .bus_factor = factor_one,
					       .send_blocks = one_block,
					       .recv_blocks = one_block,
					       .overlap = share_place,
					       .segment = expect_root };

const struct ha_layout ha_layout_reduce = { .reduces = true,
					    .rooted = true,
					    .in_place = true,
					    .bus_factor = factor_one,
					    .send_blocks = one_block,
					    .recv_blocks = one_block,
					    .overlap = share_place,
					    .segment = expect_reduction_at_root };

const struct ha_layout ha_layout_alltoall = { .splits = true,
					      .bus_factor = factor_part,
					      .send_blocks = all_blocks,
					      .recv_blocks = all_blocks,
					      .overlap = share_place,
					      .segment = expect_part_of_everybody };

const struct ha_layout ha_layout_sendrecv = { .bus_factor = factor_one,
					      .send_blocks = one_block,
					      .recv_blocks = one_block,
					      .overlap = share_place,
					      .segment = expect_previous };

const struct ha_layout ha_layout_gather = { .rooted = true,
					    .splits = true,
					    .bus_factor = factor_part,
					    .send_blocks = one_block,
					    .recv_blocks = all_blocks,
					    .overlap = share_place,
					    .segment = expect_everybody_at_root };

const struct ha_layout ha_layout_scatter = { .rooted = true,
					     .splits = true,
					     .bus_factor = factor_part,
					     .send_blocks = all_blocks,
					     .recv_blocks = one_block,
					     .overlap = share_place,
					     .segment = expect_part_of_root };

const struct ha_layout ha_layout_pingpong = { .bus_factor = factor_one,
					      .send_blocks = one_block,
					      .recv_blocks = one_block,
					      .overlap = share_place,
					      .segment = expect_even };

size_t ha_layout_block(const struct ha_layout *layout, int ranks, size_t count)
{
	return layout->splits ? count / (size_t)ranks : count;
}

size_t ha_layout_count(const struct ha_layout *layout, int ranks, size_t bytes, size_t element)
{
	size_t share = layout->splits ? (size_t)ranks : 1, block = bytes / element / share;

	if (!block && bytes)
		block = 1;
	return block * share;
}
