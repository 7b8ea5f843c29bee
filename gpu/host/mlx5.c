/* SPDX-License-Identifier: BSD-3-Clause */
#include "gpu/host/mlx5.h"

#include "base/log.h"
#include "gpu/host/mlx5_objects.h"
#include "rdma/topo/pci.h"
#include "rdma/topo/sysfs.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- library ---- */

static int load_library(struct ha_gpu_mlx5 *m)
{
	struct ha_gpu_mlx5_dv *dv = &m->dv;
	const struct {
		void **to;
		const char *name;
	} want[] = {
		{ (void **)&dv->is_supported, "mlx5dv_is_supported" },
		{ (void **)&dv->open_device, "mlx5dv_open_device" },
		{ (void **)&dv->init_obj, "mlx5dv_init_obj" },
		{ (void **)&dv->alloc_uar, "mlx5dv_devx_alloc_uar" },
		{ (void **)&dv->free_uar, "mlx5dv_devx_free_uar" },
		{ (void **)&dv->query_eqn, "mlx5dv_devx_query_eqn" },
		{ (void **)&dv->umem_reg, "mlx5dv_devx_umem_reg" },
		{ (void **)&dv->umem_dereg, "mlx5dv_devx_umem_dereg" },
		{ (void **)&dv->obj_create, "mlx5dv_devx_obj_create" },
		{ (void **)&dv->obj_modify, "mlx5dv_devx_obj_modify" },
		{ (void **)&dv->obj_destroy, "mlx5dv_devx_obj_destroy" },
		{ (void **)&dv->create_ah, "ibv_create_ah" },
		{ (void **)&dv->destroy_ah, "ibv_destroy_ah" },
	};

	m->library = dlopen("libmlx5.so.1", RTLD_NOW | RTLD_GLOBAL);
	for (size_t i = 0; m->library && i < sizeof(want) / sizeof(want[0]); i++) {
		*want[i].to = dlsym(m->library, want[i].name);
		if (*want[i].to)
			continue;
		HA_WARN("libmlx5", "lacks %s: install ibverbs-providers of rdma-core 28 or newer",
			want[i].name);
		dlclose(m->library);
		m->library = NULL;
		return -ENOENT;
	}
	if (m->library)
		return 0;
	HA_WARN("libmlx5", "libmlx5.so.1 is not found: install ibverbs-providers");
	return -ENOENT;
}

static int host_alloc(void *self, size_t bytes, void **memory)
{
	bytes = (bytes + 4095) & ~(size_t)4095;
	*memory = aligned_alloc(4096, bytes);
	if (!*memory)
		return -ENOMEM;
	memset(*memory, 0, bytes);
	return 0;
}

static void host_free(void *self, void *memory, size_t bytes)
{
	free(memory);
}

int ha_gpu_mlx5_init(struct ha_gpu_mlx5 *m, const struct ha_verbs_ops *verbs,
		     const struct ha_gpu_mlx5_memory *memory)
{
	static const struct ha_gpu_mlx5_memory host = { .alloc = host_alloc, .free = host_free };

	memset(m, 0, sizeof(*m));
	m->verbs = verbs;
	m->memory = memory ? *memory : host;
	m->gid_index = -1;
	return load_library(m);
}

void ha_gpu_mlx5_fini(struct ha_gpu_mlx5 *m)
{
	if (m->list)
		m->verbs->device_list_free(m->verbs, m->list);
	if (m->library)
		dlclose(m->library);
	memset(m, 0, sizeof(*m));
}

/* ---- ports ---- */

/* UINT64_MAX: the system does not say. */
static uint64_t physical_function(const struct ha_gpu_mlx5 *m, const struct ibv_device *device)
{
	const char *root = m->sysfs_root ? m->sysfs_root : "";
	char path[PATH_MAX], physical[PATH_MAX];

	ha_sysfs_realpath(root, path, sizeof(path), "/sys/class/infiniband/%s/device",
			  device->name);
	ha_pci_climb(path);
	ha_pci_physical(root, path, physical, sizeof(physical));
	return ha_pci_order(physical);
}

static void list_device(struct ha_gpu_mlx5 *m, struct ibv_device *device,
			struct ha_gpu_port_info *list, int max)
{
	struct ibv_context *context;
	uint64_t function = physical_function(m, device);
	struct ibv_device_attr attr;
	struct ha_port_attr port;

	if (m->verbs->open(m->verbs, device, &context))
		return;
	if (m->verbs->query_device(m->verbs, context, &attr))
		attr.phys_port_cnt = 0;
	for (unsigned p = 1; p <= attr.phys_port_cnt && m->nports < max; p++) {
		struct ha_gpu_port_info *i = &list[m->nports];

		snprintf(i->name, sizeof(i->name), "%.58s:%u", device->name, p);
		i->card = attr.sys_image_guid;
		i->port = p;
		i->up = !m->verbs->query_port(m->verbs, context, (uint8_t)p, &port) &&
			port.attr.state == IBV_PORT_ACTIVE;
		m->port[m->nports].device = device;
		m->port[m->nports].function = function;
		m->port[m->nports++].port = (uint8_t)p;
	}
	m->verbs->close(m->verbs, context);
}

/* One cable: ports of one physical function with the same number, whatever virtual functions and
 * sub-functions they belong to. Where the system does not say which function it is (a virtual one
 * in a guest), a device stands for itself. */
static bool is_same_cable(const struct ha_gpu_mlx5 *m, int a, int b)
{
	return m->port[a].function != UINT64_MAX && m->port[a].function == m->port[b].function &&
	       m->port[a].port == m->port[b].port;
}

/* Of the port behind this entry: as an entry before it has it, else the card's next. */
static unsigned number_port(const struct ha_gpu_mlx5 *m, const struct ha_gpu_port_info *list, int i)
{
	unsigned next = 1;

	for (int k = 0; k < i; k++) {
		if (list[k].card != list[i].card)
			continue;
		if (is_same_cable(m, k, i))
			return list[k].port;
		if (list[k].port >= next)
			next = list[k].port + 1;
	}
	return next;
}

/*
 * Physical functions of one card (mlx5_0 and mlx5_1 of a card with two cages) are its ports:
 * numbered in the order of the list.
 */
static void number_functions(const struct ha_gpu_mlx5 *m, struct ha_gpu_port_info *list)
{
	for (int i = 0; i < m->nports; i++)
		list[i].port = number_port(m, list, i);
}

static int ports(void *hw, struct ha_gpu_port_info *list, int max)
{
	struct ha_gpu_mlx5 *m = hw;
	int r;

	if (m->list)
		m->verbs->device_list_free(m->verbs, m->list);
	m->list = NULL;
	m->nports = 0;
	r = m->verbs->device_list(m->verbs, &m->list, &m->ndevices);
	if (r)
		return r;
	for (int i = 0; i < m->ndevices; i++)
		if (m->dv.is_supported(m->list[i]))
			list_device(m, m->list[i], list, max);
	number_functions(m, list);
	return m->nports;
}

static int ask_kind(struct ha_mlx5_device *d)
{
	struct ha_gpu_mlx5 *m = d->m;
	struct ha_port_attr port;
	int r = m->verbs->query_port(m->verbs, d->context, d->port, &port);

	if (r)
		return r;
	d->ethernet = port.attr.link_layer == IBV_LINK_LAYER_ETHERNET;
	d->gid_index = 0;
	if (d->ethernet)
		d->gid_index = m->gid_index < 0 ? 3 : m->gid_index;
	return 0;
}

static int set_up(struct ha_mlx5_device *d, struct ibv_device *device)
{
	struct mlx5dv_context_attr attr = { .flags = MLX5DV_CONTEXT_FLAGS_DEVX };
	struct ha_gpu_mlx5 *m = d->m;
	int r;

	d->context = m->dv.open_device(device, &attr);
	if (!d->context) {
		HA_WARN(d->name, "gives no DEVX context: the kernel needs CONFIG_MLX5_INFINIBAND "
				 "with DEVX and the process CAP_NET_RAW");
		return -EOPNOTSUPP;
	}
	r = ask_kind(d);
	if (!r)
		r = -m->dv.query_eqn(d->context, 0, &d->eqn);
	if (!r) {
		d->uar = m->dv.alloc_uar(d->context, MLX5DV_UAR_ALLOC_TYPE_NC);
		r = d->uar ? 0 : -ENOMEM;
	}
	if (r)
		m->verbs->close(m->verbs, d->context);
	return r;
}

static int open_port(void *hw, int port, void **out)
{
	struct ha_gpu_mlx5 *m = hw;
	struct ha_mlx5_device *d = port >= 0 && port < m->nports ? calloc(1, sizeof(*d)) : NULL;
	int r;

	if (!d)
		return port >= 0 && port < m->nports ? -ENOMEM : -ENODEV;
	d->m = m;
	d->port = m->port[port].port;
	snprintf(d->name, sizeof(d->name), "%.58s:%u", m->port[port].device->name, d->port);
	r = set_up(d, m->port[port].device);
	if (r) {
		free(d);
		return r;
	}
	ha_mlx5_watch_begin(d);
	*out = d;
	return 0;
}

static int close_port(void *device)
{
	struct ha_mlx5_device *d = device;
	int r;

	ha_mlx5_watch_end(d);
	d->m->dv.free_uar(d->uar);
	r = d->m->verbs->close(d->m->verbs, d->context);
	free(d);
	return r;
}

/* ---- domains, memory ---- */

static int pd_alloc(void *device, void **out)
{
	struct ha_mlx5_device *d = device;
	struct ha_mlx5_pd *p = calloc(1, sizeof(*p));
	struct mlx5dv_pd dv = { 0 };
	struct mlx5dv_obj obj = { 0 };
	int r = p ? d->m->verbs->alloc_pd(d->m->verbs, d->context, &p->pd) : -ENOMEM;

	if (r) {
		free(p);
		return r;
	}
	obj.pd.in = p->pd;
	obj.pd.out = &dv;
	r = -d->m->dv.init_obj(&obj, MLX5DV_OBJ_PD);
	if (r) {
		d->m->verbs->dealloc_pd(d->m->verbs, p->pd);
		free(p);
		return r;
	}
	p->d = d;
	p->pdn = dv.pdn;
	pthread_mutex_init(&p->lock, NULL);
	*out = p;
	return 0;
}

static int pd_free(void *pd)
{
	struct ha_mlx5_pd *p = pd;
	int r;

	if (p->srq)
		p->d->m->verbs->destroy_srq(p->d->m->verbs, p->srq);
	r = p->d->m->verbs->dealloc_pd(p->d->m->verbs, p->pd);
	pthread_mutex_destroy(&p->lock);
	free(p);
	return r;
}

static int mem_alloc(void *hw, size_t bytes, void **memory)
{
	struct ha_gpu_mlx5 *m = hw;

	return m->memory.alloc(m->memory.self, bytes, memory);
}

static void mem_free(void *hw, void *memory, size_t bytes)
{
	struct ha_gpu_mlx5 *m = hw;

	m->memory.free(m->memory.self, memory, bytes);
}

static bool is_apart(void *hw, const void *memory)
{
	struct ha_gpu_mlx5 *m = hw;

	return m->memory.is_device && m->memory.is_device(m->memory.self, memory);
}

static int buf_map(void *device, void *memory, size_t bytes, void **out)
{
	struct ha_mlx5_device *d = device;
	struct ha_mlx5_buf *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	b->d = d;
	b->umem = d->m->dv.umem_reg(d->context, memory, bytes, IBV_ACCESS_LOCAL_WRITE);
	if (!b->umem) {
		free(b);
		return errno ? -errno : -ENOMEM;
	}
	*out = b;
	return 0;
}

static int buf_unmap(void *buf)
{
	struct ha_mlx5_buf *b = buf;
	int r = b->d->m->dv.umem_dereg(b->umem);

	free(b);
	return r > 0 ? -r : r;
}

/* The GPU's memory by dma-buf, where it is to be had. */
static int reg_device(struct ha_mlx5_pd *p, void *address, size_t bytes, unsigned access,
		      struct ibv_mr **mr)
{
	const struct ha_verbs_ops *v = p->d->m->verbs;
	const struct ha_gpu_mlx5_memory *m = &p->d->m->memory;
	uint64_t offset = 0;
	int fd = -1, r = m->dmabuf ? m->dmabuf(m->self, address, bytes, &fd, &offset) : -EOPNOTSUPP;

	if (r)
		return r;
	r = v->reg_dmabuf_mr(v, p->pd, offset, bytes, (uint64_t)(uintptr_t)address, fd, (int)access,
			     mr);
	close(fd);
	return r == -EPROTONOSUPPORT ? -EOPNOTSUPP : r; /* an older kernel's word for the same */
}

static int mr_reg(void *pd, void *address, size_t bytes, bool remote, struct ha_gpu_mr *mr)
{
	struct ha_mlx5_pd *p = pd;
	const struct ha_verbs_ops *v = p->d->m->verbs;
	unsigned access = IBV_ACCESS_LOCAL_WRITE |
			  (remote ? IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
					    IBV_ACCESS_REMOTE_ATOMIC
				  : 0);
	struct {
		const struct ha_verbs_ops *v;
		struct ibv_mr *mr;
	} *own = calloc(1, sizeof(*own));
	int r = own ? reg_device(p, address, bytes, access, &own->mr) : -ENOMEM;

	if (r == -EOPNOTSUPP)
		r = v->reg_mr(v, p->pd, address, bytes, (uint64_t)(uintptr_t)address, access,
			      &own->mr);
	if (r) {
		free(own);
		return r;
	}
	own->v = v;
	mr->own = own;
	mr->lkey = ha_gpu_be32(own->mr->lkey);
	mr->rkey = ha_gpu_be32(own->mr->rkey);
	return 0;
}

static int mr_dereg(struct ha_gpu_mr *mr)
{
	struct {
		const struct ha_verbs_ops *v;
		struct ibv_mr *mr;
	} *own = mr->own;
	int r = own->v->dereg_mr(own->v, own->mr);

	free(own);
	return r;
}

const struct ha_gpu_hw_ops ha_gpu_mlx5_ops = {
	.name = "mlx5",
	.ports = ports,
	.open = open_port,
	.close = close_port,
	.pd_alloc = pd_alloc,
	.pd_free = pd_free,
	.mem_alloc = mem_alloc,
	.mem_free = mem_free,
	.is_apart = is_apart,
	.buf_map = buf_map,
	.buf_unmap = buf_unmap,
	.mr_reg = mr_reg,
	.mr_dereg = mr_dereg,
	.cq_create = ha_mlx5_cq_create,
	.cq_destroy = ha_mlx5_cq_destroy,
	.qp_create = ha_mlx5_qp_create,
	.qp_destroy = ha_mlx5_qp_destroy,
	.qp_handle = ha_mlx5_qp_handle,
	.address = ha_mlx5_address,
	.qp_modify = ha_mlx5_qp_modify,
	.qp_drained = ha_mlx5_qp_drained,
	.port = ha_mlx5_port_state,
	.dct_create = ha_mlx5_dct_create,
	.dct_destroy = ha_mlx5_dct_destroy,
	.dct_av = ha_mlx5_dct_av,
};
