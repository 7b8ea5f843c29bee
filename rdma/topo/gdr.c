/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdma/topo/gdr.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>

#include "rdma/topo/sysfs.h"

bool ha_gdr_peer_memory(const char *sysfs_root)
{
	static const char *const signs[] = {
		"/sys/module/nvidia_peermem/version",
		"/sys/kernel/mm/memory_peers/nv_mem/version",
		"/sys/kernel/mm/memory_peers/nv_mem_nc/version",
	};

	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++)
		if (ha_sysfs_exists(sysfs_root, "%s", signs[i]))
			return true;
	return false;
}

bool ha_gdr_soft_gpu(void)
{
	void *runtime = dlopen("libcudart.so.12", RTLD_LAZY | RTLD_NOLOAD);
	bool soft;

	if (!runtime)
		return false;
	soft = dlsym(runtime, "softcuda_add_resolver") != NULL;
	dlclose(runtime);
	return soft;
}

bool ha_gdr_dma_buf(const struct ha_verbs_ops *verbs, struct ibv_context *context)
{
	struct ibv_mr *mr = NULL;
	struct ibv_pd *pd;
	int rc;

	if (verbs->alloc_pd(verbs, context, &pd))
		return false;
	/* One that can says EBADF (or EINVAL for the length); one that cannot says so. */
	rc = verbs->reg_dmabuf_mr(verbs, pd, 0, 0, 0, -1, 0, &mr);
	if (!rc)
		verbs->dereg_mr(verbs, mr);
	verbs->dealloc_pd(verbs, pd);
	return rc != -EOPNOTSUPP && rc != -EPROTONOSUPPORT && rc != -ENOSYS;
}
