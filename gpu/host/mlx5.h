/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mlx5.h - ConnectX NICs as the host library's hardware: queue pairs and completion queues through
 * DEVX, everything else through verbs
 *
 * libmlx5 is found at run time, as libibverbs is. What has been tried is in README.md: the bytes of
 * every command and the order of the calls, against a libmlx5 of the tests' own; no NIC.
 */
#ifndef HA_GPU_HOST_MLX5_H
#define HA_GPU_HOST_MLX5_H

#include "gpu/host/hw.h"
#include "rdma/verbs/ops.h"

#include <infiniband/mlx5dv.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * What is used of libmlx5 (and of libibverbs, for the address handle that has the next hop's
 * MAC).
 */
struct ha_gpu_mlx5_dv {
	bool (*is_supported)(struct ibv_device *device);
	struct ibv_context *(*open_device)(struct ibv_device *device,
					   struct mlx5dv_context_attr *attr);
	int (*init_obj)(struct mlx5dv_obj *obj, uint64_t type);
	struct mlx5dv_devx_uar *(*alloc_uar)(struct ibv_context *context, uint32_t flags);
	void (*free_uar)(struct mlx5dv_devx_uar *uar);
	int (*query_eqn)(struct ibv_context *context, uint32_t vector, uint32_t *eqn);
	struct mlx5dv_devx_umem *(*umem_reg)(struct ibv_context *context, void *address,
					     size_t bytes, uint32_t access);
	int (*umem_dereg)(struct mlx5dv_devx_umem *umem);
	struct mlx5dv_devx_obj *(*obj_create)(struct ibv_context *context, const void *in,
					      size_t in_bytes, void *out, size_t out_bytes);
	int (*obj_modify)(struct mlx5dv_devx_obj *obj, const void *in, size_t in_bytes, void *out,
			  size_t out_bytes);
	int (*obj_destroy)(struct mlx5dv_devx_obj *obj);
	struct ibv_ah *(*create_ah)(struct ibv_pd *pd, struct ibv_ah_attr *attr);
	int (*destroy_ah)(struct ibv_ah *ah);
};

/* Memory that the GPU reaches, too: page-aligned, zeroed. The defaults are the host's. */
struct ha_gpu_mlx5_memory {
	void *self;
	int (*alloc)(void *self, size_t bytes, void **memory);
	void (*free)(void *self, void *memory, size_t bytes);
	/* A doorbell register as the GPU reaches it (CUDA: cuMemHostRegister with IOMEMORY); NULL:
	 * as the host does. Not called where the host rings (HA_GPU_PROXY=1). Registers of several
	 * queue pairs may lie on one page; `page` is the register's own address. */
	int (*map_doorbell)(void *self, void *page, void **device);
	void (*unmap_doorbell)(void *self, void *page); /* what map_doorbell has done for it */
	/* The GPU's memory as a dma-buf, which the caller closes, and where the range begins in it.
	 * -EOPNOTSUPP: it is none, or there are none; then it is registered like any other. NULL:
	 * the same of all memory. */
	int (*dmabuf)(void *self, void *address, size_t bytes, int *fd, uint64_t *offset);
	/* It is the GPU's own, however it is registered. NULL: none is. */
	bool (*is_device)(void *self, const void *address);
};

struct ha_gpu_mlx5 {
	const struct ha_verbs_ops *verbs;
	struct ha_gpu_mlx5_dv dv;
	struct ha_gpu_mlx5_memory memory;
	void *library;
	const char *sysfs_root; /* NULL: the system's (sysfs.h) */
	struct ibv_device **list;
	int ndevices;
	int gid_index; /* of RoCE ports; -1: 3, the first of RoCE v2 and IPv4 on most systems */
	struct {
		struct ibv_device *device;
		uint64_t function; /* its physical function, as ha_pci_order() has it */
		uint8_t port;
	} port[HA_GPU_PORTS_MAX];
	int nports;
};

/* -ENOENT: no libmlx5, with a line. `memory` NULL: host memory. */
int ha_gpu_mlx5_init(struct ha_gpu_mlx5 *m, const struct ha_verbs_ops *verbs,
		     const struct ha_gpu_mlx5_memory *memory);
void ha_gpu_mlx5_fini(struct ha_gpu_mlx5 *m);
/* The table's `hw` is a struct ha_gpu_mlx5. */
extern const struct ha_gpu_hw_ops ha_gpu_mlx5_ops;

#ifdef __cplusplus
}
#endif

#endif
