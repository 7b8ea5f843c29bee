/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernel.h - what a kernel does with NCCL's GIN where a proxy thread serves it: a CPU thread writes
 * the same queue entries
 *
 * Sizes, bits and order of the entries are facts of NCCL 2.29.7's device interface (its
 * gin_proxy_device_host_common.h); softcuda's memory is the host's, so pointers for the device are
 * ours.
 */
#ifndef HA_TESTS_GIN_KERNEL_H
#define HA_TESTS_GIN_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "softcuda/nccl/gin_layout.h"
#include "tools/nccl/abi.h"

/* ncclDevCommRequirements of 2.29.7. */
struct gin_requirements {
	size_t size;
	uint32_t magic, version;
	void *resources, *teams;
	bool multimem;
	int barriers, lsa_barriers, rail_barriers;
	int blocks, slots;
	bool force;
	int contexts, signals, counters;
	int connection_type; /* 1: every rank to every other */
	bool exclusive;
	int queue_depth;
};

/* ncclWindow_vidmem: what a window is to a kernel. */
struct gin_window {
	void *host;
	char *base;
	int lsa_rank, world_rank;
	uint32_t stride, multicast, offset_pages; /* offset: of the user's memory within */
	void *handle[GIN_CONNECTIONS_MAX];
};

/* One rank's view: its queues to all ranks, for each context. */
struct gin_kernel {
	struct gin_device_comm comm;
	const struct gin_window *window;
	char *memory; /* the window's, here */
};

/* One operation; all offsets in the window. */
struct gin_operation {
	int context, peer;
	uint64_t source, target;
	size_t size;
	uint64_t value; /* is_inline: written instead of the source's, 8 bytes at most */
	bool is_inline;
	uint8_t signal_op; /* GIN_SIGNAL_*, or 0 */
	uint32_t signal;   /* index of ours */
	uint64_t add;
	bool in_window; /* the signal is at byte `signal_offset` of the window, and goes alone */
	uint64_t signal_offset; /* a multiple of 8 */
	int counter;            /* index of ours, or -1 */
};
#define GIN_SIGNAL_INC 8
#define GIN_SIGNAL_ADD 16

/* False: the queue is full. */
bool gin_enqueue(struct gin_kernel *kernel, const struct gin_operation *operation);
/* Everything for this peer and context is complete here: its sources may be overwritten. */
bool gin_is_flushed(const struct gin_kernel *kernel, int context, int peer);
uint64_t gin_signal(const struct gin_kernel *kernel, int context, uint32_t signal);
uint64_t gin_counter(const struct gin_kernel *kernel, int context, uint32_t counter);

#endif
