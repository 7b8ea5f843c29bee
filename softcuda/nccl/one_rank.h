/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * one_rank.h - the kernel of a reduction in a communicator of one rank: its input times the user's
 * factor
 */
#ifndef SOFTCUDA_NCCL_ONE_RANK_H
#define SOFTCUDA_NCCL_ONE_RANK_H

#include "softcuda/softcuda.h"

/* NULL where `name` is not such a kernel's. */
const struct softcuda_kernel *find_one_rank_kernel(const char *name);

#endif
