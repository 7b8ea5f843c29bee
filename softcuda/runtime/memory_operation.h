/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory_operation.h - a stream's writes to, and waits for, values in memory (cuStreamBatchMemOp)
 */
#ifndef SOFTCUDA_MEMORY_OPERATION_H
#define SOFTCUDA_MEMORY_OPERATION_H

#include "softcuda/runtime/cuda_driver.h"
#include "softcuda/runtime/operation.h"

/* cudaErrorInvalidValue for an operation that does not exist. */
cudaError_t create_memory_operations(const CUstreamBatchMemOpParams *list, unsigned count,
				     struct operation **operation);

#endif
