/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdma/verbs/mlx5.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#define SYSFS "/sys"
#define ACCESS_DATA_DIRECT 1 /* MLX5DV_REG_DMABUF_ACCESS_DATA_DIRECT */

/* The devices are libibverbs' own: that libibverbs has loaded the same libmlx5 for them. It stays
 * loaded. */
static void find_library(struct ha_mlx5 *m)
{
	void *library = m->asked ? NULL : dlopen("libmlx5.so.1", RTLD_NOW | RTLD_LOCAL);

	m->asked = true;
	if (!library)
		return;
	*(void **)&m->is_supported = dlvsym(library, "mlx5dv_is_supported", "MLX5_1.8");
	*(void **)&m->get_data_direct_sysfs_path =
		dlvsym(library, "mlx5dv_get_data_direct_sysfs_path", "MLX5_1.25");
	*(void **)&m->reg_dmabuf_mr = dlvsym(library, "mlx5dv_reg_dmabuf_mr", "MLX5_1.25");
}

/* libmlx5 gives a positive errno, and a path without /sys. */
int ha_mlx5_data_direct_path(struct ha_mlx5 *m, struct ibv_context *context, char *path, size_t len)
{
	int err;

	find_library(m);
	if (!m->is_supported || !m->get_data_direct_sysfs_path || !m->reg_dmabuf_mr ||
	    len <= sizeof(SYSFS) || !m->is_supported(context->device))
		return -EOPNOTSUPP;
	memcpy(path, SYSFS, sizeof(SYSFS));
	err = m->get_data_direct_sysfs_path(context, path + strlen(SYSFS), len - strlen(SYSFS));
	/* "no such device" is how it says that this one has no such function */
	return err == ENODEV || err == EINVAL ? -EOPNOTSUPP : -err;
}

int ha_mlx5_reg_data_direct_mr(const struct ha_mlx5 *m, struct ibv_pd *pd, uint64_t offset,
			       size_t length, uint64_t iova, int fd, int access, struct ibv_mr **mr)
{
	*mr = NULL;
	if (!m->reg_dmabuf_mr)
		return -EOPNOTSUPP;
	errno = 0;
	*mr = m->reg_dmabuf_mr(pd, offset, length, iova, fd, access, ACCESS_DATA_DIRECT);
	if (*mr)
		return 0;
	return errno ? -errno : -ENOMEM;
}
