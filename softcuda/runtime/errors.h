/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * errors.h - CUDA's errors: each thread's last one, names and texts; and whether a call may be made
 * at all
 */
#ifndef SOFTCUDA_ERRORS_H
#define SOFTCUDA_ERRORS_H

#include "softcuda/runtime/cuda_types.h"

/* Remember `error` as this thread's last one unless it is cudaSuccess. Returns it. */
cudaError_t record_error(cudaError_t error);
/* This thread's last error; take: and forget it. */
cudaError_t last_error(int take);

const char *find_error_name(cudaError_t error);
const char *find_error_text(cudaError_t error);

#endif
