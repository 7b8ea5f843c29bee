/* SPDX-License-Identifier: BSD-3-Clause */
/* launch.h - bodies of NCCL's kernels */
#ifndef SOFTCUDA_NCCL_LAUNCH_H
#define SOFTCUDA_NCCL_LAUNCH_H

#include "softcuda/softcuda.h"

/*
 * A kernel that runs batches of collectives, sends and receives. Returns when all are done or the
 * user aborted.
 */
void run_batches(const struct softcuda_launch *launch);

#endif
