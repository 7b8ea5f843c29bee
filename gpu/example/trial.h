/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trial.h - launch after launch on a rank, with cuts in the middle; everything that comes is looked
 * at
 *
 * All ranks draw the same cuts from the seed; whose NIC it is orders it of itself. A cut strikes at
 * an entry of the kernel's, mends after down_ms, and the rank waits until its connections have
 * failed back before it goes on.
 */
#ifndef HA_GPU_EXAMPLE_TRIAL_H
#define HA_GPU_EXAMPLE_TRIAL_H

#include "gpu/example/rank.h"

enum { HA_MOE_CUT_DISPATCH = 1, HA_MOE_CUT_COMBINE = 2 };

struct ha_moe_plan {
	uint64_t launches;
	unsigned cut_in;  /* HA_MOE_CUT_*: kernels that are cut; 0: none */
	unsigned every;   /* launches between two cuts, from 1 */
	int kind;         /* of ha_moe_cut_kinds; -1: one after the other */
	unsigned down_ms; /* 0: for good */
	/* 1 + the launch in whose dispatch both NICs of rank 1 die for good; 0: none */
	uint64_t down_at;
	bool failback;     /* wait for it after a cut */
	uint64_t limit_ns; /* of a kernel */
};

/* Of one rank. Shared between processes. */
struct ha_moe_tally {
	/* tokens dispatched by it, to how many experts altogether */
	uint64_t launches, tokens, rows;
	uint64_t wrong; /* tokens at experts, sums, bytes that landed late */
	uint64_t cuts, resumed, resumed_sum_ns, resumed_max_ns;
	uint64_t switches, replayed, not_failed_back;
	uint64_t slowest_ns; /* launch */
	uint64_t result;     /* enum ha_gpu_result of what was not done, else DONE */
	uint64_t ended_by;   /* the launch */
	uint64_t finished;   /* 1: it came to its end */
};

/* Collective. 0, or a negative errno from set-up or the end. */
int ha_moe_run_trial(const struct ha_moe_rank_config *c, const struct ha_moe_plan *plan,
		     struct ha_moe_tally *tally);

#endif
