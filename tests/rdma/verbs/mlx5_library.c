/* SPDX-License-Identifier: BSD-3-Clause */
/* A libmlx5 of which data direct and out-of-order queue pairs are of interest, for one device. */
#include "tests/rdma/verbs/mlx5_library.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct ibv_device *mlx5_device;
struct mlx5_call mlx5_last;
unsigned mlx5_out_of_order;
struct mlx5_qp_call mlx5_last_qp;

bool mlx5dv_is_supported(struct ibv_device *device)
{
	return device == mlx5_device;
}

int mlx5dv_get_data_direct_sysfs_path(struct ibv_context *context, char *path, size_t len)
{
	if (context->num_comp_vectors) /* the test's sign that it has no such function */
		return ENODEV;
	snprintf(path, len, "/devices/pci0001:00/0001:01:00.0");
	return 0;
}

struct ibv_mr *mlx5dv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
				    uint64_t iova, int fd, int access, int mlx5_access)
{
	static struct ibv_mr mr;

	mlx5_last = (struct mlx5_call) { pd, offset, length, iova, fd, access, mlx5_access };
	if (fd >= 0)
		return &mr;
	errno = EBADF;
	return NULL;
}

#define MASK_OOO_RECV_WRS (UINT64_C(1) << 16)
#define MAX_RC_AT 176 /* of struct mlx5dv_context since rdma-core 55; Debian 12's ends before */

int mlx5dv_query_device(struct ibv_context *context, struct mlx5dv_context *attr)
{
	uint64_t asked = attr->comp_mask;

	if (context->device != mlx5_device)
		return EOPNOTSUPP;
	attr->comp_mask = 0;
	if (asked & MASK_OOO_RECV_WRS && mlx5_out_of_order) {
		attr->comp_mask = MASK_OOO_RECV_WRS;
		memcpy((char *)attr + MAX_RC_AT, &mlx5_out_of_order, sizeof(mlx5_out_of_order));
	}
	return 0;
}

struct ibv_qp *mlx5dv_create_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
				struct mlx5dv_qp_init_attr *mlx5_attr)
{
	static struct ibv_qp qp;

	mlx5_last_qp = (struct mlx5_qp_call) { context, attr->pd, attr->srq, mlx5_attr->comp_mask,
					       mlx5_attr->create_flags };
	if (attr->cap.max_send_wr > 100) {
		errno = EINVAL;
		return NULL;
	}
	attr->cap.max_inline_data = 28;
	return &qp;
}
