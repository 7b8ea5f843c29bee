/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/perf/ring.h"
#include "tools/perf/operation.h"

#define ALIGN_FROM 4096u /* bytes from which pieces are cut at cache lines */
#define ALIGN 64u

static int ring_previous(const struct ha_shape *shape)
{
	return (shape->rank + shape->ranks - 1) % shape->ranks;
}

static int ring_next(const struct ha_shape *shape)
{
	return (shape->rank + 1) % shape->ranks;
}

/* The rank's index `back` places upstream, itself at 0. */
static int find_upstream(const struct ha_shape *shape, int back)
{
	return (shape->rank + 2 * shape->ranks - back) % shape->ranks;
}

/* Elements of the longest piece: as many slices as there are steps in flight. */
static size_t longest_piece(const struct ha_shape *shape)
{
	return shape->slot_bytes * (size_t)shape->steps / shape->type->size;
}

static uint64_t count_rounds(size_t count, size_t per_round)
{
	return (count + per_round - 1) / per_round;
}

static int plan_ring(const struct ha_shape *shape, size_t first, size_t count, uint64_t actions,
		     struct ha_plan *plan,
		     void (*action)(const struct ha_shape *, const struct ha_plan *, uint64_t,
				    struct ha_action *))
{
	*plan = (struct ha_plan) {
		.from = ring_previous(shape),
		.to = ring_next(shape),
		.first = first,
		.count = count,
		.actions = actions,
		.action = action,
	};
	return 1;
}

/* ---- all-reduce ---- */

/* Element range of piece `index` in a round that cuts the block into one piece per rank. */
static void cut_piece(const struct ha_shape *shape, const struct ha_plan *plan, uint64_t round,
		      int index, size_t *at, size_t *count)
{
	size_t longest = longest_piece(shape),
	       done = (size_t)round * longest * (size_t)shape->ranks;
	size_t left = plan->count - done, ranks = (size_t)shape->ranks, start;
	size_t piece = (left + ranks - 1) / ranks, align = ALIGN / shape->type->size;

	if (piece * shape->type->size >= ALIGN_FROM)
		piece = (piece + align - 1) / align * align;
	if (piece > longest)
		piece = longest;
	start = (size_t)index * piece;
	if (start > left)
		start = left;
	*at = plan->first + done + start;
	*count = left - start < piece ? left - start : piece;
}

static void allreduce_action(const struct ha_shape *shape, const struct ha_plan *plan, uint64_t k,
			     struct ha_action *action)
{
	int n = shape->ranks, per_round = 2 * n - 1, j = (int)(k % (uint64_t)per_round);
	size_t at, count, size = shape->type->size;

	/* first the pieces travel once round to be reduced, then once more to be distributed */
	cut_piece(shape, plan, k / (uint64_t)per_round,
		  find_upstream(shape, j < n - 1 ? j + 1 : j - (n - 1)), &at, &count);
	*action = (struct ha_action) {
		.receive = j > 0,
		.send = j<per_round - 1, .reduce = j> 0 && j < n,
		.finish = j == n - 1,
		.src = shape->send + at * size,
		.dst = j >= n - 1 ? shape->recv + at * size : NULL,
		.bytes = count * size,
	};
}

int ha_ring_allreduce(const struct ha_shape *shape, size_t first, size_t count,
		      struct ha_plan *plans)
{
	uint64_t n = count_rounds(count, longest_piece(shape) * (size_t)shape->ranks);

	return plan_ring(shape, first, count, n * (uint64_t)(2 * shape->ranks - 1), plans,
			 allreduce_action);
}

/* ---- all-gather, reduce-scatter ---- */

/* Element range of a round's piece of the block of rank `owner`. */
static void slice_of_block(const struct ha_shape *shape, const struct ha_plan *plan, uint64_t round,
			   int owner, size_t *at, size_t *count)
{
	size_t longest = longest_piece(shape), done = (size_t)round * longest,
	       left = plan->count - done;

	*at = (size_t)owner * shape->block + plan->first + done;
	*count = left < longest ? left : longest;
}

static void allgather_action(const struct ha_shape *shape, const struct ha_plan *plan, uint64_t k,
			     struct ha_action *action)
{
	int n = shape->ranks, j = (int)(k % (uint64_t)n);
	size_t at, own, count, size = shape->type->size;

	slice_of_block(shape, plan, k / (uint64_t)n, find_upstream(shape, j), &at, &count);
	slice_of_block(shape, plan, k / (uint64_t)n, 0, &own, &count);
	*action = (struct ha_action) {
		.receive = j > 0,
		.send = j < n - 1,
		.src = shape->send + own * size,
		.dst = shape->recv + at * size,
		.bytes = count * size,
	};
}

int ha_ring_allgather(const struct ha_shape *shape, size_t first, size_t count,
		      struct ha_plan *plans)
{
	uint64_t n = count_rounds(count, longest_piece(shape));

	return plan_ring(shape, first, count, n * (uint64_t)shape->ranks, plans, allgather_action);
}

static void reducescatter_action(const struct ha_shape *shape, const struct ha_plan *plan,
				 uint64_t k, struct ha_action *action)
{
	int n = shape->ranks, j = (int)(k % (uint64_t)n);
	size_t at, own, count, size = shape->type->size;

	slice_of_block(shape, plan, k / (uint64_t)n, find_upstream(shape, j + 1), &at, &count);
	slice_of_block(shape, plan, k / (uint64_t)n, 0, &own, &count);
	*action = (struct ha_action) {
		.receive = j > 0,
		.send = j<n - 1, .reduce = j> 0,
		.finish = j == n - 1,
		.src = shape->send + at * size,
		.dst = j == n - 1 ? shape->recv + own * size : NULL,
		.bytes = count * size,
	};
}

int ha_ring_reducescatter(const struct ha_shape *shape, size_t first, size_t count,
			  struct ha_plan *plans)
{
	uint64_t n = count_rounds(count, longest_piece(shape));

	return plan_ring(shape, first, count, n * (uint64_t)shape->ranks, plans,
			 reducescatter_action);
}

/* ---- broadcast, reduce: the ring, open at the root ---- */

static void broadcast_action(const struct ha_shape *shape, const struct ha_plan *plan, uint64_t k,
			     struct ha_action *action)
{
	size_t at, count, size = shape->type->size;
	bool first = shape->rank == shape->root, last = ring_next(shape) == shape->root;

	slice_of_block(shape, plan, k, 0, &at, &count);
	*action = (struct ha_action) {
		.receive = !first,
		.send = !last,
		.src = shape->send + at * size,
		.dst = shape->recv + at * size,
		.bytes = count * size,
	};
}

int ha_ring_broadcast(const struct ha_shape *shape, size_t first, size_t count,
		      struct ha_plan *plans)
{
	int n = plan_ring(shape, first, count, count_rounds(count, longest_piece(shape)), plans,
			  broadcast_action);

	for (int i = 0; i < n; i++) {
		if (shape->rank == shape->root)
			plans[i].from = -1;
		if (ring_next(shape) == shape->root)
			plans[i].to = -1;
	}
	return n;
}

static void reduce_action(const struct ha_shape *shape, const struct ha_plan *plan, uint64_t k,
			  struct ha_action *action)
{
	size_t at, count, size = shape->type->size;
	bool first = ring_previous(shape) == shape->root, last = shape->rank == shape->root;

	slice_of_block(shape, plan, k, 0, &at, &count);
	*action = (struct ha_action) {
		.receive = !first,
		.send = !last,
		.reduce = !first,
		.finish = last,
		.src = shape->send + at * size,
		.dst = last ? shape->recv + at * size : NULL,
		.bytes = count * size,
	};
}

int ha_ring_reduce(const struct ha_shape *shape, size_t first, size_t count, struct ha_plan *plans)
{
	int n = plan_ring(shape, first, count, count_rounds(count, longest_piece(shape)), plans,
			  reduce_action);

	for (int i = 0; i < n; i++) {
		if (shape->rank == shape->root)
			plans[i].to = -1;
		if (ring_previous(shape) == shape->root)
			plans[i].from = -1;
	}
	return n;
}
