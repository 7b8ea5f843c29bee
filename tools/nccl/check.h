/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_TOOL_NCCL_CHECK_H
#define HAWSER_TOOL_NCCL_CHECK_H

struct ha_library;
struct nccl_gpu;

/*
 * check - results of NCCL and the CUDA runtime as faults
 *
 * Both: 0 on success, else -EIO with the fault recorded: which call, on which rank, what NCCL says,
 * what to do.
 */
int nccl_check(const struct ha_library *library, const struct nccl_gpu *gpu, int result,
	       const char *call);
int nccl_cuda_check(const struct ha_library *library, const struct nccl_gpu *gpu, int result,
		    const char *call);

#endif
