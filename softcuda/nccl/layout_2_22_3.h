/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * layout_2_22_3.h - the structures of NCCL 2.22.3 that are not the same in every known version.
 * Included by layout.h.
 */
#ifndef SOFTCUDA_NCCL_LAYOUT_2_22_3_H
#define SOFTCUDA_NCCL_LAYOUT_2_22_3_H

#define LAYOUT_OFFSETS "softcuda/nccl/offsets_2_22_3.h"
#define LAYOUT_VERSION "2.22.3"
#define LAYOUT_VERSION_CODE 22203 /* as ncclGetVersion gives it */
#define LAYOUT_FUNCTION_COUNT 555 /* distinct device functions, ncclDevFuncIdCount */
#define LAYOUT_TYPE_COUNT 10
#define LAYOUT_ALL_GATHER_ALGORITHMS 3
#define LAYOUT_REDUCE_SCATTER_ALGORITHMS 3
#define LAYOUT_HAS_BROADCASTS 0
#define LAYOUT_HAS_PAT 0
#define LAYOUT_HAS_WORK_COUNTER 0
/* works taken out of the fifo are acknowledged by the kernel */
#define LAYOUT_HAS_WORK_CONSUMED 1
/* parts of a send are dealt to channels in bit-reversed order */
#define LAYOUT_P2P_PARTS_REVERSED 1

#define REDUCING_IS_DIRECT 0 /* only results may be written into user buffers of peers */
#define P2P_LARGE_CHUNK (PTRDIFF_MAX / 2) /* one step whatever its size; the proxy divides it */
/* argument of an average: the divisor, the type says whether signed */
#define AVERAGE_IS_PLAIN_DIVISOR 1
/* of a CollNet that works on user buffers */
#define NETWORK_STEPS(bytes) (((bytes) + (1 << 29) - 1) / (1 << 29))
#define NETWORK_STEPS_ARE_ROUNDS 0
#define BROADCAST_IS_DIRECT 0

#define CHANNELS_MAX 32

/*
 * connection_info.flags of this version only: as DIRECT_WRITE and DIRECT_READ, between processes.
 */
#define CONNECTION_IPC_WRITE 0x08
#define CONNECTION_IPC_READ 0x10

struct ring {
	int32_t previous;
	int32_t next;
	int32_t *user_ranks; /* in the order of the ring, from this rank on */
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
	int32_t node;
	int32_t node_count;
};

struct channel {
	struct channel_peer **peers;
	struct ring ring;
	struct tree tree;
	struct tree collnet_chain;
	struct direct collnet_direct;
	struct nvls nvls;
	uint32_t *work_fifo_done;
} __attribute__((aligned(16)));

struct kernel_comm {
	int32_t rank;
	int32_t rank_count;
	int32_t node;
	int32_t node_count;
	int32_t buffer_bytes[PROTOCOL_COUNT];
	int32_t p2p_chunk_bytes;
	/* [channel]: offset behind the last work that was taken out of the fifo */
	uint32_t *work_consumed;
	int32_t *collnet_dense_to_rank;
	uint32_t *abort_flag;
	struct channel *channels;
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
} __attribute__((aligned(16)));

/* work_collective.registered */
enum registered { REGISTERED_NOT, REGISTERED_IPC, REGISTERED_NVLS, REGISTERED_COLLNET };

struct work_collective {
	uint32_t channel_low : 8, channel_high : 8, warps : 8;
	uint32_t argument_is_pointer : 1, registered : 2, one_node : 1, direct : 4;
	uint32_t root;
	char *recv_buffer;
	char *send_buffer;
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

/* Does the network move all data of a ring between user buffers? */
static inline bool network_moves_all(const struct work_collective *work)
{
	(void)work;
	return false;
}

/* Are the chunks of a send, or a receive, limited by what the network takes only? */
static inline bool p2p_uses_large_chunks(const struct kernel_comm *comm,
					 const struct work_p2p *work, bool sends)
{
	(void)comm;
	return sends ? work->send_net_registered : work->recv_net_registered;
}

/* This version has no batches of broadcasts. */
struct work_broadcast;

/* Does a CollNet work on user buffers? */
static inline bool network_uses_buffers(const struct work_collective *work)
{
	return work->registered == REGISTERED_COLLNET;
}

#endif
