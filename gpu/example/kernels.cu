/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernels.cu - the three kernels for nvcc. A call lies in memory that the device reads; blocks are of whole warps.
 *
 * A launch that both sends and receives must be resident as a whole (cudaLaunchCooperativeKernel sees to it); one phase by itself need not.
 */
#include "gpu/example/combine.h"
#include "gpu/example/dispatch.h"
#include "gpu/example/expert.h"

#define WARP ((blockIdx.x * blockDim.x + threadIdx.x) / 32)
#define WARPS (gridDim.x * blockDim.x / 32)

extern "C" __global__ void ha_moe_dispatch_kernel(struct ha_moe *m, const struct ha_moe_call *call)
{
	ha_moe_dispatch(m, call, WARP, WARPS);
}

extern "C" __global__ void ha_moe_experts_kernel(struct ha_moe *m, const struct ha_moe_call *call)
{
	ha_moe_run_experts(m, call, WARP, WARPS);
}

extern "C" __global__ void ha_moe_combine_kernel(struct ha_moe *m, const struct ha_moe_call *call)
{
	ha_moe_combine(m, call, WARP, WARPS);
}
