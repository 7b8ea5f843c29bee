/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rank.h - a rank on the host: its NICs, connections, memory, and kernels whose GPU threads are
 * pthreads
 *
 * What a rank on a GPU would do otherwise: memory by the table of its hardware,
 * cudaLaunchCooperativeKernel for launch_kernel() in rank.c.
 */
#ifndef HA_GPU_EXAMPLE_RANK_H
#define HA_GPU_EXAMPLE_RANK_H

#include "gpu/example/nics.h"
#include "gpu/example/values.h"
#include "gpu/host/host.h"
#include "gpu/host/soft.h"

#define HA_MOE_NICS 2 /* of a rank */
#define HA_MOE_RANKS_MAX (SOFT_NICS_MAX / HA_MOE_NICS)
#define HA_MOE_CONNS_MAX 64
#define HA_MOE_SLOTS_MAX 64 /* warps x lanes */

struct ha_moe_rank_config {
	struct soft_fabric *fabric; /* rank r has NICs 2r and 2r + 1 */
	const char *root;           /* rank 0 listens there */
	int rank;
	struct ha_moe_values values;
	struct ha_gpu_settings settings;
	unsigned warps, lanes;
};

typedef void (*ha_moe_kernel)(struct ha_moe *m, const struct ha_moe_call *call, uint32_t warp,
			      uint32_t warps);

struct ha_moe_rank {
	struct ha_moe_rank_config config;
	struct ha_moe_nic nic[HA_MOE_NICS];
	unsigned running; /* NICs */
	struct ha_gpu_bootstrap bootstrap;
	struct ha_gpu_soft soft;
	struct ha_gpu_host *host;
	struct ha_moe *moe;
	struct ha_moe_call call;
	/*
	 * For the NIC that was cut: its connections' epochs and cons, as of then and of the switch.
	 */
	struct {
		uint64_t epoch, first;
		bool switched;
	} seen[HA_MOE_NICS][HA_MOE_CONNS_MAX];
};

/* What a fabric for all ranks needs. */
size_t ha_moe_fabric_bytes(const struct ha_moe_rank_config *c);

/* Collective. 0, or a negative errno with a line. */
int ha_moe_rank_open(const struct ha_moe_rank_config *c, struct ha_moe_rank **rank);
/* Collective. As ha_gpu_host_finalize(). */
int ha_moe_rank_close(struct ha_moe_rank *r, unsigned limit_ms);

/* Input of launch n, into r->call. */
void ha_moe_rank_input(struct ha_moe_rank *r, uint64_t n);
/* Runs a kernel to its end; counts it when it is done. */
enum ha_gpu_result ha_moe_rank_dispatch(struct ha_moe_rank *r, uint32_t phases, uint64_t limit_ns);
enum ha_gpu_result ha_moe_rank_combine(struct ha_moe_rank *r, uint32_t phases, uint64_t limit_ns);
void ha_moe_rank_experts(struct ha_moe_rank *r);

/* True: within limit_ms all connections are on their first path, and the second is good. */
bool ha_moe_rank_failed_back(struct ha_moe_rank *r, unsigned limit_ms);

#endif
