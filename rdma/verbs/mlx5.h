/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mlx5.h - what libmlx5 adds to libibverbs for ConnectX NICs: data direct, and queue pairs whose
 * messages arrive in any order
 *
 * With data direct a NIC reaches a GPU's memory through a PCIe function of its own, beside the one
 * that it is driven by. libmlx5 is looked for when the first device is asked, and only then: nobody
 * else needs it. Tried against a libmlx5 of the tests' own; on no NIC.
 */
#ifndef HA_VERBS_MLX5_H
#define HA_VERBS_MLX5_H

#include <assert.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* struct mlx5dv_context and mlx5dv_qp_init_attr of infiniband/mlx5dv.h, as rdma-core 55 has them:
 * Debian 12's header has no such flag yet, and newer libraries take what an older header left out
 * for not asked. */
struct ha_mlx5_context {
	uint8_t version;
	uint64_t flags;
	uint64_t comp_mask; /* asked; then what the library and the kernel know */
	uint64_t between[19];
	struct {
		uint32_t max_rc, max_xrc, max_dct, max_ud, max_uc;
	} ooo_recv_wrs_caps;
};
struct ha_mlx5_qp_init_attr {
	uint64_t comp_mask;
	uint32_t create_flags;
	uint64_t between[3];
};
static_assert(offsetof(struct ha_mlx5_context, comp_mask) == 16 &&
		      offsetof(struct ha_mlx5_context, ooo_recv_wrs_caps) == 176 &&
		      sizeof(struct ha_mlx5_context) == 200,
	      "libmlx5's layout");
static_assert(offsetof(struct ha_mlx5_qp_init_attr, create_flags) == 8 &&
		      sizeof(struct ha_mlx5_qp_init_attr) == 40,
	      "libmlx5's layout");

struct ha_mlx5 {
	bool asked; /* the rest is what was found then; NULL: it is not there */
	bool (*is_supported)(struct ibv_device *device);
	int (*get_data_direct_sysfs_path)(struct ibv_context *context, char *path, size_t len);
	struct ibv_mr *(*reg_dmabuf_mr)(struct ibv_pd *pd, uint64_t offset, size_t length,
					uint64_t iova, int fd, int access, int mlx5_access);
	int (*query_device)(struct ibv_context *context, struct ha_mlx5_context *attr);
	struct ibv_qp *(*create_qp)(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
				    struct ha_mlx5_qp_init_attr *mlx5_attr);
};

/* "/sys/devices/..." of the function that data takes. Not from two threads at once, and before any
 * registration. -EOPNOTSUPP: no such device, or libmlx5 is older than rdma-core 54 or not there. */
int ha_mlx5_data_direct_path(struct ha_mlx5 *m, struct ibv_context *context, char *path,
			     size_t len);
/* As ibv_reg_dmabuf_mr, of a dma-buf that was exported for PCIe. */
int ha_mlx5_reg_data_direct_mr(const struct ha_mlx5 *m, struct ibv_pd *pd, uint64_t offset,
			       size_t length, uint64_t iova, int fd, int access,
			       struct ibv_mr **mr);

/* As struct ha_verbs_ops says. Not from two threads at once, and before the first queue pair.
 * -EOPNOTSUPP: no such device, libmlx5 is older than rdma-core 55 or not there, or the kernel does
 * not know them. */
int ha_mlx5_query_unordered(struct ha_mlx5 *m, struct ibv_context *context);
int ha_mlx5_create_unordered_qp(const struct ha_mlx5 *m, struct ibv_pd *pd,
				struct ibv_qp_init_attr *attr, struct ibv_qp **qp);

#endif
