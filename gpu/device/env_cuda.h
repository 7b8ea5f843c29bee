/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * env_cuda.h - env.h for nvcc, sm_80 and later: PTX of system scope, for the NIC and the host are
 * partners of every word
 */
#ifndef HA_GPU_ENV_CUDA_H
#define HA_GPU_ENV_CUDA_H

#define HA_GPU_FN static __device__ __forceinline__
#define HA_GPU_SLOW HA_GPU_FN

HA_GPU_FN uint64_t ha_gpu_load(const uint64_t *p)
{
	unsigned long long v;

	asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
	return v;
}

HA_GPU_FN uint64_t ha_gpu_load_own(const uint64_t *p)
{
	return *p;
}

HA_GPU_FN uint64_t ha_gpu_load_sc(const uint64_t *p)
{
	return ha_gpu_load(p); /* the fence is behind the store that it pairs with */
}

HA_GPU_FN void ha_gpu_store(uint64_t *p, uint64_t v)
{
	asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(p), "l"((unsigned long long)v)
		     : "memory");
}

HA_GPU_FN void ha_gpu_store_sc(uint64_t *p, uint64_t v)
{
	ha_gpu_store(p, v);
	asm volatile("fence.sc.sys;" ::: "memory");
}

HA_GPU_FN void ha_gpu_store32(uint32_t *p, uint32_t v)
{
	asm volatile("st.release.sys.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

HA_GPU_FN bool ha_gpu_cas(uint64_t *p, uint64_t *old, uint64_t v)
{
	unsigned long long found, want = *old;

	asm volatile("atom.acq_rel.sys.cas.b64 %0, [%1], %2, %3;"
		     : "=l"(found)
		     : "l"(p), "l"(want), "l"((unsigned long long)v)
		     : "memory");
	*old = found;
	return found == want;
}

HA_GPU_FN uint64_t ha_gpu_or(uint64_t *p, uint64_t v)
{
	unsigned long long found;

	asm volatile("atom.acq_rel.sys.or.b64 %0, [%1], %2;"
		     : "=l"(found)
		     : "l"(p), "l"((unsigned long long)v)
		     : "memory");
	return found;
}

HA_GPU_FN uint64_t ha_gpu_add(uint64_t *p, uint64_t v)
{
	unsigned long long found;

	asm volatile("atom.acq_rel.sys.add.u64 %0, [%1], %2;"
		     : "=l"(found)
		     : "l"(p), "l"((unsigned long long)v)
		     : "memory");
	return found;
}

/*
 * A store to a device's register is always performed and never combined with others: PTX 8.2, which
 * came with CUDA 12.2. Before, a relaxed store is the nearest.
 */
#if defined(__CUDACC_VER_MAJOR__) && \
	(__CUDACC_VER_MAJOR__ > 12 || (__CUDACC_VER_MAJOR__ == 12 && __CUDACC_VER_MINOR__ >= 2))
#define HA_GPU_PTX_ST_REGISTER "st.mmio.relaxed.sys.global.u64"
#else
#define HA_GPU_PTX_ST_REGISTER "st.relaxed.sys.global.u64"
#endif

/*
 * The fence orders the doorbell record and the entries before the register, which may lie behind
 * another bridge than memory.
 */
HA_GPU_FN void ha_gpu_mmio(uint64_t *p, uint64_t v)
{
	asm volatile("fence.sc.sys;\n\t" HA_GPU_PTX_ST_REGISTER
		     " [%0], %1;" ::"l"(__cvta_generic_to_global(p)),
		     "l"((unsigned long long)v)
		     : "memory");
}

HA_GPU_FN void ha_gpu_pause(void)
{
	__nanosleep(32);
}

HA_GPU_FN uint64_t ha_gpu_now(void)
{
	unsigned long long ns;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
	return ns;
}

HA_GPU_FN void ha_gpu_store_block(void *p, const uint64_t w[8])
{
	ulonglong2 *to = (ulonglong2 *)p;

	for (int i = 0; i < 4; i++)
		to[i] = make_ulonglong2(w[2 * i], w[2 * i + 1]);
}

HA_GPU_FN uint32_t ha_gpu_be32(uint32_t v)
{
	return __byte_perm(v, 0, 0x0123);
}

HA_GPU_FN uint64_t ha_gpu_be64(uint64_t v)
{
	return (uint64_t)ha_gpu_be32((uint32_t)v) << 32 | ha_gpu_be32((uint32_t)(v >> 32));
}

HA_GPU_FN unsigned ha_gpu_lane(void)
{
	unsigned lane;

	asm("mov.u32 %0, %%laneid;" : "=r"(lane));
	return lane;
}

HA_GPU_FN unsigned ha_gpu_lanes(void)
{
	return 32;
}

HA_GPU_FN void ha_gpu_syncwarp(void)
{
	__syncwarp();
}

HA_GPU_FN uint64_t ha_gpu_shfl(uint64_t v, unsigned lane)
{
	return __shfl_sync(0xffffffffu, (unsigned long long)v, (int)lane);
}

HA_GPU_FN uint32_t ha_gpu_ballot(bool p)
{
	return __ballot_sync(0xffffffffu, p);
}

#endif
