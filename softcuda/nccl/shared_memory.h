/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shared_memory.h - loads and stores of what a kernel shares with proxy threads, NICs and kernels
 * of other ranks
 *
 * A counter (head, tail) or a flag that says "data is there" or "the slot is free" is stored with
 * release after the data was written or read, and loaded with acquire before it is read or
 * overwritten. The other side of a pair is another kernel of ours, NCCL's proxy thread (volatile
 * accesses and full fences), or a NIC that writes in ascending order.
 */
#ifndef SOFTCUDA_NCCL_SHARED_MEMORY_H
#define SOFTCUDA_NCCL_SHARED_MEMORY_H

#include <stdatomic.h>
#include <stdint.h>

static inline uint64_t load_acquire(const void *address)
{
	return atomic_load_explicit((const _Atomic uint64_t *)address, memory_order_acquire);
}

static inline void store_release(void *address, uint64_t value)
{
	atomic_store_explicit((_Atomic uint64_t *)address, value, memory_order_release);
}

/* For a word that carries its own flag, or that is published by a later store_release. */
static inline uint64_t load_relaxed(const void *address)
{
	return atomic_load_explicit((const _Atomic uint64_t *)address, memory_order_relaxed);
}

static inline void store_relaxed(void *address, uint64_t value)
{
	atomic_store_explicit((_Atomic uint64_t *)address, value, memory_order_relaxed);
}

static inline uint32_t load_relaxed_32(const void *address)
{
	return atomic_load_explicit((const _Atomic uint32_t *)address, memory_order_relaxed);
}

static inline void store_release_32(void *address, uint32_t value)
{
	atomic_store_explicit((_Atomic uint32_t *)address, value, memory_order_release);
}

#endif
