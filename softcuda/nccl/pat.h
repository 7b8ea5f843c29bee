/* SPDX-License-Identifier: BSD-3-Clause */
/* pat.h - PAT: all-gather and reduce-scatter on binomial trees, for one rank on each host */
#ifndef SOFTCUDA_NCCL_PAT_H
#define SOFTCUDA_NCCL_PAT_H

#include "softcuda/nccl/endpoint.h"
#include "softcuda/nccl/pat_schedule.h"

#define PAT_DIMENSIONS 32

/* A lane's, from the start of a work to its end. Positions are counted in elements. */
struct pat {
	struct pat_schedule schedule;
	struct pat_step step;
	struct endpoint recv[PAT_DIMENSIONS];
	struct endpoint send[PAT_DIMENSIONS];
	/*
	 * How far slots were filled, or read; what lies before that holds, or was, data of this
	 * work.
	 */
	ptrdiff_t filled[PAT_DIMENSIONS];
	ptrdiff_t read[PAT_DIMENSIONS];
	ptrdiff_t user_done; /* how far the user's output holds data of this work */
};

#endif
