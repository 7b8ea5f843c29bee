/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * launch.h - a launch on a stream, as the runtime's and the driver's calls both need it
 */
#ifndef SOFTCUDA_LAUNCH_H
#define SOFTCUDA_LAUNCH_H

#include "softcuda/runtime/cuda_driver.h"
#include "softcuda/runtime/kernel.h"

/* Record the event that a launch's attributes ask for; to be called after the launch. */
cudaError_t record_launch_events(const CUlaunchAttribute *attributes, unsigned count,
				 cudaStream_t handle);
/* shape->device is filled in. pointers, extra: see create_launch. */
cudaError_t launch_kernel(struct kernel_entry *entry, struct launch_shape *shape, void **pointers,
			  void **extra, cudaStream_t handle);

#endif
