/* SPDX-License-Identifier: BSD-3-Clause */
/* soft.h - software NICs of a fabric as the host library's hardware; one process's share of them */
#ifndef HA_GPU_HOST_SOFT_H
#define HA_GPU_HOST_SOFT_H

#include "gpu/host/hw.h"
#include "gpu/soft/nic.h"

#include <pthread.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HA_GPU_SOFT_FREE_MAX 256

struct ha_gpu_soft {
	struct soft_fabric *fabric;
	unsigned first, n;       /* this process's NICs; the caller runs them, or ..._start() */
	unsigned ports_per_card; /* 1, or 2: NICs 0 and 1 are one card, 2 and 3 the next */
	uint64_t lock;
	struct { /* memory that was given back; the fabric never takes any */
		void *memory;
		size_t bytes;
	} free[HA_GPU_SOFT_FREE_MAX];
	unsigned nfree;
	pthread_t thread[SOFT_NICS_MAX]; /* of ha_gpu_soft_start() */
};

/*
 * This process's share: `n` NICs of the fabric from the first-th on, each run by a thread of its
 * own until the stop. 0, or a negative errno: no thread, with a line.
 */
int ha_gpu_soft_start(struct ha_gpu_soft *s, struct soft_fabric *fabric, unsigned first,
		      unsigned n);
/* After ha_gpu_host_finalize(). */
void ha_gpu_soft_stop(struct ha_gpu_soft *s);

/* The table's `hw` is a struct ha_gpu_soft. */
extern const struct ha_gpu_hw_ops ha_gpu_soft_ops;

#ifdef __cplusplus
}
#endif

#endif
