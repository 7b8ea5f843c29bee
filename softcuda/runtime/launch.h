/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * launch.h - a launch on a stream, as the runtime's and the driver's calls both need it
 */
#ifndef SOFTCUDA_LAUNCH_H
#define SOFTCUDA_LAUNCH_H

#include "softcuda/runtime/kernel.h"

/* shape->device is filled in. pointers, extra: see create_launch. */
cudaError_t launch_kernel(struct kernel_entry *entry, struct launch_shape *shape, void **pointers, void **extra,
			  cudaStream_t handle);

#endif
