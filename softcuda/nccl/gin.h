/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gin.h - the kernel that resets signals and counters of GPU-initiated networking (GIN) when its
 * owner goes away
 *
 * gin_reset.c and gin_none.c: for versions that have it, and for those that do not.
 */
#ifndef SOFTCUDA_NCCL_GIN_H
#define SOFTCUDA_NCCL_GIN_H

#include "softcuda/softcuda.h"

/* NULL where `name`, without the length in front, is another kernel's. */
const struct softcuda_kernel *find_gin_kernel(const char *name);

#endif
