/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fake_ranks.h - ranks without NCCL: the structures that its host side fills in, with every two
 * ranks connected
 *
 * All channels of all ranks are advanced by one thread, in an order that a seed decides, so that a
 * failure can be repeated. Where nothing moves in a whole round, and not everything is done, it is
 * a deadlock.
 */
#ifndef SOFTCUDA_TESTS_FAKE_RANKS_H
#define SOFTCUDA_TESTS_FAKE_RANKS_H

#include "softcuda/nccl/block.h"

#define FAKE_RANKS_MAX 8
#define FAKE_CHANNELS_MAX 4
#define FAKE_WORKS_MAX 32

/* What a rank launches: one batch for each channel, all with the same works. */
struct fake_launch {
	struct kernel_arguments arguments;
	struct work_batch batches[FAKE_CHANNELS_MAX];
	char works[FAKE_WORKS_MAX * 96] __attribute__((aligned(16)));
};

struct fake_ranks {
	int count;
	/* Called in each round, for what stands for a network; true: something moved. NULL: there
	 * is none. */
	bool (*network)(struct fake_ranks *ranks, void *context);
	void *network_context;
	int channels;
	uint64_t random;
	uint32_t abort_flag;
	struct device_function function; /* of all batches */
	struct kernel_comm_and_channels *comms[FAKE_RANKS_MAX];
	struct fake_launch launches[FAKE_RANKS_MAX];
	struct block *blocks[FAKE_RANKS_MAX];
};

/* first_step: the position at which all connections start. */
void make_fake_ranks(struct fake_ranks *ranks, int count, int channels, uint64_t first_step,
		     uint64_t seed);
/* Give a rank a connection to the network, to peer number `count`, in both directions. Freed with
 * the ranks. */
void connect_fake_network(struct fake_ranks *ranks, int channel, int rank);
void free_fake_ranks(struct fake_ranks *ranks);

/* `works` of `bytes` each, the same for all channels of the rank. */
void set_fake_works(struct fake_ranks *ranks, int rank, enum work_type type, const void *works,
		    unsigned count, size_t bytes);

/* The function that all batches ask for from now on. */
void use_fake_function(const struct device_function *function);

/* Run what all ranks were given, and check that every connection's ends agree afterwards. */
void run_fake_ranks(struct fake_ranks *ranks);

uint64_t fake_random(struct fake_ranks *ranks);

#endif
