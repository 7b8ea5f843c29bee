/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdma/verbs/mlx5.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#define SYSFS "/sys"
#define ACCESS_DATA_DIRECT 1                  /* MLX5DV_REG_DMABUF_ACCESS_DATA_DIRECT */
#define MASK_OOO_RECV_WRS (UINT64_C(1) << 16) /* MLX5DV_CONTEXT_MASK_OOO_RECV_WRS */
#define MASK_CREATE_FLAGS 1                   /* MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS */
#define CREATE_OOO_DP (1u << 7)               /* MLX5DV_QP_CREATE_OOO_DP */

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
	*(void **)&m->query_device = dlvsym(library, "mlx5dv_query_device", "MLX5_1.0");
	*(void **)&m->create_qp = dlvsym(library, "mlx5dv_create_qp", "MLX5_1.3");
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

int ha_mlx5_query_unordered(struct ha_mlx5 *m, struct ibv_context *context)
{
	struct ha_mlx5_context attr = { .comp_mask = MASK_OOO_RECV_WRS };
	int err;

	find_library(m);
	if (!m->is_supported || !m->query_device || !m->create_qp ||
	    !m->is_supported(context->device))
		return -EOPNOTSUPP;
	err = m->query_device(context, &attr);
	if (err)
		return -err;
	return attr.comp_mask & MASK_OOO_RECV_WRS && attr.ooo_recv_wrs_caps.max_rc ? 0
										   : -EOPNOTSUPP;
}

int ha_mlx5_create_unordered_qp(const struct ha_mlx5 *m, struct ibv_pd *pd,
				struct ibv_qp_init_attr *attr, struct ibv_qp **qp)
{
	struct ha_mlx5_qp_init_attr mlx5_attr = { .comp_mask = MASK_CREATE_FLAGS,
						  .create_flags = CREATE_OOO_DP };
	struct ibv_qp_init_attr_ex all = {
		.qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};

	*qp = NULL;
	if (!m->create_qp)
		return -EOPNOTSUPP;
	errno = 0;
	*qp = m->create_qp(pd->context, &all, &mlx5_attr);
	if (!*qp)
		return errno ? -errno : -ENOMEM;
	attr->cap = all.cap;
	return 0;
}
