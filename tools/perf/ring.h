/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_PERF_RING_H
#define HAWSER_PERF_RING_H

#include <stddef.h>

struct ha_plan;
struct ha_shape;

/*
 * ring - the ring algorithms, one plan per channel: each rank receives from the previous one and
 * sends to the next
 *
 * A block longer than what the steps in flight hold is done in rounds. A piece, the unit an action
 * moves, is what one round gives to one rank; it is long enough to keep all steps of a connection
 * in flight.
 *
 * Each fills plans[0] for the channel's part of the block and returns 1.
 */
int ha_ring_allreduce(const struct ha_shape *shape, size_t first, size_t count,
		      struct ha_plan *plans);
int ha_ring_allgather(const struct ha_shape *shape, size_t first, size_t count,
		      struct ha_plan *plans);
int ha_ring_reducescatter(const struct ha_shape *shape, size_t first, size_t count,
			  struct ha_plan *plans);
int ha_ring_broadcast(const struct ha_shape *shape, size_t first, size_t count,
		      struct ha_plan *plans);
int ha_ring_reduce(const struct ha_shape *shape, size_t first, size_t count, struct ha_plan *plans);

#endif
