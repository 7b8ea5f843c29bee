/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding and loading a libibverbs; what the log says when there is none. */
#include "rdma/verbs/dlopen.h"

#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <unistd.h>

#include "base/check.h"
#include "tests/base/lines.h"
#include "tests/rdma/verbs/mlx5_library.h"

static void a_missing_library_is_explained(void)
{
	struct ha_verbs_ops *v;

	lines_catch();
	CHECK_INT(ha_verbs_open_library("/nowhere/libibverbs.so.1", &v), -ENOENT);
	CHECK(!v);
	CHECK(lines_contain("HA_NCCL_VERBS=/nowhere/libibverbs.so.1: "));
	CHECK(lines_contain("Use system, soft, or the path of a libibverbs"));
}

static void an_unauthenticated_peer_is_refused(void)
{
	struct ha_verbs_ops *v;

	lines_catch();
	CHECK_INT(ha_verbs_open_library("libm.so.6", &v), -ENOSYS);
	CHECK(lines_contain("libm.so.6 has no ibv_get_device_list in version IBVERBS_1.1"));
}

/* The machine may have no RDMA device; its libibverbs then lists none, or says that the kernel has
 * no RDMA. */
static void the_system_library_loads_twice(void)
{
	struct ha_verbs_ops *v[2];
	struct ibv_device **list;
	int n, rc;

	if (access("/usr/lib/x86_64-linux-gnu/libibverbs.so.1", F_OK) &&
	    access("/usr/lib64/libibverbs.so.1", F_OK) &&
	    access("/usr/lib/aarch64-linux-gnu/libibverbs.so.1", F_OK)) {
		printf("no system libibverbs\n");
		return;
	}
	CHECK_INT(ha_verbs_open_library("system", &v[0]), 0);
	CHECK_INT(ha_verbs_open_library("", &v[1]), 0);
	CHECK(v[0] != v[1]);
	CHECK(v[0]->optional_access);
	for (int i = 0; i < 2; i++) {
		rc = v[i]->device_list(v[i], &list, &n);
		CHECK(rc == 0 || rc == -ENOSYS);
		if (!rc)
			v[i]->device_list_free(v[i], list);
		ha_verbs_close_library(v[i]);
	}
	ha_verbs_close_library(NULL);
}

/*
 * Where the kernel copies registered pages for a child, libibverbs must not hide them from it:
 * whatever else is on those pages would be gone in the child, too.
 */
static void a_kernel_that_copies_on_fork_is_left_alone(const char *library)
{
	static const struct {
		int status, inits;
	} cases[] = { { IBV_FORK_DISABLED, 1 }, { IBV_FORK_ENABLED, 1 }, { IBV_FORK_UNNEEDED, 0 } };
	struct ha_verbs_ops *v;
	void *handle;
	int *inits;

	CHECK_INT(ha_verbs_open_library(library, &v), 0);
	handle = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
	CHECK(handle);
	inits = dlsym(handle, "fork_inits");
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		*(int *)dlsym(handle, "fork_status") = cases[i].status;
		*inits = 0;
		CHECK_INT(v->fork_init(v), 0);
		CHECK_INT(*inits, cases[i].inits);
	}
	dlclose(handle);
	ha_verbs_close_library(v);
}

/* The loader finds the one that is loaded already by its name, libmlx5.so.1. */
static void data_direct_of_libmlx5(const char *libibverbs, const char *libmlx5)
{
	struct ibv_device able = { .name = "mlx5_0" }, other = { .name = "bnxt_re0" };
	struct ibv_context context = { .device = &able }, none = { .device = &other },
			   old = { .device = &able, .num_comp_vectors = 1 };
	void *handle = dlopen(libmlx5, RTLD_NOW | RTLD_LOCAL);
	struct mlx5_call *last;
	struct ibv_pd pd = { 0 };
	struct ha_verbs_ops *v;
	char path[512];
	struct ibv_mr *mr;

	CHECK(handle);
	last = dlsym(handle, "mlx5_last");
	*(struct ibv_device **)dlsym(handle, "mlx5_device") = &able;
	CHECK_INT(ha_verbs_open_library(libibverbs, &v), 0);
	CHECK_INT(v->reg_data_direct_mr(v, &pd, 0, 64, 0, 5, 0, &mr), -EOPNOTSUPP);
	CHECK_INT(v->data_direct_path(v, &none, path, sizeof(path)), -EOPNOTSUPP);
	CHECK_INT(v->data_direct_path(v, &old, path, sizeof(path)), -EOPNOTSUPP);
	CHECK_INT(v->data_direct_path(v, &context, path, sizeof(path)), 0);
	CHECK_TEXT(path, "/sys/devices/pci0001:00/0001:01:00.0");
	CHECK_INT(v->reg_data_direct_mr(v, &pd, 4096, 64, 0x1000, 5, IBV_ACCESS_REMOTE_WRITE, &mr),
		  0);
	CHECK(mr && last->pd == &pd && last->offset == 4096 && last->length == 64 &&
	      last->iova == 0x1000 && last->fd == 5);
	CHECK_INT(last->access, IBV_ACCESS_REMOTE_WRITE);
	CHECK_INT(last->mlx5_access, 1);
	CHECK_INT(v->reg_data_direct_mr(v, &pd, 0, 64, 0, -1, 0, &mr), -EBADF);
	ha_verbs_close_library(v);
	dlclose(handle);
}

/* Asked for by the bits that rdma-core 55 gave them. */
static void unordered_queue_pairs_of_libmlx5(const char *libibverbs, const char *libmlx5)
{
	struct ibv_device able = { .name = "mlx5_0" }, other = { .name = "bnxt_re0" };
	struct ibv_context context = { .device = &able }, none = { .device = &other };
	struct ibv_qp_init_attr init = { .srq = (struct ibv_srq *)&able,
					 .cap = { .max_send_wr = 64 },
					 .qp_type = IBV_QPT_RC };
	void *handle = dlopen(libmlx5, RTLD_NOW | RTLD_LOCAL);
	struct ibv_pd pd = { .context = &context };
	struct mlx5_qp_call *last;
	struct ha_verbs_ops *v;
	struct ibv_qp *qp;

	CHECK(handle);
	last = dlsym(handle, "mlx5_last_qp");
	*(struct ibv_device **)dlsym(handle, "mlx5_device") = &able;
	CHECK_INT(ha_verbs_open_library(libibverbs, &v), 0);
	CHECK_INT(v->create_unordered_qp(v, &pd, &init, &qp), -EOPNOTSUPP);
	CHECK_INT(v->query_unordered(v, &none), -EOPNOTSUPP);
	CHECK_INT(v->query_unordered(v, &context), -EOPNOTSUPP);
	*(unsigned *)dlsym(handle, "mlx5_out_of_order") = 4096;
	CHECK_INT(v->query_unordered(v, &context), 0);
	CHECK_INT(v->create_unordered_qp(v, &pd, &init, &qp), 0);
	CHECK(qp && last->context == &context && last->pd == &pd && last->srq == init.srq);
	CHECK_INT(last->comp_mask, 1);
	CHECK_INT(last->create_flags, 1 << 7);
	CHECK_INT(init.cap.max_inline_data, 28);
	init.cap.max_send_wr = 101;
	CHECK_INT(v->create_unordered_qp(v, &pd, &init, &qp), -EINVAL);
	CHECK(!qp);
	ha_verbs_close_library(v);
	dlclose(handle);
}

int main(int argc, char **argv)
{
	CHECK(argc == 3);
	data_direct_of_libmlx5(argv[1], argv[2]);
	unordered_queue_pairs_of_libmlx5(argv[1], argv[2]);
	a_kernel_that_copies_on_fork_is_left_alone(argv[1]);
	a_missing_library_is_explained();
	an_unauthenticated_peer_is_refused();
	the_system_library_loads_twice();
	return 0;
}
