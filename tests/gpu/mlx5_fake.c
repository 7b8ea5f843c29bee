/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/gpu/mlx5_fake.h"

#include "base/check.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct ibv_device fake_device[DEVICES_MAX] = { { .name = "mlx5_0" }, { .name = "mlx5_1" },
					       { .name = "mlx5_2" }, { .name = "mlx5_3" },
					       { .name = "mlx5_4" }, { .name = "mlx5_5" },
					       { .name = "mlx5_6" }, { .name = "mlx5_7" } };
int fake_ndevices = NICS;
uint64_t fake_one_card;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
struct fake_obj fake_object[OBJECTS];
unsigned fake_nobjects;
long fake_live;
__thread int fake_self; /* which process the set-up thread plays */
char fake_root[80];

void *fake_alloc(size_t bytes)
{
	void *p = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);

	CHECK(p);
	memset(p, 0, bytes);
	__atomic_fetch_add(&fake_live, 1, __ATOMIC_RELAXED);
	return p;
}

int fake_free(void *p)
{
	__atomic_fetch_sub(&fake_live, 1, __ATOMIC_RELAXED);
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
unsigned fake_nevents, fake_taken, fake_acknowledged;
int fake_no_events; /* what is said where there are none */

void fake_report_event(enum ibv_event_type type, int port)
{
	CHECK(fake_nevents < EVENTS);
	event[fake_nevents].event_type = type;
	event[fake_nevents++].element.port_num = port;
}

/* ---- libmlx5 ---- */

#define FAKE_DEDICATED (1u << 31) /* rdma-core 45 and newer */
#define FAKE_SHARED 1

static bool is_supported(struct ibv_device *d)
{
	return true;
}

/* With the register that it hands out to all who ask for one of its own kind (NC). */
struct context {
	struct ibv_context c;
	struct mlx5dv_devx_uar *shared;
};

static struct ibv_context *open_device(struct ibv_device *d, struct mlx5dv_context_attr *attr)
{
	struct ibv_context *c = fake_alloc(sizeof(struct context));

	CHECK(attr->flags & MLX5DV_CONTEXT_FLAGS_DEVX);
	c->device = d;
	c->cmd_fd = fake_self;
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

bool fake_no_dedicated, fake_no_blueflame;

static struct mlx5dv_devx_uar *make_register(void)
{
	struct mlx5dv_devx_uar *u = fake_alloc(8192);

	u->reg_addr = (char *)u + 4096;
	u->page_id = 0x77;
	return u;
}

/* As rdma-core: NC is one register of the context, whoever asks; it ends with the context. */
static struct mlx5dv_devx_uar *alloc_uar(struct ibv_context *c, uint32_t flags)
{
	struct context *context = (struct context *)c;

	if (flags & MLX5DV_UAR_ALLOC_TYPE_NC) {
		if (!context->shared) {
			context->shared = make_register();
			context->shared->comp_mask = FAKE_SHARED;
		}
		return context->shared;
	}
	if (flags & FAKE_DEDICATED ? fake_no_dedicated : fake_no_blueflame) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	return make_register();
}

static void free_uar(struct mlx5dv_devx_uar *u)
{
	if (u->comp_mask != FAKE_SHARED)
		fake_free(u);
}

static int query_eqn(struct ibv_context *c, uint32_t vector, uint32_t *eqn)
{
	*eqn = 9;
	return 0;
}

static struct mlx5dv_devx_umem *umem_reg(struct ibv_context *c, void *address, size_t bytes,
					 uint32_t access)
{
	struct mlx5dv_devx_umem *u = fake_alloc(sizeof(*u));

	CHECK(!((uintptr_t)address & 4095));
	u->umem_id = 3;
	return u;
}

static int umem_dereg(struct mlx5dv_devx_umem *u)
{
	return fake_free(u);
}

static unsigned opcode_of(const void *in)
{
	const uint8_t *b = in;

	return (unsigned)(b[0] << 8 | b[1]);
}

uint32_t fake_field24(const uint8_t *b, unsigned byte)
{
	return (uint32_t)(b[byte] << 16 | b[byte + 1] << 8 | b[byte + 2]);
}

static struct mlx5dv_devx_obj *obj_create(struct ibv_context *c, const void *in, size_t n,
					  void *out, size_t out_bytes)
{
	struct fake_obj *o;

	pthread_mutex_lock(&lock);
	CHECK(fake_nobjects < OBJECTS);
	o = &fake_object[fake_nobjects++];
	o->pe = c->cmd_fd;
	o->number = 0x1000 * (unsigned)(c->cmd_fd + 1) + fake_nobjects;
	o->opcode[o->n++] = opcode_of(in);
	memcpy(o->made, in, n < sizeof(o->made) ? n : sizeof(o->made));
	pthread_mutex_unlock(&lock);
	((uint8_t *)out)[9] = (uint8_t)(o->number >> 16);
	((uint8_t *)out)[10] = (uint8_t)(o->number >> 8);
	((uint8_t *)out)[11] = (uint8_t)o->number;
	__atomic_fetch_add(&fake_live, 1, __ATOMIC_RELAXED);
	return (struct mlx5dv_devx_obj *)o;
}

/* What the firmware does not do, and the errno that the kernel makes of it; and a device that is
 * not there any more. */
unsigned fake_refused_opcode;
int fake_refused_errno;
bool fake_device_gone;

static int obj_modify(struct mlx5dv_devx_obj *obj, const void *in, size_t n, void *out,
		      size_t out_bytes)
{
	struct fake_obj *o = (struct fake_obj *)obj;

	CHECK_INT(fake_field24(in, 9), o->number);
	if (fake_refused_opcode == opcode_of(in))
		return errno = fake_refused_errno;
	if (o->n < 16)
		o->opcode[o->n++] = opcode_of(in);
	if (opcode_of(in) == 0x503)
		memcpy(o->rtr, in, sizeof(o->rtr));
	return 0;
}

static int obj_destroy(struct mlx5dv_devx_obj *obj)
{
	if (fake_refused_opcode == 0x711) /* DESTROY_DCT, here of anything */
		return fake_refused_errno;
	__atomic_fetch_sub(&fake_live, 1, __ATOMIC_RELAXED);
	return 0;
}

static struct ibv_ah *create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	CHECK(attr->is_global && attr->grh.sgid_index == 3);
	return fake_alloc(sizeof(struct ibv_ah));
}

static int destroy_ah(struct ibv_ah *ah)
{
	return fake_free(ah);
}

const struct ha_gpu_mlx5_dv fake_dv = { is_supported, open_device, init_obj,    alloc_uar,
					free_uar,     query_eqn,   umem_reg,    umem_dereg,
					obj_create,   obj_modify,  obj_destroy, create_ah,
					destroy_ah };

/* ---- verbs ---- */

#define V const struct ha_verbs_ops *v

static int device_list(V, struct ibv_device ***list, int *n)
{
	struct ibv_device **l = fake_alloc((DEVICES_MAX + 1) * sizeof(*l));

	for (int i = 0; i < fake_ndevices; i++)
		l[i] = &fake_device[i];
	*list = l;
	*n = fake_ndevices;
	return 0;
}

static void device_list_free(V, struct ibv_device **list)
{
	fake_free(list);
}

static int open_plain(V, struct ibv_device *d, struct ibv_context **c)
{
	*c = fake_alloc(sizeof(struct context));
	(*c)->device = d;
	return 0;
}

static int close_any(V, struct ibv_context *c)
{
	struct context *context = (struct context *)c;

	if (context->shared)
		fake_free(context->shared);
	return fake_free(c);
}

static int query_device(V, struct ibv_context *c, struct ibv_device_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->phys_port_cnt = 1;
	attr->sys_image_guid = 0x100 + (uint64_t)(c->device - fake_device);
	if (fake_one_card)
		attr->sys_image_guid = fake_one_card;
	return 0;
}

long fake_queries;
int fake_query_fails;
enum ibv_port_state fake_port_state = IBV_PORT_ACTIVE;
uint16_t fake_lid;
uint8_t fake_gid_byte;

static int query_port(V, struct ibv_context *c, uint8_t port, struct ha_port_attr *attr)
{
	__atomic_fetch_add(&fake_queries, 1, __ATOMIC_RELAXED);
	if (fake_device_gone)
		return -EIO;
	if (fake_query_fails)
		return fake_query_fails;
	memset(attr, 0, sizeof(*attr));
	attr->attr.state = fake_port_state;
	attr->attr.link_layer = IBV_LINK_LAYER_ETHERNET;
	attr->attr.active_mtu = IBV_MTU_4096;
	attr->attr.lid = fake_lid;
	return 0;
}

static int get_async_event(V, struct ibv_context *c, struct ibv_async_event *e)
{
	if (fake_taken == fake_nevents)
		return fake_no_events ? fake_no_events : -EAGAIN;
	*e = event[fake_taken++];
	return 0;
}

static void ack_async_event(V, struct ibv_async_event *e)
{
	fake_acknowledged++;
}

static int query_gid(V, struct ibv_context *c, uint8_t port, int index, union ibv_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	gid->raw[9] = fake_gid_byte;
	gid->raw[10] = gid->raw[11] = 0xff;
	gid->raw[15] = (uint8_t)(1 + c->cmd_fd * 16 + (c->device - fake_device));
	return 0;
}

static int alloc_pd(V, struct ibv_context *c, struct ibv_pd **pd)
{
	*pd = fake_alloc(sizeof(**pd));
	return 0;
}

static int create_srq(V, struct ibv_pd *pd, struct ibv_srq_init_attr *attr, struct ibv_srq **srq)
{
	*srq = fake_alloc(sizeof(**srq));
	return 0;
}

static int destroy_srq(V, struct ibv_srq *srq)
{
	return fake_free(srq);
}

static int dealloc_pd(V, struct ibv_pd *pd)
{
	return fake_free(pd);
}

static int reg_mr(V, struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned access,
		  struct ibv_mr **mr)
{
	CHECK(iova == (uint64_t)(uintptr_t)addr && access & IBV_ACCESS_REMOTE_WRITE);
	*mr = fake_alloc(sizeof(**mr));
	return 0;
}

long fake_registered_dmabuf;
int fake_dmabuf_error; /* of a kernel or driver that takes none */

static int reg_dmabuf_mr(V, struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
			 int fd, int access, struct ibv_mr **mr)
{
	CHECK(offset == 64 && fd >= 0 && access & IBV_ACCESS_REMOTE_WRITE);
	if (fake_dmabuf_error)
		return fake_dmabuf_error;
	__atomic_fetch_add(&fake_registered_dmabuf, 1, __ATOMIC_RELAXED);
	*mr = fake_alloc(sizeof(**mr));
	return 0;
}

static int dereg_mr(V, struct ibv_mr *mr)
{
	return fake_free(mr);
}

struct ha_verbs_ops fake_verbs = { .name = "fake",
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
