/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * env_host.h - env.h for the host compiler: C11 atomics; between threads no fences of their own
 * (sanitizers do not see those)
 *
 * A GPU thread is whatever runs the code. Without more it is a thread with the system's clock and a
 * warp of one lane. emu.h gives it a warp (threads that meet at a barrier) and, in HA_GPU_SIM
 * builds, a random scheduler that may switch at every access below and a clock of its own. Host
 * agents and the software NIC use the same calls.
 */
#ifndef HA_GPU_ENV_HOST_H
#define HA_GPU_ENV_HOST_H

#include <stdbool.h>

#include "gpu/emu/emu.h"

#define HA_GPU_FN static inline
#define HA_GPU_SLOW static __attribute__((noinline, cold, unused))

#ifdef HA_GPU_SIM
#define HA_GPU_STEP() ha_gpu_emu_step()
#else
#define HA_GPU_STEP() ((void)0)
#endif

/*
 * Barriers that a NIC takes part in, beside the atomics, which order for threads. AArch64: it
 * observes memory from the outer shareable domain, and a store to a register may stay in the
 * processor. x86: a register may be mapped write-combining (BlueFlame's); memory keeps its order.
 */
#if defined(__aarch64__)
#define HA_GPU_BEFORE_RECORD() __asm__ volatile("dmb oshst" ::: "memory")
#define HA_GPU_BEFORE_REGISTER() __asm__ volatile("dmb oshst" ::: "memory")
#define HA_GPU_AFTER_REGISTER() __asm__ volatile("dsb st" ::: "memory")
#elif defined(__x86_64__)
#define HA_GPU_BEFORE_RECORD() ((void)0)
#define HA_GPU_BEFORE_REGISTER() __asm__ volatile("sfence" ::: "memory")
#define HA_GPU_AFTER_REGISTER() __asm__ volatile("sfence" ::: "memory")
#else
#define HA_GPU_BEFORE_RECORD() __sync_synchronize()
#define HA_GPU_BEFORE_REGISTER() __sync_synchronize()
#define HA_GPU_AFTER_REGISTER() __sync_synchronize()
#endif

HA_GPU_FN uint64_t ha_gpu_load(const uint64_t *p)
{
	HA_GPU_STEP();
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

HA_GPU_FN uint64_t ha_gpu_load_own(const uint64_t *p)
{
	HA_GPU_STEP();
	return *p;
}

HA_GPU_FN uint64_t ha_gpu_load_sc(const uint64_t *p)
{
	HA_GPU_STEP();
	return __atomic_load_n(p, __ATOMIC_SEQ_CST);
}

HA_GPU_FN void ha_gpu_store(uint64_t *p, uint64_t v)
{
	HA_GPU_STEP();
	__atomic_store_n(p, v, __ATOMIC_RELEASE);
}

HA_GPU_FN void ha_gpu_store_sc(uint64_t *p, uint64_t v)
{
	HA_GPU_STEP();
	__atomic_store_n(p, v, __ATOMIC_SEQ_CST);
}

HA_GPU_FN void ha_gpu_store32(uint32_t *p, uint32_t v)
{
	HA_GPU_STEP();
	HA_GPU_BEFORE_RECORD();
	__atomic_store_n(p, v, __ATOMIC_RELEASE);
}

HA_GPU_FN bool ha_gpu_cas(uint64_t *p, uint64_t *old, uint64_t v)
{
	HA_GPU_STEP();
	return __atomic_compare_exchange_n(p, old, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

HA_GPU_FN uint64_t ha_gpu_or(uint64_t *p, uint64_t v)
{
	HA_GPU_STEP();
	return __atomic_fetch_or(p, v, __ATOMIC_SEQ_CST);
}

HA_GPU_FN uint64_t ha_gpu_add(uint64_t *p, uint64_t v)
{
	HA_GPU_STEP();
	return __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST);
}

/* A plain store: a sequentially consistent one is a locked exchange on x86, which reads the
 * register of the NIC, too, and takes the bus lock for it. */
HA_GPU_FN void ha_gpu_mmio(uint64_t *p, uint64_t v)
{
	HA_GPU_STEP();
	HA_GPU_BEFORE_REGISTER();
	__atomic_store_n(p, v, __ATOMIC_RELEASE);
	HA_GPU_AFTER_REGISTER();
}

HA_GPU_FN void ha_gpu_store_block(void *p, const uint64_t w[8])
{
	/* word by word out of registers: wide copies wait for the narrow stores before them */
	volatile uint64_t *to = (volatile uint64_t *)p;

	HA_GPU_STEP();
	to[0] = w[0];
	to[1] = w[1];
	to[2] = w[2];
	to[3] = w[3];
	to[4] = w[4];
	to[5] = w[5];
	to[6] = w[6];
	to[7] = w[7];
}

HA_GPU_FN uint32_t ha_gpu_be32(uint32_t v)
{
	return __builtin_bswap32(v);
}

HA_GPU_FN uint64_t ha_gpu_be64(uint64_t v)
{
	return __builtin_bswap64(v);
}

#endif
