/* SPDX-License-Identifier: BSD-3-Clause */
/* A GPU thread is a pthread. */
#include "gpu/emu/emu.h"

#include <sched.h>
#include <time.h>

void ha_gpu_pause(void)
{
	sched_yield();
}

uint64_t ha_gpu_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void ha_gpu_emu_step(void)
{
}
