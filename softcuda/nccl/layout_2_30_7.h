/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * layout_2_30_7.h - the structures of NCCL 2.30.7 that are not the same in every known version.
 * Included by layout.h.
 */
#ifndef SOFTCUDA_NCCL_LAYOUT_2_30_7_H
#define SOFTCUDA_NCCL_LAYOUT_2_30_7_H

#define LAYOUT_OFFSETS "softcuda/nccl/offsets_2_30_7.h"
#define LAYOUT_VERSION "2.30.7"
#define LAYOUT_VERSION_CODE 23007 /* as ncclGetVersion gives it */
#define LAYOUT_FUNCTION_COUNT 673 /* distinct device functions, ncclDevFuncIdCount */
#define LAYOUT_TYPE_COUNT 12      /* with the two 8-bit floats */
#define LAYOUT_ALL_GATHER_ALGORITHMS 4
#define LAYOUT_REDUCE_SCATTER_ALGORITHMS 4
#define LAYOUT_HAS_BROADCASTS 1 /* AllGatherV: many broadcasts in one batch */
#define LAYOUT_HAS_PAT 1
#define LAYOUT_HAS_WORK_COUNTER 1
#define LAYOUT_HAS_WORK_CONSUMED 0
#define LAYOUT_P2P_PARTS_REVERSED 0 /* parts of a send are dealt to channels in order */

/* sums that are passed on may be written into user buffers of peers */
#define REDUCING_IS_DIRECT 1
#define P2P_LARGE_CHUNK NET_REGISTERED_CHUNK
/* argument of an average: divisor * 2 + signed */
#define AVERAGE_IS_PLAIN_DIVISOR 0
#define NETWORK_STEPS(bytes) ((void)(bytes), 1) /* of a CollNet that works on user buffers */
/* unless ranks of a host exchange data, then a step for each round */
#define NETWORK_STEPS_ARE_ROUNDS 1
#define BROADCAST_IS_DIRECT 1

#define CHANNELS_MAX 64
#define PROFILER_EVENTS 64

struct ring {
	int32_t previous;
	int32_t next;
	int32_t *user_ranks; /* in the order of the ring, from this rank on */
	int32_t *rank_to_index;
	int32_t index;
};

struct nvls {
	int32_t out;
	int32_t head_count;
	int32_t head_rank;
	int32_t up[NVLS_ARITY];
	int32_t down;
	int32_t tree_up;
	int32_t tree_down[TREE_ARITY];
};

struct channel {
	struct channel_peer **peers;
	struct ring ring;
	struct tree tree;
	struct tree collnet_chain;
	struct direct collnet_direct;
	struct nvls nvls;
	uint32_t *work_fifo_done;
	uint64_t work_counter;
} __attribute__((aligned(16)));

struct profiler_event {
	uint64_t counter;
	uint64_t timestamp; /* ns */
};

struct profiler_channel {
	struct profiler_event events[PROFILER_EVENTS];
};

struct kernel_comm {
	int32_t rank;
	int32_t rank_count;
	int32_t node;
	int32_t node_count;
	int32_t buffer_bytes[PROTOCOL_COUNT];
	int32_t p2p_chunk_bytes;
	bool is_cross_clique; /* NVLinks between hosts: never here */
	int32_t is_all_nvlink;
	int32_t *collnet_dense_to_rank;
	uint32_t *abort_flag;
	struct channel *channels;
	int32_t *rank_to_local_rank;
	struct profiler_channel *work_started;
	struct profiler_channel *work_completed;
};

struct kernel_comm_and_channels {
	struct kernel_comm comm;
	struct channel channels[CHANNELS_MAX] __attribute__((aligned(16)));
};

struct work_p2p {
	char *send_address, *recv_address;
	size_t send_bytes, recv_bytes;
	int32_t send_rank, recv_rank;
	uint8_t channels, channel_base, send_channels, recv_channels;
	uint8_t send_chunk, recv_chunk; /* bytes as a small float, see decode_size() */
	uint8_t send_ll : 1, recv_ll : 1;
	uint8_t send_net_registered : 1, recv_net_registered : 1;
	uint8_t send_ipc_registered : 1, recv_ipc_registered : 1;
	uint8_t profiled : 1;
} __attribute__((aligned(16)));

struct work_collective {
	uint32_t channel_low : 8, channel_high : 8, warps : 8;
	uint32_t argument_is_pointer : 1, registered : 1, net_registered : 1, one_node : 1;
	uint32_t direct : 2, one_rank_per_node : 1, profiled : 1;
	uint32_t root;
	uint32_t unused[4];
	char *recv_buffer;
	char *send_buffer;
	uint64_t unused_too;
	uintptr_t send_offset, recv_offset;
	uintptr_t *send_remote, *recv_remote;
	union {
		struct division division;
		struct division_collnet collnet;
	};
	uint64_t argument;
} __attribute__((aligned(16)));

struct work_registered {
	struct work_collective collective;
	void *down_inputs[DIRECT_ARITY + 1];
	void *down_outputs[DIRECT_ARITY + 1];
	void *up_outputs[DIRECT_ARITY + 1];
} __attribute__((aligned(16)));

struct work_broadcast {
	int32_t ring_depth; /* 0 at the root, counted along the ring */
	int32_t chunk_bytes;
	char *send_buffer;
	char *recv_buffer;
	size_t bytes;
	size_t bytes_done;
} __attribute__((aligned(16)));

/* Does the network move all data of a ring between user buffers? */
static inline bool network_moves_all(const struct work_collective *work)
{
	return work->one_rank_per_node && work->net_registered;
}

/* Are the chunks of a send, or a receive, limited by what the network takes only? */
static inline bool p2p_uses_large_chunks(const struct kernel_comm *comm,
					 const struct work_p2p *work, bool sends)
{
	bool by_ipc = sends ? work->send_ipc_registered : work->recv_ipc_registered;
	bool by_network = sends ? work->send_net_registered : work->recv_net_registered;

	return by_network || (by_ipc && comm->is_all_nvlink);
}

/* Does a CollNet work on user buffers? */
static inline bool network_uses_buffers(const struct work_collective *work)
{
	return work->net_registered;
}

#endif
