/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The drop-in library as NCCL takes it: dlopen(), dlvsym() with versions, and the inline functions
 * of <infiniband/verbs.h> over the context it gives. argv[1]: the library.
 */
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"

static void *library;

static void *find_symbol(const char *name, const char *version)
{
	void *found = dlvsym(library, name, version);

	if (!found) {
		fprintf(stderr, "%s@%s: %s\n", name, version, dlerror());
		exit(1);
	}
	return found;
}
#define SYM(name, version) ((__typeof__(&(name)))find_symbol(#name, version))

/* A domain with a region cannot go. */
static void register_try(struct ibv_pd *pd)
{
	char memory[4096];
	struct ibv_mr *mr = SYM(ibv_reg_mr_iova2, "IBVERBS_1.8")(
		pd, memory, sizeof(memory), 0x1000000,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING);

	CHECK(mr && mr->addr == memory);
	CHECK(SYM(ibv_dealloc_pd, "IBVERBS_1.1")(pd) == EBUSY);
	CHECK(!SYM(ibv_dereg_mr, "IBVERBS_1.1")(mr));
}

static void device_try(struct ibv_device *device)
{
	struct ibv_context *context = SYM(ibv_open_device, "IBVERBS_1.1")(device);
	struct ibv_device_attr_ex attr;
	struct ibv_port_attr port;
	struct ibv_port_attr old;
	struct ibv_pd *pd;

	CHECK(context);
	CHECK(verbs_get_ctx(context) && verbs_get_ctx(context)->sz == sizeof(struct verbs_context));
	CHECK(!verbs_get_ctx(context)->query_device_ex(context, NULL, &attr, sizeof(attr)));
	CHECK(attr.orig_attr.phys_port_cnt == 1 && attr.phys_port_cnt_ex == 1);
	CHECK(attr.orig_attr.node_guid == SYM(ibv_get_device_guid, "IBVERBS_1.1")(device));
	CHECK(!verbs_get_ctx(context)->query_port(context, 1, &port, sizeof(port)));
	CHECK(port.state == IBV_PORT_ACTIVE && port.link_layer == IBV_LINK_LAYER_ETHERNET &&
	      port.active_mtu == IBV_MTU_4096);
	CHECK(verbs_get_ctx(context)->query_port(context, 2, &port, sizeof(port)) == EINVAL);
	/* The function of that name fills the struct of before it grew. */
	memset(&old, 0x77, sizeof(old));
	CHECK(!((int (*)(struct ibv_context *, uint8_t, struct ibv_port_attr *))find_symbol(
		"ibv_query_port", "IBVERBS_1.1"))(context, 1, &old));
	CHECK(old.state == port.state && old.link_layer == port.link_layer &&
	      old.port_cap_flags2 == 0x7777);
	pd = SYM(ibv_alloc_pd, "IBVERBS_1.1")(context);
	CHECK(pd);
	/* What this NIC cannot do is refused as hardware without the feature refuses it. */
	CHECK(!SYM(ibv_reg_dmabuf_mr, "IBVERBS_1.12")(pd, 0, 0, 0, -1, 0) && errno == EOPNOTSUPP);
	CHECK(!SYM(ibv_reg_mr_iova2, "IBVERBS_1.8")(pd, (void *)4096, 4096, 0,
						    IBV_ACCESS_LOCAL_WRITE) &&
	      errno == EFAULT);
	CHECK(!SYM(ibv_reg_mr_iova2, "IBVERBS_1.8")(pd, (void *)"text of the program", 8, 0,
						    IBV_ACCESS_LOCAL_WRITE) &&
	      errno == EFAULT);
	CHECK(!SYM(ibv_reg_mr_iova2, "IBVERBS_1.8")(pd, NULL, SIZE_MAX, 0, IBV_ACCESS_ON_DEMAND) &&
	      errno == EOPNOTSUPP);
	CHECK(!ibv_alloc_mw(pd, (enum ibv_mw_type)7) && errno == EINVAL);
	CHECK(!ibv_alloc_td(context, &(struct ibv_td_init_attr) { 0 }) && errno == EOPNOTSUPP);
	CHECK(!SYM(ibv_import_device, "IBVERBS_1.10")(0) && errno == EOPNOTSUPP);
	register_try(pd);
	CHECK(!SYM(ibv_dealloc_pd, "IBVERBS_1.1")(pd));
	CHECK(!SYM(ibv_close_device, "IBVERBS_1.1")(context));
}

int main(int argc, char **argv)
{
	struct ibv_device **list, **(*old_list)(int *);
	int n = 0;

	CHECK(argc == 2);
	setenv("SOFTROCE_DEVICES", "127.73.0.0/24,nonsense/9,other=127.73.1.0/24", 1);
	library = dlopen(argv[1], RTLD_NOW);
	if (!library)
		fprintf(stderr, "%s\n", dlerror());
	CHECK(library);
	list = ((__typeof__(&ibv_get_device_list))find_symbol("ibv_get_device_list",
							      "IBVERBS_1.1"))(&n);
	CHECK(list && n == 2 && !list[2]);
	CHECK(!strcmp(SYM(ibv_get_device_name, "IBVERBS_1.1")(list[0]), "soft0"));
	CHECK(!strcmp(SYM(ibv_get_device_name, "IBVERBS_1.1")(list[1]), "other"));
	for (int i = 0; i < n; i++)
		device_try(list[i]);
	SYM(ibv_free_device_list, "IBVERBS_1.1")(list);
	CHECK(!strcmp(SYM(ibv_wc_status_str, "IBVERBS_1.1")(IBV_WC_RETRY_EXC_ERR),
		      "transport retry counter exceeded"));
	CHECK(!strcmp(SYM(ibv_wc_status_str, "IBVERBS_1.1")(12345), "unknown"));
	CHECK(SYM(ibv_rate_to_mbps, "IBVERBS_1.1")(IBV_RATE_100_GBPS) == 103125);
	CHECK(SYM(mbps_to_ibv_rate, "IBVERBS_1.1")(103125) == IBV_RATE_100_GBPS);
	CHECK(SYM(ibv_rate_to_mult, "IBVERBS_1.0")(IBV_RATE_10_GBPS) == 4);
	CHECK(!SYM(ibv_fork_init, "IBVERBS_1.1")());
	CHECK(SYM(ibv_is_fork_initialized, "IBVERBS_1.13")() == IBV_FORK_UNNEEDED);
	old_list = find_symbol("ibv_get_device_list", "IBVERBS_1.0");
	list = old_list(&n);
	CHECK(list && n == 0 && !list[0]);
	free(list);
	return 0;
}
