/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * env.h - all that differs between a GPU thread under nvcc and one that the host compiler makes of
 * a pthread or a fiber
 *
 * The device library is one source in the common part of C11 and C++; every access to a word that
 * somebody else may write goes through the calls named here, so that a sanitizer, a random
 * scheduler (HA_GPU_SIM) and a reader see the same few places:
 *
 *   ha_gpu_load(p)          64 bit, acquire, system scope
 *   ha_gpu_load_sc(p)       the same, and not before an earlier ha_gpu_store_sc()
 *   ha_gpu_load_own(p)      64 bit, plain: a word that nobody else writes while the caller holds
 *                           what lets it read it
 *   ha_gpu_store(p, v)      64 bit, release, system scope
 *   ha_gpu_store_sc(p, v)   the same, and visible before any later access of this thread
 *   ha_gpu_store32(p, v)    32 bit, release, system scope: a doorbell record, which a NIC reads
 *   ha_gpu_cas(p, &old, v)  64 bit, acquire and release; false: old is what was found
 *   ha_gpu_or(p, v), ha_gpu_add(p, v)   64 bit, acquire and release; return what was there before
 *   ha_gpu_mmio(p, v)       64 bit to a doorbell register, after everything this thread wrote or
 *                           has seen
 *   ha_gpu_pause()          what a thread does that waits
 *   ha_gpu_now()            nanoseconds of one clock of the device
 *   ha_gpu_store_block(p, w)   64 bytes to a queue entry, plain
 *   ha_gpu_be32(v), ha_gpu_be64(v)   to and from the byte order of queue entries
 *   ha_gpu_lane(), ha_gpu_lanes(), ha_gpu_syncwarp(), ha_gpu_shfl(v, lane), ha_gpu_ballot(p)
 *                           the calling thread's warp, of which all lanes take part; ballot gives
 *                           one bit per lane. What one lane has seen of memory the others see after
 *                           syncwarp, not after shfl or ballot
 *
 * HA_GPU_FN starts every function; HA_GPU_SLOW one that is entered to wait or to report: the host
 * compiler keeps it out of its callers. Addresses are the same 64 bits for the device, the host and
 * the NIC, but for doorbell registers (ha_gpu_doorbell_register() in conn.h).
 */
#ifndef HA_GPU_ENV_H
#define HA_GPU_ENV_H

#include <stdint.h>

#ifdef __CUDACC__
#include "gpu/device/env_cuda.h"
#else
#include "gpu/emu/env_host.h"
#endif

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "queue entries are put together for little-endian machines"
#endif

#define HA_GPU_RARE(x) __builtin_expect(!!(x), 0)

#endif
