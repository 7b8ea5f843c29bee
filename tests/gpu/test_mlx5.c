/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_mlx5.c - the host library over the mlx5 table, with a libmlx5 and verbs of our own behind
 * it: which commands go out in which order, what they carry from one process to the other, and that
 * everything made is destroyed. No NIC: nothing is executed.
 */
#include "gpu/host/host.h"
#include "gpu/host/mlx5.h"
#include "gpu/host/stream.h"
#include "tests/ina/switch/named.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#define PES 2
#define NICS 2
#define OBJECTS 128

struct fake_obj {
	int pe;
	uint32_t number;
	unsigned opcode[16], n; /* commands it has seen */
	uint8_t rtr[272], made[272];
};

static struct ibv_device device[NICS] = { { .name = "mlx5_0" }, { .name = "mlx5_1" } };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct fake_obj object[OBJECTS];
static unsigned nobjects;
static long live;
static __thread int self; /* which process the set-up thread plays */
static char root[80];

static void *thing(size_t bytes)
{
	void *p = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);

	CHECK(p);
	memset(p, 0, bytes);
	__atomic_fetch_add(&live, 1, __ATOMIC_RELAXED);
	return p;
}

static int gone(void *p)
{
	__atomic_fetch_sub(&live, 1, __ATOMIC_RELAXED);
	free(p);
	return 0;
}

/* ---- events: how many of which kind a context's file holds; and it can be set to not waiting
 * ---- */

static int events_pipe(void)
{
	static int fd[2] = { -1, -1 };

	pthread_mutex_lock(&lock);
	if (fd[0] < 0)
		CHECK(!pipe(fd));
	pthread_mutex_unlock(&lock);
	return fd[0];
}

#define EVENTS 8
static struct ibv_async_event event[EVENTS];
static unsigned nevents, taken, acknowledged;
static int no_events; /* what is said where there are none */

static void happens(enum ibv_event_type type, int port)
{
	CHECK(nevents < EVENTS);
	event[nevents].event_type = type;
	event[nevents++].element.port_num = port;
}

/* ---- libmlx5 ---- */

static bool is_supported(struct ibv_device *d)
{
	return true;
}

static struct ibv_context *open_device(struct ibv_device *d, struct mlx5dv_context_attr *attr)
{
	struct ibv_context *c = thing(sizeof(*c));

	CHECK(attr->flags & MLX5DV_CONTEXT_FLAGS_DEVX);
	c->device = d;
	c->cmd_fd = self;
	c->async_fd = events_pipe();
	return c;
}

static int init_obj(struct mlx5dv_obj *obj, uint64_t type)
{
	static struct mlx5_wqe_av av = { .rmac = { 2, 4, 6, 8, 10, 12 } };

	if (type == MLX5DV_OBJ_PD)
		obj->pd.out->pdn = 0x5050;
	else if (type == MLX5DV_OBJ_SRQ)
		obj->srq.out->srqn = 0x6060;
	else
		obj->ah.out->av = &av;
	return 0;
}

static struct mlx5dv_devx_uar *alloc_uar(struct ibv_context *c, uint32_t flags)
{
	struct mlx5dv_devx_uar *u = thing(8192);

	u->reg_addr = (char *)u + 4096;
	u->page_id = 0x77;
	return u;
}

static void free_uar(struct mlx5dv_devx_uar *u)
{
	gone(u);
}

static int query_eqn(struct ibv_context *c, uint32_t vector, uint32_t *eqn)
{
	*eqn = 9;
	return 0;
}

static struct mlx5dv_devx_umem *umem_reg(struct ibv_context *c, void *address, size_t bytes,
					 uint32_t access)
{
	struct mlx5dv_devx_umem *u = thing(sizeof(*u));

	CHECK(!((uintptr_t)address & 4095));
	u->umem_id = 3;
	return u;
}

static int umem_dereg(struct mlx5dv_devx_umem *u)
{
	return gone(u);
}

static unsigned opcode_of(const void *in)
{
	const uint8_t *b = in;

	return (unsigned)(b[0] << 8 | b[1]);
}

static uint32_t field24(const uint8_t *b, unsigned byte)
{
	return (uint32_t)(b[byte] << 16 | b[byte + 1] << 8 | b[byte + 2]);
}

static struct mlx5dv_devx_obj *obj_create(struct ibv_context *c, const void *in, size_t n,
					  void *out, size_t out_bytes)
{
	struct fake_obj *o;

	pthread_mutex_lock(&lock);
	CHECK(nobjects < OBJECTS);
	o = &object[nobjects++];
	o->pe = c->cmd_fd;
	o->number = 0x1000 * (unsigned)(c->cmd_fd + 1) + nobjects;
	o->opcode[o->n++] = opcode_of(in);
	memcpy(o->made, in, n < sizeof(o->made) ? n : sizeof(o->made));
	pthread_mutex_unlock(&lock);
	((uint8_t *)out)[9] = (uint8_t)(o->number >> 16);
	((uint8_t *)out)[10] = (uint8_t)(o->number >> 8);
	((uint8_t *)out)[11] = (uint8_t)o->number;
	__atomic_fetch_add(&live, 1, __ATOMIC_RELAXED);
	return (struct mlx5dv_devx_obj *)o;
}

/* What the firmware does not do, and the errno that the kernel makes of it; and a device that is
 * not there any more. */
static unsigned refused_opcode;
static int refused_errno;
static bool device_gone;

static int obj_modify(struct mlx5dv_devx_obj *obj, const void *in, size_t n, void *out,
		      size_t out_bytes)
{
	struct fake_obj *o = (struct fake_obj *)obj;

	CHECK_INT(field24(in, 9), o->number);
	if (refused_opcode == opcode_of(in))
		return errno = refused_errno;
	if (o->n < 16)
		o->opcode[o->n++] = opcode_of(in);
	if (opcode_of(in) == 0x503)
		memcpy(o->rtr, in, sizeof(o->rtr));
	return 0;
}

static int obj_destroy(struct mlx5dv_devx_obj *obj)
{
	if (refused_opcode == 0x711) /* DESTROY_DCT, here of anything */
		return refused_errno;
	__atomic_fetch_sub(&live, 1, __ATOMIC_RELAXED);
	return 0;
}

static struct ibv_ah *create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	CHECK(attr->is_global && attr->grh.sgid_index == 3);
	return thing(sizeof(struct ibv_ah));
}

static int destroy_ah(struct ibv_ah *ah)
{
	return gone(ah);
}

static const struct ha_gpu_mlx5_dv dv = { is_supported, open_device, init_obj,    alloc_uar,
					  free_uar,     query_eqn,   umem_reg,    umem_dereg,
					  obj_create,   obj_modify,  obj_destroy, create_ah,
					  destroy_ah };

/* ---- verbs ---- */

#define V const struct ha_verbs_ops *v

static int device_list(V, struct ibv_device ***list, int *n)
{
	struct ibv_device **l = thing((NICS + 1) * sizeof(*l));

	for (int i = 0; i < NICS; i++)
		l[i] = &device[i];
	*list = l;
	*n = NICS;
	return 0;
}

static void device_list_free(V, struct ibv_device **list)
{
	gone(list);
}

static int open_plain(V, struct ibv_device *d, struct ibv_context **c)
{
	*c = thing(sizeof(**c));
	(*c)->device = d;
	return 0;
}

static int close_any(V, struct ibv_context *c)
{
	return gone(c);
}

static int query_device(V, struct ibv_context *c, struct ibv_device_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->phys_port_cnt = 1;
	attr->sys_image_guid = 0x100 + (uint64_t)(c->device - device);
	return 0;
}

static long queries;
static int query_fails;
static enum ibv_port_state port_state = IBV_PORT_ACTIVE;
static uint16_t lid;
static uint8_t gid_byte;

static int query_port(V, struct ibv_context *c, uint8_t port, struct ha_port_attr *attr)
{
	__atomic_fetch_add(&queries, 1, __ATOMIC_RELAXED);
	if (device_gone)
		return -EIO;
	if (query_fails)
		return query_fails;
	memset(attr, 0, sizeof(*attr));
	attr->attr.state = port_state;
	attr->attr.link_layer = IBV_LINK_LAYER_ETHERNET;
	attr->attr.active_mtu = IBV_MTU_4096;
	attr->attr.lid = lid;
	return 0;
}

static int get_async_event(V, struct ibv_context *c, struct ibv_async_event *e)
{
	if (taken == nevents)
		return no_events ? no_events : -EAGAIN;
	*e = event[taken++];
	return 0;
}

static void ack_async_event(V, struct ibv_async_event *e)
{
	acknowledged++;
}

static int query_gid(V, struct ibv_context *c, uint8_t port, int index, union ibv_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	gid->raw[9] = gid_byte;
	gid->raw[10] = gid->raw[11] = 0xff;
	gid->raw[15] = (uint8_t)(1 + c->cmd_fd * 16 + (c->device - device));
	return 0;
}

static int alloc_pd(V, struct ibv_context *c, struct ibv_pd **pd)
{
	*pd = thing(sizeof(**pd));
	return 0;
}

static int create_srq(V, struct ibv_pd *pd, struct ibv_srq_init_attr *attr, struct ibv_srq **srq)
{
	*srq = thing(sizeof(**srq));
	return 0;
}

static int destroy_srq(V, struct ibv_srq *srq)
{
	return gone(srq);
}

static int dealloc_pd(V, struct ibv_pd *pd)
{
	return gone(pd);
}

static int reg_mr(V, struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned access,
		  struct ibv_mr **mr)
{
	CHECK(iova == (uint64_t)(uintptr_t)addr && access & IBV_ACCESS_REMOTE_WRITE);
	*mr = thing(sizeof(**mr));
	return 0;
}

static long registered_dmabuf;
static int dmabuf_error; /* of a kernel or driver that takes none */

static int reg_dmabuf_mr(V, struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
			 int fd, int access, struct ibv_mr **mr)
{
	CHECK(offset == 64 && fd >= 0 && access & IBV_ACCESS_REMOTE_WRITE);
	if (dmabuf_error)
		return dmabuf_error;
	__atomic_fetch_add(&registered_dmabuf, 1, __ATOMIC_RELAXED);
	*mr = thing(sizeof(**mr));
	return 0;
}

static int dereg_mr(V, struct ibv_mr *mr)
{
	return gone(mr);
}

static struct ha_verbs_ops verbs = { .name = "fake",
				     .device_list = device_list,
				     .device_list_free = device_list_free,
				     .open = open_plain,
				     .close = close_any,
				     .query_device = query_device,
				     .query_port = query_port,
				     .query_gid = query_gid,
				     .get_async_event = get_async_event,
				     .ack_async_event = ack_async_event,
				     .alloc_pd = alloc_pd,
				     .dealloc_pd = dealloc_pd,
				     .create_srq = create_srq,
				     .destroy_srq = destroy_srq,
				     .reg_mr = reg_mr,
				     .reg_dmabuf_mr = reg_dmabuf_mr,
				     .dereg_mr = dereg_mr };

/* ---- a process ---- */

static int alloc(void *unused, size_t bytes, void **memory)
{
	*memory = thing(bytes);
	return 0;
}

static void release(void *unused, void *memory, size_t bytes)
{
	gone(memory);
}

/* As CUDA does: the register has another address at the GPU, where the host's agents find nothing;
 * what is mapped is given back. */
#define APART (UINT64_C(1) << 46)
static long mapped, ever;

static int map_doorbell(void *unused, void *page, void **device)
{
	__atomic_fetch_add(&mapped, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&ever, 1, __ATOMIC_RELAXED);
	*device = (void *)((uintptr_t)page + APART);
	return 0;
}

static void unmap_doorbell(void *unused, void *page)
{
	__atomic_fetch_sub(&mapped, 1, __ATOMIC_RELAXED);
}

/* The heap is the GPU's; what else is registered is not. */
static void *heap[PES];
static long exported;

static int dmabuf(void *unused, void *address, size_t bytes, int *fd, uint64_t *offset)
{
	if (address != heap[self])
		return -EOPNOTSUPP;
	*fd = dup(0);
	*offset = 64;
	__atomic_fetch_add(&exported, 1, __ATOMIC_RELAXED);
	return *fd < 0 ? -EIO : 0;
}

struct process {
	struct ha_gpu_host *host;
	struct ha_gpu_bootstrap b;
};

static struct process proc[PES];
static void (*body)(struct ha_gpu_host_config *c,
		    struct process *p); /* between the bootstrap and its end */
static const struct ha_gpu_mlx5_memory memory = { .alloc = alloc,
						  .free = release,
						  .map_doorbell = map_doorbell,
						  .unmap_doorbell = unmap_doorbell,
						  .dmabuf = dmabuf };

/* What entries carry names the peer's target, with its key, over the way that the kernel has
 * found. */
static void check_av(struct ha_gpu_host *h)
{
	struct ha_gpu_conn *c = ha_gpu_world_any(ha_gpu_host_world(h), 0, (uint32_t)!self);
	struct mlx5_wqe_av av;
	bool found = false;

	for (int path = 0; path < 2; path++) {
		memcpy(&av, c->path[path].av, sizeof(av));
		CHECK(c->path[path].wide && av.rmac[5] == 12);
		found = false;
		for (unsigned i = 0; i < nobjects; i++)
			found |= object[i].opcode[0] == 0x710 && object[i].pe != self &&
				 !memcmp(object[i].made + 48, &av.key, 8) &&
				 ha_gpu_be32(av.dqp_dct) == (object[i].number | 1u << 31);
		CHECK(found);
	}
}

/* GPU threads ring where the GPU has the register, the host's threads where they have it; agents
 * rang the GPU's. */
static void check_doorbells(struct ha_gpu_host *h, uint64_t apart)
{
	struct ha_gpu_conn *c = ha_gpu_world_any(ha_gpu_host_world(h), 0, (uint32_t)!self);

	CHECK_INT(ha_gpu_signal(c, 0, 1, 0, 0), HA_GPU_DONE);
	for (int path = 0; path < 2; path++) {
		CHECK_INT((uint64_t)(uintptr_t)c->path[path].bf -
				  (uint64_t)(uintptr_t)c->path[path].host_bf,
			  apart);
		/* what we posted, and the agent's probe */
		while (!ha_gpu_load(c->path[path].host_bf))
			sched_yield();
	}
	CHECK(c->now.bf == c->path[0].bf && c->now.host_bf == c->path[0].host_bf);
}

static void connect_all(struct ha_gpu_host_config *c, struct process *p)
{
	CHECK(!ha_gpu_host_open(c, &p->host));
	CHECK(!ha_gpu_host_connect(p->host, 1, 1));
	check_doorbells(p->host, APART);
	/* no NIC has done what was posted */
	CHECK_INT(ha_gpu_host_finalize(p->host, 100), -ETIMEDOUT);
	/* A ring of completions is refused, and all is given back. */
	c->settings.cq_collapsed = 0;
	CHECK(!ha_gpu_host_open(c, &p->host));
	CHECK_INT(ha_gpu_host_connect(p->host, 1, 1), -EOPNOTSUPP);
	CHECK(!ha_gpu_host_finalize(p->host, 20000));
}

static void connect_dynamic(struct ha_gpu_host_config *c, struct process *p)
{
	c->settings.traffic_class = 0x6a;
	c->settings.service_level = 5;
	CHECK(!ha_gpu_host_open(c, &p->host));
	CHECK(!ha_gpu_host_connect_dc(p->host, 1, 1));
	check_av(p->host);
	CHECK(!ha_gpu_host_connect(p->host, 1, 1));
	CHECK(!ha_gpu_host_finalize(p->host, 20000));
}

static void *process(void *arg)
{
	struct ha_gpu_host_config c = { .ops = &ha_gpu_mlx5_ops, .heap_bytes = 1 << 16 };
	struct ha_gpu_mlx5 m = { .verbs = &verbs, .dv = dv, .gid_index = -1, .memory = memory };
	struct process *p = arg;

	self = (int)(p - proc);
	CHECK(!ha_gpu_bootstrap_tcp(&p->b, root, self, PES, 5, 20000));
	ha_gpu_settings_defaults(&c.settings);
	c.hw = &m;
	c.bootstrap = &p->b;
	c.heap = heap[self] = thing(c.heap_bytes);
	body(&c, p);
	ha_gpu_bootstrap_close(&p->b);
	device_list_free(&verbs, m.list);
	gone(c.heap);
	return NULL;
}

static struct fake_obj *by_number(uint32_t number)
{
	for (unsigned i = 0; i < nobjects; i++)
		if (object[i].number == number)
			return &object[i];
	return NULL;
}

/* Reset, initialised, told of a peer that in turn was told of it, ready to send; then stopped,
 * after whatever the agents did. */
static void check_queue_pair(const struct fake_obj *o)
{
	static const unsigned way[] = { 0x500, 0x50a, 0x502, 0x503, 0x504 };
	const struct fake_obj *peer = by_number(field24(o->rtr, 24 + 0xa8 / 8));

	for (unsigned i = 0; i < 5; i++)
		CHECK_INT(o->opcode[i], way[i]);
	CHECK(o->n > 5 && o->opcode[5] == 0x507);
	CHECK(peer && peer->opcode[0] == 0x500 && peer->pe != o->pe);
	CHECK_INT(field24(peer->rtr, 24 + 0xa8 / 8), o->number);
	CHECK_INT(o->rtr[24 + 24 + 0x130 / 8 + 5], 12); /* the next hop's MAC */
	CHECK_INT(o->rtr[24 + 24 + 0x80 / 8 + 15] / 16, peer->pe);
}

static void run_both(void (*does)(struct ha_gpu_host_config *c, struct process *p))
{
	pthread_t t[PES];

	body = does;
	CHECK(!ha_gpu_stream_free_local(root));
	for (int i = 0; i < PES; i++)
		CHECK(!pthread_create(&t[i], NULL, process, &proc[i]));
	for (int i = 0; i < PES; i++)
		pthread_join(t[i], NULL);
}

static void dynamic(void)
{
	unsigned initiators = 0, targets = 0, connected = 0;

	run_both(connect_dynamic);
	for (unsigned i = 0; i < nobjects; i++) {
		const struct fake_obj *o = &object[i];

		targets += o->opcode[0] == 0x710;
		/* what a target answers went in class 0, whatever was set */
		if (o->opcode[0] == 0x710) {
			CHECK_INT(o->made[44], 0x6a);
			CHECK_INT(o->made[70], 5);
			CHECK_INT(o->made[71], 0x6a >> 2);
		}
		if (o->opcode[0] == 0x500 && o->made[25] == 5) {
			initiators++;
			CHECK_INT(o->opcode[2], 0x502);
			CHECK_INT(o->opcode[3], 0x503);
			CHECK_INT(o->opcode[4], 0x504);
			CHECK_INT(field24(o->rtr, 24 + 0xa8 / 8), 0); /* it has no peer */
		} else if (o->opcode[0] == 0x500) {
			connected++;
			check_queue_pair(o);
		}
	}
	CHECK_INT(initiators, PES * NICS * 2);
	CHECK_INT(targets, initiators);
	CHECK_INT(connected, initiators);
	CHECK_INT(live, 0);
	CHECK_INT(mapped, 0);
}

static void connect_proxied(struct ha_gpu_host_config *c, struct process *p)
{
	c->settings.proxied = 1;
	CHECK(!ha_gpu_host_open(c, &p->host));
	CHECK(!ha_gpu_host_connect(p->host, 1, 1));
	check_doorbells(p->host, 0);
	CHECK_INT(ha_gpu_host_finalize(p->host, 100), -ETIMEDOUT);
}

static void connect_at_8(struct ha_gpu_host_config *c, struct process *p)
{
	c->settings.service_level = 8;
	CHECK(!ha_gpu_host_open(c, &p->host));
	CHECK_INT(ha_gpu_host_connect(p->host, 1, 1), -EINVAL);
	CHECK_INT(ha_gpu_host_connect_dc(p->host, 1, 1), -EINVAL);
	CHECK(!ha_gpu_host_finalize(p->host, 100));
}

/* RoCE has priorities 0 to 7: of what was set beyond, three bits were taken, without a word. */
static void priority_of_roce(void)
{
	run_both(connect_at_8);
	CHECK_INT(live, 0);
	CHECK_INT(mapped, 0);
}

/* HA_GPU_PROXY=1 is what to do where no doorbell can be had at the GPU, and it asked for one all
 * the same. */
static void proxied(void)
{
	run_both(connect_proxied);
	CHECK_INT(ever, 0);
	CHECK_INT(mapped, 0);
	CHECK_INT(live, 0);
}

static void two_processes(void)
{
	unsigned qps = 0, cqs = 0;

	run_both(connect_all);
	for (unsigned i = 0; i < nobjects; i++) {
		cqs += object[i].opcode[0] == 0x400;
		qps += object[i].opcode[0] == 0x500;
		if (object[i].opcode[0] == 0x500)
			check_queue_pair(&object[i]);
	}
	/* Two devices, a primary and a backup on each, one peer. */
	CHECK_INT(qps, PES * NICS * 2);
	CHECK_INT(cqs, qps);
	CHECK_INT(live, 0);
	CHECK_INT(
		ever,
		qps); /* each has its doorbell at the GPU, and all are given back: they were not */
	CHECK_INT(mapped, 0);
	CHECK_INT(exported, PES * NICS * 2);
	CHECK_INT(registered_dmabuf, exported);
}

static void qp_is_not_fenced(const struct ha_gpu_hw_ops *ops, struct ha_gpu_hw_qp *qp,
			     uint32_t *dbrec)
{
	struct ha_gpu_rc_link link = { .timeout = 14 };
	int r;

	refused_errno = EIO;
	refused_opcode = 0x507; /* 2ERR_QP */
	r = ops->qp_modify(qp, HA_GPU_QP_ERR, &link);
	CHECK(r < 0 && r != -EIO);
	device_gone = true;
	CHECK_INT(ops->qp_modify(qp, HA_GPU_QP_ERR, &link), -EIO);
	device_gone = false;

	dbrec[HA_GPU_DBR_SEND] = ha_gpu_be32(3); /* three were rung, and no completion comes */
	refused_opcode = 0x50a;                  /* 2RST_QP */
	do
		r = ops->qp_drained(qp);
	while (r == -EAGAIN);
	CHECK(r < 0 && r != -EIO);
}

static void dct_is_not_fenced(const struct ha_gpu_hw_ops *ops, struct ha_gpu_hw_dct *dct)
{
	int r;

	refused_opcode = 0x711;
	r = ops->dct_destroy(dct);
	CHECK(r < 0 && r != -EIO);
	refused_opcode = 0;
	CHECK_INT(ops->dct_destroy(dct), 0);
}

/* Only a device that is gone says -EIO, which is as good as a fence. A firmware that refuses may
 * have the kernel say EIO, too, and the queue pair or target goes on taking what comes: that was
 * taken for a fence. */
static void refused_is_no_fence(void)
{
	const struct ha_gpu_hw_ops *ops = &ha_gpu_mlx5_ops;
	struct ha_gpu_mlx5 m = { .verbs = &verbs,
				 .dv = dv,
				 .gid_index = -1,
				 .memory = { .alloc = alloc, .free = release } };
	struct ha_gpu_port_info list[HA_GPU_PORTS_MAX];
	struct ha_gpu_rc_link link = { .timeout = 14 };
	struct ha_gpu_hw_dct dct = { 0 };
	struct ha_gpu_hw_qp qp = { 0 };
	void *port, *pd, *cq, *memory, *buf;
	struct ha_gpu_cq_attr c = { 0 };
	struct ha_gpu_qp_attr a = { .nwqes = 64 };

	CHECK_INT(ops->ports(&m, list, HA_GPU_PORTS_MAX), NICS);
	CHECK(!ops->open(&m, 0, &port) && !ops->pd_alloc(port, &pd) &&
	      !ops->mem_alloc(&m, 8192, &memory));
	CHECK(!ops->buf_map(port, memory, 8192, &buf));
	c.buf = c.dbr_buf = a.buf = a.dbr_buf = buf;
	c.cqe = memory;
	c.dbrec = (uint32_t *)memory + 32;
	a.dbrec = (uint32_t *)memory + 64;
	CHECK(!ops->cq_create(port, &c, &cq));
	a.cq = cq;
	CHECK(!ops->qp_create(pd, &a, &qp) && !ops->dct_create(pd, cq, &link, 5, &dct));
	qp_is_not_fenced(ops, &qp, a.dbrec);
	dct_is_not_fenced(ops, &dct);
	CHECK(!ops->qp_destroy(&qp) && !ops->cq_destroy(cq) && !ops->buf_unmap(buf));
	ops->mem_free(&m, memory, 8192);
	CHECK(!ops->pd_free(pd) && !ops->close(port));
	device_list_free(&verbs, m.list);
	CHECK_INT(live, 0);
}

/* ---- ports ---- */

static struct ha_gpu_mlx5 alone;

static void *one_port(void)
{
	struct ha_gpu_port_info list[HA_GPU_PORTS_MAX];
	void *port;

	alone = (struct ha_gpu_mlx5) { .verbs = &verbs,
				       .dv = dv,
				       .gid_index = -1,
				       .memory = { .alloc = alloc, .free = release } };
	CHECK_INT(ha_gpu_mlx5_ops.ports(&alone, list, HA_GPU_PORTS_MAX), NICS);
	CHECK(!ha_gpu_mlx5_ops.open(&alone, 0, &port));
	return port;
}

static void end_port(void *port)
{
	CHECK(!ha_gpu_mlx5_ops.close(port));
	device_list_free(&verbs, alone.list);
	CHECK_INT(live, 0);
	CHECK_INT(acknowledged, taken);
}

/* As an agent asks, at every step. */
static void wait_for_port(void *port, enum ha_gpu_port state)
{
	while (ha_gpu_mlx5_ops.port(port) != state)
		sched_yield();
}

/* A query is a command to the firmware, and every step of every connection sent one. */
static void port_is_asked_seldom(void)
{
	void *port = one_port();
	uint64_t begin = ha_gpu_now(), seconds;

	queries = 0;
	for (unsigned i = 0; i < 100000; i++)
		CHECK_INT(ha_gpu_mlx5_ops.port(port), HA_GPU_PORT_UP);
	seconds = (ha_gpu_now() - begin) / 1000000000;
	CHECK(queries <= (long)seconds + 2);
	end_port(port);
}

/* What events say counts at once; of another port they say nothing. And what no event has said is
 * found out all the same. */
static void events_tell(void)
{
	void *port = one_port();
	long before;

	happens(IBV_EVENT_PORT_ERR, 2);
	happens(IBV_EVENT_LID_CHANGE, 1);
	while (taken < nevents)
		CHECK_INT(ha_gpu_mlx5_ops.port(port), HA_GPU_PORT_UP);
	port_state = IBV_PORT_DOWN;
	happens(IBV_EVENT_PORT_ERR, 1);
	wait_for_port(port, HA_GPU_PORT_DOWN);
	before = queries;
	port_state = IBV_PORT_ACTIVE;
	happens(IBV_EVENT_PORT_ACTIVE, 1);
	wait_for_port(port, HA_GPU_PORT_UP);
	CHECK(queries > before);
	port_state = IBV_PORT_DOWN; /* without an event */
	wait_for_port(port, HA_GPU_PORT_DOWN);
	port_state = IBV_PORT_ACTIVE;
	wait_for_port(port, HA_GPU_PORT_UP);
	happens(IBV_EVENT_DEVICE_FATAL, 0);
	wait_for_port(port, HA_GPU_PORT_GONE);
	before = queries;
	for (uint64_t end = ha_gpu_now() + 1100000000; ha_gpu_now() < end;)
		CHECK_INT(ha_gpu_mlx5_ops.port(port), HA_GPU_PORT_GONE); /* for good */
	CHECK_INT(queries, before);
	end_port(port);
}

/* Events that end are a device that goes, which the query says. One that fails otherwise says
 * nothing: it was taken for a device that is gone, and that for a fence. */
static void query_that_fails(void)
{
	void *port = one_port();
	long before = queries;

	query_fails = -ENOMEM;
	happens(IBV_EVENT_PORT_ACTIVE, 1); /* asks */
	while (queries == before)
		CHECK_INT(ha_gpu_mlx5_ops.port(port), HA_GPU_PORT_UP);
	CHECK_INT(ha_gpu_mlx5_ops.port(port), HA_GPU_PORT_UP);
	no_events = -EIO;
	device_gone = true;
	wait_for_port(port, HA_GPU_PORT_GONE);
	end_port(port);
}

/* A port may come back with another LID, or GID at the same index. */
static void address_is_read_anew(void)
{
	struct ha_gpu_rc_handle first = { 0 }, second = { 0 };
	void *port = one_port();

	lid = 3;
	CHECK(!ha_gpu_mlx5_ops.address(port, &first));
	lid = 0xbeef;
	gid_byte = 7;
	CHECK(!ha_gpu_mlx5_ops.address(port, &second));
	CHECK_INT(first.lid, 3);
	CHECK_INT(second.lid, 0xbeef);
	CHECK(first.spn == second.spn && first.iid != second.iid && second.ethernet);
	CHECK_INT(second.mtu, IBV_MTU_4096);
	device_gone = true;
	CHECK_INT(ha_gpu_mlx5_ops.address(port, &second), -EIO);
	end_port(port);
}

static int any_dmabuf(void *unused, void *address, size_t bytes, int *fd, uint64_t *offset)
{
	*fd = dup(0);
	*offset = 64;
	return *fd < 0 ? -EIO : 0;
}

/* A kernel without dma-buf for this NIC says one of two words: the memory is registered like any
 * other (nvidia-peermem may take it). One of them ended the set-up. */
static void dmabuf_not_taken(void)
{
	static const int words[] = { -EOPNOTSUPP, -EPROTONOSUPPORT };
	void *port = one_port(), *pd;
	struct ha_gpu_mr mr;
	char byte[64];

	alone.memory.dmabuf = any_dmabuf;
	CHECK(!ha_gpu_mlx5_ops.pd_alloc(port, &pd));
	for (unsigned i = 0; i < 2; i++) {
		dmabuf_error = words[i];
		CHECK_INT(ha_gpu_mlx5_ops.mr_reg(pd, byte, sizeof(byte), true, &mr), 0);
		CHECK(!ha_gpu_mlx5_ops.mr_dereg(&mr));
	}
	dmabuf_error = -ENOMEM;
	CHECK_INT(ha_gpu_mlx5_ops.mr_reg(pd, byte, sizeof(byte), true, &mr), -ENOMEM);
	CHECK(!ha_gpu_mlx5_ops.pd_free(pd));
	end_port(port);
}

/* A libmlx5 that lacks calls: what was closed already is not closed again by whoever cleans up. */
static void old(void)
{
	struct ha_gpu_mlx5 m;

	CHECK_INT(ha_gpu_mlx5_init(&m, &verbs, NULL), -ENOENT);
	CHECK(!m.library);
	ha_gpu_mlx5_fini(&m);
}

static const struct named_test tests[] = {
	{ "two_processes", two_processes },
	{ "proxied", proxied },
	{ "priority_of_roce", priority_of_roce },
	{ "refused_is_no_fence", refused_is_no_fence },
	{ "port_is_asked_seldom", port_is_asked_seldom },
	{ "events_tell", events_tell },
	{ "query_that_fails", query_that_fails },
	{ "address_is_read_anew", address_is_read_anew },
	{ "dmabuf_not_taken", dmabuf_not_taken },
	{ "old", old },
	{ "dynamic", dynamic },
};

int main(int argc, char **argv)
{
	return NAMED_TESTS_RUN(tests, argc, argv);
}
