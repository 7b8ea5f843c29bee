/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * layout.h - what NCCL's host side and its kernels share in memory
 *
 * These structures are private to each NCCL release. Every C file of this folder is compiled once
 * for each known version, with NCCL_LAYOUT naming that version's header; what all known versions
 * have in common stands here. The offsets are asserted in layout_check.c and compared with NCCL's
 * own headers by scripts/compare-nccl-layout.
 */
#ifndef SOFTCUDA_NCCL_LAYOUT_H
#define SOFTCUDA_NCCL_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum protocol { PROTOCOL_LL, PROTOCOL_LL128, PROTOCOL_SIMPLE, PROTOCOL_COUNT };

#define FIFO_STEPS 8u /* slots of a connection's buffer */
/* in each direction: 0 for collectives, 1 for send and receive */
#define CONNECTIONS_PER_PEER 2
#define TREE_ARITY 3   /* children of a node of a tree */
#define DIRECT_ARITY 7 /* peers of a CollNet head inside its host */
#define NVLS_ARITY 32
#define LL128_LINE_BYTES 128u /* of which the last 8 are the flag */
#define LL128_DATA_BYTES 120u
#define LL128_GROUP_LINES 16u /* lines are written and announced in groups */
/* bytes in one step of a buffer that the network reads itself */
#define NET_REGISTERED_CHUNK (1024 * 1024 * 1024L)
#define P2P_PART_ALIGNMENT 4096u

/* connection_info.flags. In all known versions these three have these values. */
#define CONNECTION_DIRECT_WRITE 0x01
#define CONNECTION_DIRECT_READ 0x02
#define CONNECTION_DIRECT_NIC 0x04

/* fifo_slot.mode: where the data of a step lies. */
#define FIFO_MODE_BUFFER 0 /* in the connection's own buffer, at the step's slot */
#define FIFO_MODE_OFFSET 1 /* at `offset` of a buffer that connections share */

/* One step, between a kernel and the proxy thread of its own rank. */
struct fifo_slot {
	int32_t mode;
	int32_t offset;
	int64_t size; /* bytes of the step; the proxy sets -1 once it has taken the step over */
	void *pointer;
};

struct net_device_handle {
	int32_t type;
	int32_t version;
	void *handle;
	size_t size;
	int32_t needs_progress;
};

/*
 * One end of a connection. The receiver owns its buffers, tail and fifo; the sender sees them
 * mapped, or a proxy's.
 */
struct connection_info {
	char *buffers[PROTOCOL_COUNT];
	void *memory_handles[PROTOCOL_COUNT];
	uint64_t *tail; /* steps written */
	uint64_t *head; /* steps read */
	int32_t flags;
	int32_t shared;
	int32_t step_bytes; /* of a slot in the Simple protocol */
	void **pointer_exchange;
	uint64_t *argument_exchange;
	struct fifo_slot *fifo; /* NULL: the peer's kernel is at the other end, no proxy */
	uint64_t step;
	uint64_t last_cleaning;
	struct net_device_handle net_device;
};

struct channel_peer {
	struct connection_info send[CONNECTIONS_PER_PEER];
	struct connection_info recv[CONNECTIONS_PER_PEER];
};

struct tree {
	int32_t depth;
	int32_t up;
	int32_t down[TREE_ARITY];
};

/*
 * CollNet within a host: each of the `heads` has a NIC; ranks exchange with all heads ("up"), heads
 * with all ranks.
 */
struct direct {
	int32_t depth;
	int32_t out; /* the peer that stands for the network, -1 on a rank that is no head */
	int32_t head_count;
	int32_t head_rank;
	int32_t shift;
	int32_t heads[DIRECT_ARITY + 1];
	int32_t up[DIRECT_ARITY];
	int32_t down[DIRECT_ARITY];
};

/* How the elements of a collective are divided over channels low..high, and into chunks. */
struct division {
	uint64_t count_low, count_middle, count_high;
	uint64_t grains_low : 21, grains_middle : 21, grains_high : 21;
};

struct division_collnet {
	uint64_t count;
	uint32_t chunk_count;
};

enum work_type { WORK_P2P, WORK_COLLECTIVE, WORK_COLLECTIVE_REGISTERED, WORK_BROADCASTS };

/* Works of one channel that run together or one after the other by the same function. */
struct work_batch {
	uint32_t next_jump : 14, next_extends : 1, work_type : 2, function : 15;
	uint32_t offset_base;
	uint64_t offset_bits; /* bit i: a work lies at offset_base + i * its size */
};

enum work_storage { STORAGE_ARGUMENTS, STORAGE_FIFO, STORAGE_PERSISTENT };

/* What a launch carries; the batches follow, the first ones in the order of the channels. */
struct kernel_arguments {
	struct kernel_comm *comm;
	uint64_t channel_mask;
	uint8_t storage;
	uint32_t work_mask;
	char *work_buffer;
};

#include NCCL_LAYOUT

#endif
