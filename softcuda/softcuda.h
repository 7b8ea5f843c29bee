/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * softcuda.h - what softcuda offers beside CUDA's own interface: how a kernel gets a body
 *
 * A program built by nvcc registers its kernels by name (`__cudaRegisterFunction`). Their machine
 * code is for a GPU and is never read. Who can do such a kernel's work on the host registers a
 * resolver for its name; a launch then runs the resolved function on the thread of the stream that
 * it was launched on. A kernel that no resolver knows is refused at the launch with
 * cudaErrorNotSupported, and one line in the log names it.
 */
#ifndef SOFTCUDA_H
#define SOFTCUDA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SOFTCUDA_EXPORT __attribute__((visibility("default")))

/* One launch, as its body sees it. Everything here is valid until the body returns. */
struct softcuda_launch {
	const char *name; /* mangled name of the device function */
	/* a copy of the parameters, laid out as CUDA does: in order, each at its own alignment */
	const void *parameters;
	size_t parameters_size; /* bytes */
	uint32_t grid[3];
	uint32_t block[3];
	uint32_t shared_memory; /* bytes of dynamic shared memory that the launch asks for */
	int device;             /* ordinal of the device of the stream */
};

/* What runs a kernel. It may block; it must not call the CUDA runtime on its own stream. */
struct softcuda_kernel {
	void (*run)(const struct softcuda_launch *launch);
	/* cudaLaunchKernel passes an array of pointers: sizes of the parameters in bytes, each
	 * aligned to the largest power of two that divides it, at most 8. A launch with a packed
	 * buffer (cuLaunchKernelEx with extra) needs none. */
	const uint16_t *parameter_size;
	unsigned parameter_count;
	size_t static_shared_memory; /* bytes, as cudaFuncGetAttributes reports it */
};

/* The body of the kernel with this mangled name, or NULL where this resolver does not know it. */
typedef const struct softcuda_kernel *softcuda_resolve_fn(const char *name);

/*
 * Add a resolver; resolvers are asked in the order in which they were added. Returns 0 or -ENOSPC.
 */
SOFTCUDA_EXPORT int softcuda_add_resolver(softcuda_resolve_fn *resolve);
/* Remove one that was added, before the object that holds it is unloaded. */
SOFTCUDA_EXPORT void softcuda_remove_resolver(softcuda_resolve_fn *resolve);

#ifdef __cplusplus
}
#endif
#endif
