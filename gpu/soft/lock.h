/* SPDX-License-Identifier: BSD-3-Clause */
/* lock.h - a lock that lies in shared memory and lets the scheduler go on */
#ifndef HA_GPU_SOFT_LOCK_H
#define HA_GPU_SOFT_LOCK_H

#include "gpu/device/env.h"

static inline void soft_lock(uint64_t *lock)
{
	uint64_t open = 0;

	for (; !ha_gpu_cas(lock, &open, 1); open = 0)
		ha_gpu_pause();
}

static inline void soft_unlock(uint64_t *lock)
{
	ha_gpu_store(lock, 0);
}

#endif
