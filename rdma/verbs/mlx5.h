/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mlx5.h - what libmlx5 adds to libibverbs for ConnectX NICs: data direct
 *
 * Such a NIC reaches a GPU's memory through a PCIe function of its own, beside the one that it is
 * driven by. libmlx5 is looked for when the first device is asked, and only then: nobody else needs
 * it. Tried against a libmlx5 of the tests' own; on no NIC.
 */
#ifndef HA_VERBS_MLX5_H
#define HA_VERBS_MLX5_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ha_mlx5 {
	bool asked; /* the rest is what was found then; NULL: it is not there */
	bool (*is_supported)(struct ibv_device *device);
	int (*get_data_direct_sysfs_path)(struct ibv_context *context, char *path, size_t len);
	struct ibv_mr *(*reg_dmabuf_mr)(struct ibv_pd *pd, uint64_t offset, size_t length,
					uint64_t iova, int fd, int access, int mlx5_access);
};

/* "/sys/devices/..." of the function that data takes. Not from two threads at once, and before any
 * registration. -EOPNOTSUPP: no such device, or libmlx5 is older than rdma-core 54 or not there. */
int ha_mlx5_data_direct_path(struct ha_mlx5 *m, struct ibv_context *context, char *path,
			     size_t len);
/* As ibv_reg_dmabuf_mr, of a dma-buf that was exported for PCIe. */
int ha_mlx5_reg_data_direct_mr(const struct ha_mlx5 *m, struct ibv_pd *pd, uint64_t offset,
			       size_t length, uint64_t iova, int fd, int access,
			       struct ibv_mr **mr);

#endif
