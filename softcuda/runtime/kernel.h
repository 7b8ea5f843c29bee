/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernel.h - kernels: what a program registered, what body a resolver has for it, and its launch
 */
#ifndef SOFTCUDA_KERNEL_H
#define SOFTCUDA_KERNEL_H

#include "softcuda/runtime/cuda_types.h"
#include "softcuda/runtime/operation.h"
#include "softcuda/softcuda.h"

/* What cudaLaunchKernel calls a function: the address of its stub on the host. */
struct kernel_entry;

/* Registration, by the constructors that nvcc generates. Without memory a kernel stays unknown. */
void register_kernel(void *binary, const void *stub, const char *name);
void unregister_kernels(void *binary);

/* NULL: not registered. */
struct kernel_entry *find_kernel(const void *stub);
const char *kernel_name(const struct kernel_entry *entry);
/* Its body, or NULL. */
const struct softcuda_kernel *resolve_kernel(struct kernel_entry *entry);

struct launch_shape {
	dim3 grid;
	dim3 block;
	unsigned shared_memory;
	int device;
};

/*
 * A launch of `entry`. Parameters come as an array of pointers, or as CUDA's list `extra` with one
 * packed buffer; they are copied. cudaErrorNotSupported after a line in the log if nobody knows the
 * kernel.
 */
cudaError_t create_launch(struct kernel_entry *entry, const struct launch_shape *shape,
			  void **pointers, void **extra, struct operation **operation);

#endif
