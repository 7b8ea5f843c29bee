/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pair.h - two ends with two software NICs each, connected: what the tests and hunts of gpu/ run on
 *
 *   end 0: NIC 0 ──── path 0 ──── NIC 2 :end 1
 *          NIC 1 ──── path 1 ──── NIC 3
 *
 * The queue pairs of path 1 have other numbers than those of path 0, whose numbers belong to
 * foreign queue pairs on the NICs of path 1; keys differ, and tables are not of one size.
 */
#ifndef HA_TESTS_GPU_PAIR_H
#define HA_TESTS_GPU_PAIR_H

#include "gpu/failover/agent.h"
#include "gpu/failover/soft_path.h"

#define PAIR_MESSAGES 64

struct pair_config {
	uint32_t nwqes, proof_every, cq_log, proxied;
	bool dc;             /* initiators and targets instead of connected queue pairs */
	uint32_t chunk;      /* log2 bytes */
	uint32_t heap_bytes; /* of each end */
	/*
	 * what is written to the heaps comes so late, in its order (gpu/soft/posted.h), and the
	 * connections know that they are apart; 0: at once
	 */
	uint64_t late_ns;
	struct ha_gpu_agent_config agent;
};

struct pair_queue {
	uint64_t lock, head, tail, closed;
	struct ha_gpu_message message[PAIR_MESSAGES];
};

struct pair_channel {
	struct pair_queue *out, *in;
};

struct pair_end {
	struct ha_gpu_conn *conn;
	struct ha_gpu_agent agent;
	struct soft_path path[HA_GPU_PATHS];
	struct soft_nic *nic[HA_GPU_PATHS];
	struct pair_channel channel;
	uint8_t *heap;
	uint64_t stop; /* 1: pair_agent_run() returns */
};

struct pair {
	struct soft_fabric *fabric;
	struct pair_end end[2];
	struct pair_queue *queue[2];
};

void pair_defaults(struct pair_config *c);
/* `fabric` of at least 4 NICs, clear. Ends the program when there is no room. */
void pair_make(struct pair *p, struct soft_fabric *fabric, const struct pair_config *c);
void pair_free(struct pair *p);

/* Bodies of threads or fibers. */
void *pair_agent_run(void *end);
static inline uint64_t pair_remote(const struct pair *p, unsigned end, uint64_t offset)
{
	return (uint64_t)(uintptr_t)p->end[!end].heap + offset;
}

#endif
