/* SPDX-License-Identifier: BSD-3-Clause */
/* A libmlx5 of which only data direct is of interest, for one device. */
#include "tests/rdma/verbs/mlx5_library.h"

#include <errno.h>
#include <stdio.h>

struct ibv_device *mlx5_device;
struct mlx5_call mlx5_last;

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
