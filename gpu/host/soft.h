/* SPDX-License-Identifier: BSD-3-Clause */
/* soft.h - software NICs of a fabric as the host library's hardware; one process's share of them */
#ifndef HA_GPU_HOST_SOFT_H
#define HA_GPU_HOST_SOFT_H

#include "gpu/host/hw.h"
#include "gpu/soft/nic.h"

#define HA_GPU_SOFT_FREE_MAX 256

struct ha_gpu_soft {
	struct soft_fabric *fabric;
	unsigned first, n;       /* this process's NICs; the caller runs them */
	unsigned ports_per_card; /* 1, or 2: NICs 0 and 1 are one card, 2 and 3 the next */
	uint64_t lock;
	struct { /* memory that was given back; the fabric never takes any */
		void *memory;
		size_t bytes;
	} free[HA_GPU_SOFT_FREE_MAX];
	unsigned nfree;
};

/* The table's `hw` is a struct ha_gpu_soft. */
extern const struct ha_gpu_hw_ops ha_gpu_soft_ops;

#endif
