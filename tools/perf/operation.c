/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "tools/perf/operation.h"
#include "tools/perf/ring.h"

/* ---- pieces that several operations share ---- */

static unsigned ring_links(int rank, int ranks, int root, int peer)
{
	return (peer == (rank + 1) % ranks ? HA_LINK_SEND : 0) |
	       (peer == (rank + ranks - 1) % ranks ? HA_LINK_RECEIVE : 0);
}

/* The ring open at the root: nothing is sent to it in a broadcast, */
static unsigned from_root_links(int rank, int ranks, int root, int peer)
{
	unsigned links = ring_links(rank, ranks, root, peer);

	if (rank == root)
		links &= ~(unsigned)HA_LINK_RECEIVE;
	if (peer == root)
		links &= ~(unsigned)HA_LINK_SEND;
	return links;
}

/* and it sends nothing in a reduce. */
static unsigned to_root_links(int rank, int ranks, int root, int peer)
{
	unsigned links = ring_links(rank, ranks, root, peer);

	if (rank == root)
		links &= ~(unsigned)HA_LINK_SEND;
	if (peer == root)
		links &= ~(unsigned)HA_LINK_RECEIVE;
	return links;
}

static unsigned all_links(int rank, int ranks, int root, int peer)
{
	return peer != rank ? HA_LINK_SEND | HA_LINK_RECEIVE : 0;
}

static int pair_of(int rank, int ranks)
{
	int partner = rank ^ 1;

	return partner < ranks ? partner : -1;
}

static unsigned pair_links(int rank, int ranks, int root, int peer)
{
	return peer == pair_of(rank, ranks) ? HA_LINK_SEND | HA_LINK_RECEIVE : 0;
}

/* ---- point to point ---- */

/* A send plan's part of the send buffer, at block * plan->to when the buffer has one per peer. */
static void send_whole(const struct ha_shape *shape, const struct ha_plan *plan, uint64_t k,
		       struct ha_action *action)
{
	*action = (struct ha_action) {
		.send = true,
		.src = shape->send + plan->first * shape->type->size,
		.bytes = plan->count * shape->type->size,
	};
}

static void receive_whole(const struct ha_shape *shape, const struct ha_plan *plan, uint64_t k,
			  struct ha_action *action)
{
	*action = (struct ha_action) {
		.receive = true,
		.dst = shape->recv + plan->first * shape->type->size,
		.bytes = plan->count * shape->type->size,
	};
}

static int sendrecv_plans(const struct ha_shape *shape, size_t first, size_t count,
			  struct ha_plan *plans)
{
	int next = (shape->rank + 1) % shape->ranks,
	    previous = (shape->rank + shape->ranks - 1) % shape->ranks;

	plans[0] = (struct ha_plan) { .from = -1,
				      .to = next,
				      .first = first,
				      .count = count,
				      .actions = 1,
				      .action = send_whole };
	plans[1] = (struct ha_plan) { .from = previous,
				      .to = -1,
				      .first = first,
				      .count = count,
				      .actions = 1,
				      .action = receive_whole };
	return 2;
}

/* The even rank of a pair sends first; the odd one answers with what it got. */
static void pingpong_action(const struct ha_shape *shape, const struct ha_plan *plan, uint64_t k,
			    struct ha_action *action)
{
	bool odd = shape->rank & 1;

	if ((k == 0) == odd) {
		receive_whole(shape, plan, k, action);
		return;
	}
	send_whole(shape, plan, k, action);
	if (odd)
		action->src = shape->recv + plan->first * shape->type->size;
}

static int pingpong_plans(const struct ha_shape *shape, size_t first, size_t count,
			  struct ha_plan *plans)
{
	int partner = pair_of(shape->rank, shape->ranks);

	if (partner < 0)
		return 0;
	plans[0] = (struct ha_plan) { .from = partner,
				      .to = partner,
				      .first = first,
				      .count = count,
				      .actions = 2,
				      .action = pingpong_action };
	return 1;
}

/*
 * Peers in the order NCCL schedules them: at distance 1, 2, ... so that nobody is everybody's
 * first.
 */
static int alltoall_plans(const struct ha_shape *shape, size_t first, size_t count,
			  struct ha_plan *plans)
{
	int n = 0;

	for (int d = 1; d < shape->ranks; d++) {
		int to = (shape->rank + d) % shape->ranks,
		    from = (shape->rank + shape->ranks - d) % shape->ranks;

		plans[n++] = (struct ha_plan) { .from = -1,
						.to = to,
						.first = (size_t)to * shape->block + first,
						.count = count,
						.actions = 1,
						.action = send_whole };
		plans[n++] = (struct ha_plan) { .from = from,
						.to = -1,
						.first = (size_t)from * shape->block + first,
						.count = count,
						.actions = 1,
						.action = receive_whole };
	}
	return n;
}

static void alltoall_prologue(const struct ha_shape *shape)
{
	size_t bytes = shape->block * shape->type->size, at = (size_t)shape->rank * bytes;

	memcpy(shape->recv + at, shape->send + at, bytes);
}

/* ---- the table ---- */

const struct ha_operation ha_operations[] = {
	{ .name = "pingpong",
	  .help = "pairs of ranks: a message and its echo; times are of one way",
	  .half_trip = true,
	  .raw = true,
	  .links = pair_links,
	  .plans = pingpong_plans,
	  .layout = &ha_layout_pingpong },
	{ .name = "sendrecv",
	  .help = "every rank sends to the next and receives from the previous one",
	  .point_to_point = true,
	  .links = ring_links,
	  .plans = sendrecv_plans,
	  .layout = &ha_layout_sendrecv },
	{ .name = "allreduce",
	  .help = "ring all-reduce: reduce-scatter, then all-gather",
	  .links = ring_links,
	  .plans = ha_ring_allreduce,
	  .layout = &ha_layout_allreduce },
	{ .name = "allgather",
	  .help = "ring all-gather",
	  .links = ring_links,
	  .plans = ha_ring_allgather,
	  .layout = &ha_layout_allgather },
	{ .name = "reducescatter",
	  .help = "ring reduce-scatter",
	  .links = ring_links,
	  .plans = ha_ring_reducescatter,
	  .layout = &ha_layout_reducescatter },
	{ .name = "broadcast",
	  .help = "from the root along the ring",
	  .links = from_root_links,
	  .plans = ha_ring_broadcast,
	  .layout = &ha_layout_broadcast },
	{ .name = "reduce",
	  .help = "along the ring to the root",
	  .links = to_root_links,
	  .plans = ha_ring_reduce,
	  .layout = &ha_layout_reduce },
	{ .name = "alltoall",
	  .help = "every rank sends a part to every other one",
	  .point_to_point = true,
	  .links = all_links,
	  .plans = alltoall_plans,
	  .layout = &ha_layout_alltoall,
	  .prologue = alltoall_prologue },
	{ .name = "collnet",
	  .help = "all-reduce by the plugin's collnet table (float, sum)",
	  .layout = &ha_layout_allreduce,
	  .collnet = true },
	{ .name = "put",
	  .help = "one-sided: --steps puts to the next rank, the last with a signal",
	  .layout = &ha_layout_sendrecv,
	  .one_sided = HA_ONE_SIDED_PUT },
	{ .name = "putsignal",
	  .help = "one-sided: --steps puts with a signal each; --steps 1 is the latency",
	  .layout = &ha_layout_sendrecv,
	  .one_sided = HA_ONE_SIDED_PUTSIGNAL },
	{ .name = "get",
	  .help = "one-sided: --steps gets from the next rank",
	  .layout = &ha_layout_sendrecv,
	  .one_sided = HA_ONE_SIDED_GET },
	{ .name = "moe",
	  .help = "one-sided: an expert-parallel dispatch of unequal parts to all, and its combine",
	  .layout = &ha_layout_alltoall,
	  .one_sided = HA_ONE_SIDED_MOE },
};

const size_t ha_operations_count = sizeof(ha_operations) / sizeof(ha_operations[0]);

const struct ha_operation *ha_operation_find(const char *name)
{
	for (size_t i = 0; i < ha_operations_count; i++)
		if (!strcmp(name, ha_operations[i].name))
			return &ha_operations[i];
	return NULL;
}

size_t ha_operation_action_bytes(const struct ha_operation *operation, const struct ha_shape *shape)
{
	size_t elements = (shape->block + (size_t)shape->channels - 1) / (size_t)shape->channels;

	/* the only one whose block is cut into a piece per rank */
	if (operation->plans == ha_ring_allreduce)
		elements = (elements + (size_t)shape->ranks - 1) / (size_t)shape->ranks;
	return elements * shape->type->size;
}

struct ha_extent ha_shape_extent(const struct ha_shape *shape)
{
	return (struct ha_extent) { shape->rank, shape->ranks, shape->root, shape->block };
}
