/* SPDX-License-Identifier: BSD-3-Clause */
/* mlx5_library.h - the tests' own libmlx5: what it exports, and how it was called */
#ifndef HA_TESTS_VERBS_MLX5_LIBRARY_H
#define HA_TESTS_VERBS_MLX5_LIBRARY_H

#include <infiniband/mlx5dv.h>
#include <stdbool.h>

struct mlx5_call {
	struct ibv_pd *pd;
	uint64_t offset;
	size_t length;
	uint64_t iova;
	int fd, access, mlx5_access;
};

extern struct ibv_device *mlx5_device; /* the one that is supported */
extern struct mlx5_call mlx5_last;
extern unsigned mlx5_out_of_order; /* receives of such a queue pair; 0: the kernel is older */

struct mlx5_qp_call {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_srq *srq;
	uint64_t comp_mask;
	uint32_t create_flags;
};
extern struct mlx5_qp_call mlx5_last_qp;

int mlx5dv_get_data_direct_sysfs_path(struct ibv_context *context, char *path, size_t len);
struct ibv_mr *mlx5dv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
				    uint64_t iova, int fd, int access, int mlx5_access);

#endif
