/* SPDX-License-Identifier: BSD-3-Clause */
/* compile.cu - every operation of the device library in a kernel, so that nvcc sees the same source as the host compiler */
#include "gpu/device/hawser_gpu.h"

extern "C" __global__ void ha_gpu_put_kernel(struct ha_gpu_conn *c, uint64_t remote, const void *local, uint64_t bytes, int *result)
{
	int r = ha_gpu_put_nbi_warp(c, remote, local, bytes, HA_GPU_LATER, HA_GPU_FOREVER);

	if (!ha_gpu_lane()) {
		r |= ha_gpu_signal(c, 0, 1, 0, HA_GPU_FOREVER);
		r |= ha_gpu_quiet(c, 1000000000);
	}
	*result = r;
}

extern "C" __global__ void ha_gpu_all_kernel(struct ha_gpu_conn *c, uint64_t remote, void *local, uint64_t bytes, uint64_t *old, int *result)
{
	bool posted;
	int r = ha_gpu_put_nbi(c, remote, local, bytes, 0, 1000);

	r |= ha_gpu_get_nbi(c, local, remote, bytes, 0, 1000);
	r |= ha_gpu_get(c, local, remote, bytes, 1000);
	r |= ha_gpu_put_inline(c, remote, old, 8, 0, 1000);
	r |= ha_gpu_fence(c, 1000);
	r |= ha_gpu_wait(c, 3, 7, 1000);
	r |= ha_gpu_fetch_add(c, remote, 1, old, &posted, 1000);
	if (posted)
		r |= ha_gpu_fetch_add_wait(c, old, 1000);
	while (ha_gpu_serve(c))
		;
	*result = r;
}
