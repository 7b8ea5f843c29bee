/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cuda.h - what the host library wants of CUDA: memory that GPU, host and NICs share, doorbell
 * pages in the GPU's address space, the GPU's own memory for a NIC, copies of tables that only ever
 * grow, and launches that wait for the last one
 *
 * The driver API (libcuda.so.1), found at run time; nothing is linked and no header is needed.
 * Where which memory lies:
 *
 *   queues, doorbell records, completions, connections, mailboxes
 *       pinned host memory: agents (host threads) read and write them, too
 *   the heap
 *       the caller's: cuMemAlloc()ed or pinned; a NIC reaches the GPU's by dma-buf, or through
 *       nvidia-peermem where dma-buf is not to be had. Where it is the GPU's, signals wait for a
 *       read of it (conn.h, apart): mailboxes are behind another bridge
 *   a copy of the rows (struct ha_gpu_world)
 *       the GPU's, so that a kernel finds its connection without asking over PCIe
 *
 * Calls may come from any thread: each makes the context current that was current at open(). Errors
 * are a negative errno and one line.
 * What has run: on softcuda and against a driver of the tests' own; docs/gpu.md says what on a GPU.
 */
#ifndef HA_GPU_HOST_CUDA_H
#define HA_GPU_HOST_CUDA_H

#include "gpu/host/host.h"
#include "gpu/host/mlx5.h"

#include <pthread.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A page of doorbell registers, as the host and the GPU have it. */
struct ha_gpu_cuda_page {
	uint64_t page; /* address at the host; 0: free */
	uint64_t device;
	unsigned users; /* doorbells on it */
};

struct ha_gpu_cuda {
	void *library;          /* NULL: the process has it already */
	void *context, *stream; /* the caller's; ours */
	pthread_mutex_t lock;   /* page[], npages */
	struct ha_gpu_cuda_page *page;
	unsigned npages; /* of the table, which grows; free ones too */
	uint64_t copied; /* bytes that went to the GPU for tables */
};

/*
 * Two threads' contexts are told apart by the driver, not here. -ENOENT: no driver; -ENODEV: no
 * context is current.
 */
int ha_gpu_cuda_open(struct ha_gpu_cuda *c);
/* Everything that was mapped or allocated through it has been given back. */
void ha_gpu_cuda_close(struct ha_gpu_cuda *c);

/*
 * For ha_gpu_mlx5_init(): pinned memory, doorbell pages, dma-buf for memory of the GPU. Exists as
 * long as `c`.
 */
void ha_gpu_cuda_memory(struct ha_gpu_cuda *c, struct ha_gpu_mlx5_memory *memory);

/*
 * The GPU's copy of what kernels look up. What is in it never moves; a call copies what has been
 * added since the last, then counts it.
 */
struct ha_gpu_cuda_world {
	struct ha_gpu_cuda *cuda;
	const struct ha_gpu_world *host;
	/*
	 * address of the struct ha_gpu_world for kernels: rows only; enter and leave are the host's
	 */
	uint64_t device;
	uint64_t rows;
};

int ha_gpu_cuda_world_make(struct ha_gpu_cuda *c, struct ha_gpu_host *h,
			   struct ha_gpu_cuda_world *world);
/* After ha_gpu_host_connect(); kernels may run. */
int ha_gpu_cuda_world_grow(struct ha_gpu_cuda_world *world);
void ha_gpu_cuda_world_free(struct ha_gpu_cuda_world *world);

/* Before a launch on `stream`: what was launched on it before has ended, and has left
 * (ha_gpu_host_launch). -EBUSY: not within limit_ms; -EIO: a kernel on it has failed: make a
 * context anew, or end the process; ha_gpu_host_repair() then frees what the kernel held. */
int ha_gpu_cuda_launch(struct ha_gpu_cuda *c, struct ha_gpu_host *h, void *stream,
		       unsigned limit_ms);

#ifdef __cplusplus
}
#endif

#endif
