/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_collnet.c - CollNet's chain and direct algorithms between ranks of one process, with a
 * network that sums
 *
 * The network stands for NCCL's proxy threads and a CollNet plugin: it takes a step of every host's
 * head when all have written it, sums or gathers, and gives the result back.
 */
#include "base/check.h"
#include "tests/softcuda/nccl/fake_ranks.h"

#define FLOATS 4 /* bytes of an element */

struct network {
	enum collective collective;
	int nodes;
	int heads; /* of a node: its first ranks */
	int local; /* ranks of a node */
	int channels;
	size_t count; /* of the work */
	size_t chunk;
	bool registered;
	const float *inputs[FAKE_RANKS_MAX]; /* user buffers, for a network that works on them */
	float *outputs[FAKE_RANKS_MAX];
};

static struct connection_info *network_end(struct fake_ranks *ranks, int channel, int rank,
					   bool sends)
{
	struct channel_peer *peer = ranks->comms[rank]->channels[channel].peers[ranks->count];

	return sends ? &peer->send[1] : &peer->recv[0];
}

/* May the network take and give one more step of this head's rail? */
static bool rail_is_ready(struct fake_ranks *ranks, const struct network *network, int channel,
			  int head)
{
	for (int node = 0; node < network->nodes; node++) {
		int rank = node * network->local + head;
		struct connection_info *sends = network_end(ranks, channel, rank, true);
		struct connection_info *receives = network_end(ranks, channel, rank, false);

		/* On registered buffers the receiver's credit says that the result may be
		 * written. */
		if (*sends->tail <= *sends->head ||
		    *receives->tail >= *receives->head + (network->registered ? 0 : 8))
			return false;
	}
	return true;
}

static size_t smaller_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

static float *slot_of(const struct connection_info *info, uint64_t step)
{
	return (float *)(info->buffers[PROTOCOL_SIMPLE] + step % 8 * (size_t)info->step_bytes);
}

/* This channel's part of what all nodes have together, in a step. */
static void find_range(const struct network *network, int channel, uint64_t step, size_t *start,
		       size_t *end)
{
	size_t total = network->count * (size_t)network->nodes;

	*start = smaller_size((step * (size_t)network->channels + (size_t)channel) * network->chunk,
			      total);
	*end = smaller_size(*start + network->chunk, total);
}

/* The node's part of the range. */
static void cut_to_node(const struct network *network, int node, size_t *start, size_t *end)
{
	size_t own = (size_t)node * network->count;

	*start = *start < own ? own : *start;
	*end = smaller_size(*end, own + network->count);
	if (*end < *start)
		*end = *start;
}

static void sum_step(struct fake_ranks *ranks, const struct network *network, int channel, int head,
		     uint64_t step)
{
	int64_t bytes = network_end(ranks, channel, head, true)->fifo[step % 8].size;
	float sum[4096];

	CHECK(bytes >= 0 && bytes <= (int64_t)(network->chunk * FLOATS));
	memset(sum, 0, sizeof(sum));
	for (int node = 0; node < network->nodes; node++) {
		struct connection_info *info =
			network_end(ranks, channel, node * network->local + head, true);

		CHECK_INT(info->fifo[step % 8].size, bytes);
		for (int64_t i = 0; i < bytes / FLOATS; i++)
			sum[i] += slot_of(info, step)[i];
	}
	for (int node = 0; node < network->nodes; node++)
		memcpy(slot_of(network_end(ranks, channel, node * network->local + head, false),
			       step),
		       sum, (size_t)bytes);
}

static void gather_step(struct fake_ranks *ranks, const struct network *network, int channel,
			int head, uint64_t step)
{
	char gathered[4096 * FLOATS];
	size_t start, end;

	for (int node = 0; node < network->nodes; node++) {
		struct connection_info *info =
			network_end(ranks, channel, node * network->local + head, true);
		size_t first, last;

		find_range(network, channel, step, &start, &end);
		first = start;
		last = end;
		cut_to_node(network, node, &first, &last);
		CHECK_INT(info->fifo[step % 8].size, last - first);
		memcpy(gathered + (first - start), slot_of(info, step), last - first);
	}
	for (int node = 0; node < network->nodes; node++)
		memcpy(slot_of(network_end(ranks, channel, node * network->local + head, false),
			       step),
		       gathered, end - start);
}

static void scatter_step(struct fake_ranks *ranks, const struct network *network, int channel,
			 int head, uint64_t step)
{
	size_t start, end;

	find_range(network, channel, step, &start, &end);
	for (int node = 0; node < network->nodes; node++) {
		float *result = slot_of(
			network_end(ranks, channel, node * network->local + head, false), step);
		size_t first = start, last = end;

		cut_to_node(network, node, &first, &last);
		memset(result, 0, (last - first) * FLOATS);
		for (int from = 0; from < network->nodes; from++) {
			struct connection_info *info =
				network_end(ranks, channel, from * network->local + head, true);

			CHECK_INT(info->fifo[step % 8].size, (end - start) * FLOATS);
			for (size_t i = first; i < last; i++)
				result[i - first] += slot_of(info, step)[i - start];
		}
	}
}

static void sum_user_buffers(const struct network *network)
{
	for (size_t i = 0; i < network->count; i++) {
		float sum = 0;

		for (int rank = 0; rank < network->nodes; rank++)
			sum += network->inputs[rank][i];
		for (int rank = 0; rank < network->nodes; rank++)
			network->outputs[rank][i] = sum;
	}
}

static bool move_rail(struct fake_ranks *ranks, struct network *network, int channel, int head)
{
	uint64_t step;

	if (!rail_is_ready(ranks, network, channel, head))
		return false;
	step = *network_end(ranks, channel, head, true)->head;
	if (network->registered)
		sum_user_buffers(network);
	else if (network->collective == COLLECTIVE_ALL_GATHER)
		gather_step(ranks, network, channel, head, step);
	else if (network->collective == COLLECTIVE_REDUCE_SCATTER)
		scatter_step(ranks, network, channel, head, step);
	else
		sum_step(ranks, network, channel, head, step);
	for (int node = 0; node < network->nodes; node++) {
		struct connection_info *sends =
			network_end(ranks, channel, node * network->local + head, true);
		struct connection_info *receives =
			network_end(ranks, channel, node * network->local + head, false);

		sends->fifo[step % 8].size = -1;
		++*sends->head;
		++*receives->tail;
	}
	return true;
}

static bool move_network(struct fake_ranks *ranks, void *context)
{
	struct network *network = context;
	bool moved = false;

	/* A network is slow: who does not wait for it is found out. */
	if (fake_random(ranks) % 16)
		return false;

	for (int channel = 0; channel < network->channels; channel++) {
		for (int head = 0; head < network->heads; head++)
			moved |= move_rail(ranks, network, channel, head);
	}
	return moved;
}

/* The host's ranks in a chain, the first of them at the network. */
static void arrange_chain(struct channel *channel, const struct network *network, int rank)
{
	int local = rank % network->local;

	channel->collnet_chain.up = local ? rank - 1 : network->nodes * network->local;
	channel->collnet_chain.down[0] = local == network->local - 1 ? -1 : rank + 1;
}

static void arrange_direct(struct direct *direct, const struct network *network, int rank)
{
	int local = rank % network->local;
	int first = rank - local;
	bool is_head = local < network->heads;
	int up = 0, down = 0;

	memset(direct, 0xff, sizeof(*direct));
	direct->head_count = network->heads;
	direct->head_rank = is_head ? local : -1;
	direct->out = is_head ? network->nodes * network->local : -1;
	for (int i = 0; i < network->heads; i++) {
		direct->heads[i] = first + (i + (is_head ? local : 0)) % network->heads;
		if (first + i != rank)
			direct->up[up++] = first + i;
	}
	for (int i = 0; is_head && i < network->local; i++) {
		if (first + i != rank)
			direct->down[down++] = first + i;
	}
}

static void arrange_ranks(struct fake_ranks *ranks, const struct network *network,
			  int32_t *dense_to_rank)
{
	for (int i = 0; i < network->nodes * network->heads; i++)
		dense_to_rank[i] = i / network->heads * network->local + i % network->heads;
	for (int rank = 0; rank < ranks->count; rank++) {
		struct kernel_comm *comm = &ranks->comms[rank]->comm;

		comm->node = rank / network->local;
		comm->node_count = network->nodes;
		comm->collnet_dense_to_rank = dense_to_rank;
		for (int c = 0; c < ranks->channels; c++) {
			struct channel *channel = &ranks->comms[rank]->channels[c];

			arrange_chain(channel, network, rank);
			arrange_direct(&channel->collnet_direct, network, rank);
			if (rank % network->local < network->heads)
				connect_fake_network(ranks, c, rank);
		}
	}
}

static float input_value(int rank, size_t index)
{
	return (float)((index * 7 + index / 53 + (size_t)rank * 3) % 10);
}

static float expected_value(const struct network *network, int ranks, int rank, size_t index)
{
	float sum = 0;

	if (network->collective == COLLECTIVE_ALL_GATHER)
		return input_value((int)(index / (network->count / FLOATS)),
				   index % (network->count / FLOATS));
	if (network->collective == COLLECTIVE_REDUCE_SCATTER)
		index += (size_t)rank * network->count;
	for (int r = 0; r < ranks; r++)
		sum += input_value(r, index);
	return sum;
}

static struct work_collective work_of(const struct network *network, float *input, float *output)
{
	struct work_collective work;

	memset(&work, 0, sizeof(work));
	work.channel_high = (unsigned)network->channels - 1;
	work.send_buffer = (char *)input;
	work.recv_buffer = (char *)output;
	work.collnet.count = network->count;
	work.collnet.chunk_count = (uint32_t)network->chunk;
#if LAYOUT_VERSION_CODE == 22203
	work.registered = network->registered ? REGISTERED_COLLNET : REGISTERED_NOT;
#else
	work.net_registered = network->registered;
#endif
	return work;
}

static void check_output(const struct network *network, enum algorithm algorithm, int rank,
			 const float *output, size_t n)
{
	int count = network->nodes * network->local;

	for (size_t i = 0; i < n; i++) {
		float expected = expected_value(network, count, rank, i);

		if (output[i] == expected)
			continue;
		fprintf(stderr,
			"collective %d algorithm %d, %d nodes of %d ranks with %d heads, "
			"%zu elements: rank %d, "
			"element %zu is %g, expected %g\n",
			network->collective, algorithm, network->nodes, network->local,
			network->heads, network->count, rank, i, output[i], expected);
		exit(1);
	}
}

static void run_case(struct network network, enum algorithm algorithm, bool in_place)
{
	static float inputs[FAKE_RANKS_MAX][FAKE_RANKS_MAX * 20000],
		outputs[FAKE_RANKS_MAX][FAKE_RANKS_MAX * 20000];
	int count = network.nodes * network.local;
	size_t own = network.collective == COLLECTIVE_ALL_GATHER ? network.count / FLOATS
								 : network.count;
	size_t in = network.collective == COLLECTIVE_REDUCE_SCATTER ? own * (size_t)count : own;
	size_t out = network.collective == COLLECTIVE_ALL_GATHER ? own * (size_t)count : own;
	int32_t dense_to_rank[FAKE_RANKS_MAX];
	static struct fake_ranks ranks;
	struct work_collective work;

	make_fake_ranks(&ranks, count, network.channels, 0, 11);
	ranks.function = (struct device_function) { network.collective, algorithm, PROTOCOL_SIMPLE,
						    REDUCE_SUM, ELEMENT_FLOAT };
	if (network.collective == COLLECTIVE_ALL_GATHER)
		ranks.function.type = ELEMENT_INT8;
	ranks.network = move_network;
	ranks.network_context = &network;
	arrange_ranks(&ranks, &network, dense_to_rank);
	for (int r = 0; r < count; r++) {
		float *input = inputs[r];

		memset(outputs[r], 0x55, out * FLOATS);
		if (in_place && network.collective == COLLECTIVE_ALL_GATHER)
			input = outputs[r] + (size_t)r * own;
		for (size_t i = 0; i < in; i++)
			input[i] = input_value(r, i);
		network.inputs[r] = input;
		network.outputs[r] = outputs[r];
		work = work_of(&network, input, outputs[r]);
		set_fake_works(&ranks, r, WORK_COLLECTIVE, &work, 1, sizeof(work));
	}
	run_fake_ranks(&ranks);
	for (int r = 0; r < count; r++)
		check_output(&network, algorithm, r, outputs[r], out);
	free_fake_ranks(&ranks);
}

static const size_t sizes[] = { 1, 5, 1000, 1024, 3001, 19997 };

static void test_chain(void)
{
	for (int local = 1; local <= 3; local++) {
		for (int i = 0; i < 6; i++)
			run_case((struct network) { COLLECTIVE_ALL_REDUCE, 2, 1, local, 1 + i % 3,
						    sizes[i], 1024, false },
				 ALGORITHM_COLLNET_CHAIN, false);
	}
}

static void test_direct_all_reduce(void)
{
	static const int shapes[][3] = {
		{ 2, 1, 1 }, { 3, 2, 2 }, { 2, 2, 3 }, { 2, 3, 4 }, { 2, 1, 3 }
	};

	for (int s = 0; s < 5; s++) {
		for (int i = 0; i < 6; i++)
			run_case((struct network) { COLLECTIVE_ALL_REDUCE, shapes[s][0],
						    shapes[s][1], shapes[s][2], 1 + i % 2, sizes[i],
						    512, false },
				 ALGORITHM_COLLNET_DIRECT, false);
	}
}

static void test_rails(void)
{
	static const int shapes[][2] = { { 2, 1 }, { 4, 1 }, { 2, 2 }, { 2, 4 }, { 3, 2 } };

	for (int s = 0; s < 5; s++) {
		for (int i = 0; i < 6; i++) {
			int heads = shapes[s][1];

			run_case((struct network) { COLLECTIVE_ALL_GATHER, shapes[s][0], heads,
						    heads, 1 + i % 2, sizes[i] * FLOATS, 4096,
						    false },
				 ALGORITHM_COLLNET_DIRECT, i & 1);
			run_case((struct network) { COLLECTIVE_REDUCE_SCATTER, shapes[s][0], heads,
						    heads, 1 + i % 2, sizes[i], 1024, false },
				 ALGORITHM_COLLNET_DIRECT, false);
		}
	}
}

/* One rank of each host, and a network that works on user buffers: counters are all that is left to
 * the kernel. */
static void test_registered(void)
{
	run_case((struct network) { COLLECTIVE_ALL_REDUCE, 3, 1, 1, 1, 5000, 1024, true },
		 ALGORITHM_COLLNET_CHAIN, false);
	run_case((struct network) { COLLECTIVE_ALL_REDUCE, 3, 1, 1, 1, 5000, 1024, true },
		 ALGORITHM_COLLNET_DIRECT, false);
}

int main(void)
{
	test_chain();
	test_direct_all_reduce();
	test_rails();
	test_registered();
	return 0;
}
