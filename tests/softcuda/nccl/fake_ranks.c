/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/softcuda/nccl/fake_ranks.h"
#include "base/check.h"

/* Bytes of a connection's eight steps in each protocol: small, so that every operation takes many
 * chunks. */
static const int32_t buffer_bytes[PROTOCOL_COUNT] = {
	[PROTOCOL_LL] = 8 * 2048,
	[PROTOCOL_LL128] = 8 * 4096,
	[PROTOCOL_SIMPLE] = 8 * 4096,
};

static struct device_function current_function;

void use_fake_function(const struct device_function *function)
{
	current_function = *function;
}

/* In place of the table that is read out of NCCL. */
const struct device_function *find_function(unsigned number)
{
	(void)number;
	return &current_function;
}

bool load_function_table(void)
{
	return true;
}

uint64_t fake_random(struct fake_ranks *ranks)
{
	ranks->random ^= ranks->random << 13;
	ranks->random ^= ranks->random >> 7;
	ranks->random ^= ranks->random << 17;
	return ranks->random;
}

static void connect_fake_ranks(struct fake_ranks *ranks, int channel, int from, int to,
			       int connection, uint64_t step)
{
	struct connection_info *sender =
		&ranks->comms[from]->channels[channel].peers[to]->send[connection];
	struct connection_info *receiver =
		&ranks->comms[to]->channels[channel].peers[from]->recv[connection];
	uint64_t *counters = calloc(2, sizeof(*counters));

	CHECK(counters != NULL);
	counters[0] = step;
	counters[1] = step;
	for (int p = 0; p < PROTOCOL_COUNT; p++) {
		sender->buffers[p] = calloc(1, (size_t)buffer_bytes[p]);
		CHECK(sender->buffers[p] != NULL);
	}
	sender->head = &counters[0];
	sender->tail = &counters[1];
	sender->step_bytes = buffer_bytes[PROTOCOL_SIMPLE] / (int)FIFO_STEPS;
	sender->step = step;
	*receiver = *sender;
}

/* One direction: the two ends share nothing but the record, which the network reads and writes,
 * too. */
static void make_network_end(struct connection_info *info)
{
	uint64_t *counters = calloc(2, sizeof(*counters));

	CHECK(counters != NULL);
	info->head = &counters[0];
	info->tail = &counters[1];
	info->buffers[PROTOCOL_SIMPLE] = calloc(1, (size_t)buffer_bytes[PROTOCOL_SIMPLE]);
	info->fifo = calloc(FIFO_STEPS, sizeof(*info->fifo));
	CHECK(info->buffers[PROTOCOL_SIMPLE] && info->fifo);
	for (unsigned i = 0; i < FIFO_STEPS; i++)
		info->fifo[i].size = -1;
	info->step_bytes = buffer_bytes[PROTOCOL_SIMPLE] / (int)FIFO_STEPS;
	info->flags = CONNECTION_DIRECT_NIC;
}

void connect_fake_network(struct fake_ranks *ranks, int channel, int rank)
{
	struct channel_peer *peer = ranks->comms[rank]->channels[channel].peers[ranks->count];

	make_network_end(&peer->send[1]);
	make_network_end(&peer->recv[0]);
}

static void make_fake_channel(struct fake_ranks *ranks, int rank, int id)
{
	struct channel *channel = &ranks->comms[rank]->channels[id];
	int n = ranks->count;

	channel->peers = calloc((size_t)n + 1, sizeof(*channel->peers));
	channel->ring.user_ranks = calloc((size_t)n, sizeof(int32_t));
	CHECK(channel->peers && channel->ring.user_ranks);
	for (int i = 0; i <= n; i++) {
		channel->peers[i] = calloc(1, sizeof(**channel->peers));
		CHECK(channel->peers[i] != NULL);
	}
	/* Odd channels run their rings the other way round. */
	for (int i = 0; i < n; i++)
		channel->ring.user_ranks[i] = id % 2 ? (rank + n - i) % n : (rank + i) % n;
	channel->ring.index = id % 2 ? (n - rank) % n : rank;
	channel->ring.next = channel->ring.user_ranks[1];
	channel->ring.previous = channel->ring.user_ranks[n - 1];
	channel->tree.up = rank ? (rank - 1) / 2 : -1;
	for (int i = 0; i < TREE_ARITY; i++)
		channel->tree.down[i] = -1;
	for (int i = 0; i < 2 && 2 * rank + 1 + i < n; i++)
		channel->tree.down[i] = 2 * rank + 1 + i;
}

void make_fake_ranks(struct fake_ranks *ranks, int count, int channels, uint64_t first_step,
		     uint64_t seed)
{
	memset(ranks, 0, sizeof(*ranks));
	ranks->count = count;
	ranks->channels = channels;
	ranks->random = seed * 2 + 1;
	for (int r = 0; r < count; r++) {
		ranks->comms[r] = aligned_alloc(64, (sizeof(**ranks->comms) + 63) / 64 * 64);
		ranks->blocks[r] = malloc((size_t)channels * sizeof(**ranks->blocks));
		CHECK(ranks->comms[r] && ranks->blocks[r]);
		memset(ranks->comms[r], 0, sizeof(**ranks->comms));
		ranks->comms[r]->comm.rank = r;
		ranks->comms[r]->comm.rank_count = count;
		ranks->comms[r]->comm.p2p_chunk_bytes =
			buffer_bytes[PROTOCOL_SIMPLE] / (int)FIFO_STEPS;
		ranks->comms[r]->comm.abort_flag = &ranks->abort_flag;
		memcpy(ranks->comms[r]->comm.buffer_bytes, buffer_bytes, sizeof(buffer_bytes));
		for (int c = 0; c < channels; c++)
			make_fake_channel(ranks, r, c);
	}
	for (int c = 0; c < channels; c++) {
		for (int pair = 0; pair < count * count; pair++) {
			for (int connection = 0; connection < CONNECTIONS_PER_PEER; connection++)
				connect_fake_ranks(ranks, c, pair / count, pair % count, connection,
						   first_step);
		}
	}
}

static void free_network_end(struct connection_info *info)
{
	free(info->head); /* with the tail */
	free(info->buffers[PROTOCOL_SIMPLE]);
	free(info->fifo);
}

static void free_fake_channel(struct fake_ranks *ranks, struct channel *channel)
{
	for (int i = 0; i < ranks->count; i++) {
		for (int connection = 0; connection < CONNECTIONS_PER_PEER; connection++) {
			struct connection_info *info = &channel->peers[i]->send[connection];

			for (int p = 0; p < PROTOCOL_COUNT; p++)
				free(info->buffers[p]);
			free(info->head); /* with the tail */
		}
		free(channel->peers[i]);
	}
	free_network_end(&channel->peers[ranks->count]->send[1]);
	free_network_end(&channel->peers[ranks->count]->recv[0]);
	free(channel->peers[ranks->count]);
	free(channel->peers);
	free(channel->ring.user_ranks);
}

void free_fake_ranks(struct fake_ranks *ranks)
{
	for (int r = 0; r < ranks->count; r++) {
		for (int c = 0; c < ranks->channels; c++)
			free_fake_channel(ranks, &ranks->comms[r]->channels[c]);
		free(ranks->comms[r]);
		free(ranks->blocks[r]);
	}
}

void set_fake_works(struct fake_ranks *ranks, int rank, enum work_type type, const void *works,
		    unsigned count, size_t bytes)
{
	struct fake_launch *launch = &ranks->launches[rank];

	CHECK(count * bytes <= sizeof(launch->works));
	memset(launch, 0, sizeof(*launch));
	launch->arguments.comm = &ranks->comms[rank]->comm;
	launch->arguments.channel_mask = (1ull << ranks->channels) - 1;
	launch->arguments.storage = STORAGE_ARGUMENTS;
	for (int c = 0; c < ranks->channels; c++) {
		launch->batches[c].work_type = type;
		launch->batches[c].offset_base = offsetof(struct fake_launch, works);
		launch->batches[c].offset_bits = ~0ull >> (64 - count);
	}
	memcpy(launch->works, works, count * bytes);
}

static bool advance_one_round(struct fake_ranks *ranks, bool *moved)
{
	int all = ranks->count * ranks->channels;
	int first = (int)(fake_random(ranks) % (unsigned)all);
	bool done = true;

	*moved = false;
	for (int i = 0; i < all; i++) {
		int which = (first + i * 7) % all;
		struct block *block =
			&ranks->blocks[which / ranks->channels][which % ranks->channels];

		if (all % 7 == 0)
			block = &ranks->blocks[i / ranks->channels][i % ranks->channels];
		if (block->state == BLOCK_DONE)
			continue;
		done = false;
		/* Some blocks run ahead of others. */
		for (uint64_t times = fake_random(ranks) % 4; times; times--)
			*moved |= advance_block(block) == PROGRESS_MOVED;
	}
	return !done;
}

static void check_connections(struct fake_ranks *ranks)
{
	int n = ranks->count;

	for (int i = 0; i < ranks->channels * n * n * CONNECTIONS_PER_PEER; i++) {
		int connection = i % CONNECTIONS_PER_PEER;
		int to = i / CONNECTIONS_PER_PEER % n;
		int from = i / CONNECTIONS_PER_PEER / n % n;
		int channel = i / CONNECTIONS_PER_PEER / n / n;
		struct connection_info *sender =
			&ranks->comms[from]->channels[channel].peers[to]->send[connection];
		struct connection_info *receiver =
			&ranks->comms[to]->channels[channel].peers[from]->recv[connection];

		CHECK_INT(sender->step, receiver->step);
		CHECK_INT(*receiver->head, receiver->step);
	}
}

void run_fake_ranks(struct fake_ranks *ranks)
{
	int quiet_rounds = 0;
	bool moved;

	use_fake_function(&ranks->function);
	for (int i = 0; i < ranks->count * ranks->channels; i++)
		start_block(&ranks->blocks[i / ranks->channels][i % ranks->channels],
			    &ranks->launches[i / ranks->channels].arguments,
			    (unsigned)(i % ranks->channels));
	while (advance_one_round(ranks, &moved)) {
		if (ranks->network)
			moved |= ranks->network(ranks, ranks->network_context);
		quiet_rounds = moved ? 0 : quiet_rounds + 1;
		/* each block was tried hundreds of times, and none moved */
		CHECK(quiet_rounds < 200);
	}
	check_connections(ranks);
}
