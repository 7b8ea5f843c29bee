/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/plugin/dummy.h"

#include "base/check.h"

#include <errno.h>

static struct dummy *dummy_of(const struct ha_verbs_ops *v)
{
	return (struct dummy *)(void *)v;
}

#define V const struct ha_verbs_ops *v

static void *create_object(V, size_t size)
{
	dummy_of(v)->fake.objects++;
	return calloc(1, size);
}

static int destroy_object(V, void *p)
{
	CHECK(p != NULL);
	dummy_of(v)->fake.objects--;
	free(p);
	return 0;
}

static uint32_t draw_number(V)
{
	return ++dummy_of(v)->next_number + 100;
}

static int (*fake_query_device)(V, struct ibv_context *context, struct ibv_device_attr *attr);
static int (*fake_open)(V, struct ibv_device *device, struct ibv_context **context);

static int query_device(V, struct ibv_context *context, struct ibv_device_attr *attr)
{
	int err = fake_query_device(v, context, attr);

	attr->max_qp_wr = 32768;
	attr->max_srq_wr = 32767;
	return err;
}

static int open_device(V, struct ibv_device *device, struct ibv_context **context)
{
	int err = fake_open(v, device, context);

	if (!err)
		(*context)->async_fd = -1;
	return err;
}

static int get_async_event(V, struct ibv_context *context, struct ibv_async_event *event)
{
	struct dummy *d = dummy_of(v);

	if (!d->nevents || strcmp(context->device->name, d->devices[0].name) != 0)
		return -EAGAIN;
	*event = d->events[0];
	memmove(d->events, d->events + 1, (size_t)--d->nevents * sizeof(*event));
	return 0;
}

static int register_range(V, struct ibv_pd *pd, void *addr, size_t length, unsigned access,
			  struct ibv_mr **mr)
{
	struct dummy *d = dummy_of(v);

	d->last_access = access;
	if (access & d->refused_access)
		return d->refused_error;
	if (d->mr_limit && d->mrs >= d->mr_limit)
		return -ENOMEM;
	d->mrs++;
	d->relaxed_mrs += (access & IBV_ACCESS_RELAXED_ORDERING) != 0;
	*mr = create_object(v, sizeof(**mr));
	**mr = (struct ibv_mr) { .context = pd->context, .pd = pd, .addr = addr, .length = length };
	(*mr)->lkey = (*mr)->rkey = draw_number(v);
	return 0;
}

static int reg_mr(V, struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned access,
		  struct ibv_mr **mr)
{
	CHECK((uintptr_t)addr == iova);
	return register_range(v, pd, addr, length, access, mr);
}

static int reg_dmabuf_mr(V, struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
			 int fd, int access, struct ibv_mr **mr)
{
	if (fd > 1000) /* what topo asks with */
		return -EOPNOTSUPP;
	dummy_of(v)->last_offset = offset;
	return register_range(v, pd, (void *)(uintptr_t)iova, length, (unsigned)access, mr);
}

static int reg_data_direct_mr(V, struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
			      int fd, int access, struct ibv_mr **mr)
{
	dummy_of(v)->direct_mrs++;
	return reg_dmabuf_mr(v, pd, offset, length, iova, fd, access, mr);
}

static int dereg_mr(V, struct ibv_mr *mr)
{
	dummy_of(v)->mrs--;
	return destroy_object(v, mr);
}

static int create_cq(V, struct ibv_context *context, int cqe, void *user,
		     struct ibv_comp_channel *channel, int vector, struct ibv_cq **cq)
{
	*cq = create_object(v, sizeof(**cq));
	(*cq)->context = context;
	(*cq)->cq_context = user;
	return 0;
}

static int destroy_cq(V, struct ibv_cq *cq)
{
	return destroy_object(v, cq);
}

static int create_srq(V, struct ibv_pd *pd, struct ibv_srq_init_attr *attr, struct ibv_srq **srq)
{
	*srq = create_object(v, sizeof(**srq));
	(*srq)->context = pd->context;
	return 0;
}

static int destroy_srq(V, struct ibv_srq *srq)
{
	return destroy_object(v, srq);
}

static int create_qp(V, struct ibv_pd *pd, struct ibv_qp_init_attr *attr, struct ibv_qp **qp)
{
	struct dummy *d = dummy_of(v);

	if (d->inline_limit && attr->cap.max_inline_data > d->inline_limit)
		return -EINVAL;
	d->flush_qps += !attr->srq;
	*qp = create_object(v, sizeof(**qp));
	(*qp)->context = pd->context;
	(*qp)->qp_context = attr->qp_context;
	(*qp)->qp_num = draw_number(v);
	(*qp)->state = IBV_QPS_RESET;
	return 0;
}

static int query_unordered(V, struct ibv_context *context)
{
	const struct dummy *d = dummy_of(v);
	bool second = !strcmp(context->device->name, "dummy1");

	return d->unordered && !(second && d->first_alone) ? 0 : -EOPNOTSUPP;
}

static int create_unordered_qp(V, struct ibv_pd *pd, struct ibv_qp_init_attr *attr,
			       struct ibv_qp **qp)
{
	struct dummy *d = dummy_of(v);

	*qp = NULL;
	if (d->unordered_error)
		return d->unordered_error;
	d->unordered_qps++;
	return create_qp(v, pd, attr, qp);
}

static int modify_qp(V, struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct dummy *d = dummy_of(v);

	CHECK(mask & IBV_QP_STATE);
	if (attr->qp_state == IBV_QPS_INIT) {
		CHECK_INT(qp->state, IBV_QPS_RESET);
		CHECK(mask & IBV_QP_PKEY_INDEX);
		d->last_init = *attr;
	}
	if (attr->qp_state == IBV_QPS_RTR) {
		CHECK_INT(qp->state, IBV_QPS_INIT);
		d->last_rtr = *attr;
	}
	if (attr->qp_state == IBV_QPS_RTS) {
		CHECK_INT(qp->state, IBV_QPS_RTR);
		d->last_rts = *attr;
	}
	qp->state = attr->qp_state;
	return 0;
}

static int destroy_qp(V, struct ibv_qp *qp)
{
	return destroy_object(v, qp);
}

static int query_ece(V, struct ibv_qp *qp, struct ibv_ece *ece)
{
	if (!dummy_of(v)->ece)
		return -EOPNOTSUPP;
	*ece = (struct ibv_ece) { .vendor_id = 0x15b3,
				  .options = (uint32_t)dummy_of(v)->ece,
				  .comp_mask = 0 };
	return 0;
}

static int set_ece(V, struct ibv_qp *qp, struct ibv_ece *ece)
{
	CHECK_INT(ece->vendor_id, 0x15b3);
	CHECK_INT(qp->state, IBV_QPS_INIT);
	dummy_of(v)->last_ece = ece->options;
	return 0;
}

void dummy_init(struct dummy *d)
{
	struct ha_verbs_ops *ops = &d->fake.ops;

	memset(d, 0, sizeof(*d));
	for (int i = 0; i < 2; i++)
		d->devices[i] = (struct fake_device) {
			.name = i ? "dummy1" : "dummy0",
			.guid = 1 + (uint64_t)i,
			.card_guid = 1 + (uint64_t)i,
			.nports = 1,
			.ports = { fake_roce_port(i ? "10.0.1.1" : "10.0.0.1") },
		};
	fake_verbs_init(&d->fake, d->devices, 2);
	fake_query_device = ops->query_device;
	fake_open = ops->open;
	ops->query_device = query_device;
	ops->open = open_device;
	ops->get_async_event = get_async_event;
	ops->reg_mr = reg_mr;
	ops->reg_dmabuf_mr = reg_dmabuf_mr;
	ops->reg_data_direct_mr = reg_data_direct_mr;
	ops->dereg_mr = dereg_mr;
	ops->create_cq = create_cq;
	ops->destroy_cq = destroy_cq;
	ops->create_srq = create_srq;
	ops->destroy_srq = destroy_srq;
	ops->create_qp = create_qp;
	ops->query_unordered = query_unordered;
	ops->create_unordered_qp = create_unordered_qp;
	ops->modify_qp = modify_qp;
	ops->destroy_qp = destroy_qp;
	ops->query_ece = query_ece;
	ops->set_ece = set_ece;
}

void dummy_done(struct dummy *d)
{
	CHECK_INT(d->mrs, 0);
	fake_verbs_done(&d->fake);
}

void dummy_event(struct dummy *d, enum ibv_event_type type, struct ibv_qp *qp)
{
	struct ibv_async_event *e = &d->events[d->nevents++];

	e->event_type = type;
	if (qp)
		e->element.qp = qp;
	else
		e->element.port_num = 1;
}

int world_open_over(struct world *w, const struct ha_verbs_ops *verbs_a,
		    const struct ha_verbs_ops *verbs_b)
{
	struct ha_ctx_params params = {
		.config = &w->config,
		.verbs = verbs_a ? verbs_a : &w->dummy[0].fake.ops,
		.clock = &w->clock.clock,
		.oob = &oob_mem_ops,
		.oob_net = &w->net,
	};
	int err = ha_ctx_create(&params, &w->a);

	if (err)
		return err;
	params.verbs = verbs_b ? verbs_b : &w->dummy[1].fake.ops;
	err = ha_ctx_create(&params, &w->b);
	if (err)
		ha_ctx_destroy(w->a);
	return err;
}

void world_prepare(struct world *w)
{
	memset(w, 0, sizeof(*w));
	dummy_init(&w->dummy[0]);
	dummy_init(&w->dummy[1]);
	w->clock = (struct ha_clock_virtual)HA_CLOCK_VIRTUAL_INIT(HA_NS_PER_S);
	ha_config_defaults(&w->config);
	w->config.use_progress_thread = false;
	w->config.enable_backup = false; /* nothing moves here, so no standby could prove itself */
	strcpy(w->config.sysfs_root, "/nonexistent");
}

void world_open(struct world *w)
{
	world_prepare(w);
	CHECK_INT(world_open_over(w, NULL, NULL), 0);
}

void world_close(struct world *w)
{
	ha_ctx_destroy(w->b);
	ha_ctx_destroy(w->a);
	CHECK_INT(w->net.open, 0);
	dummy_done(&w->dummy[0]);
	dummy_done(&w->dummy[1]);
}

void world_connect(struct world *w, struct ha_listen **listen, struct ha_send **send,
		   struct ha_recv **recv)
{
	char handle[HA_HANDLE_MAX];

	*send = NULL;
	*recv = NULL;
	CHECK_INT(ha_listen(w->a, 0, NULL, handle, listen), 0);
	for (int i = 0; i < 4000 && !(*send && *recv); i++) {
		if (!*send)
			CHECK_INT(ha_connect(w->b, 0, NULL, handle, send), 0);
		if (!*recv)
			CHECK_INT(ha_accept(*listen, recv), 0);
	}
	CHECK(*send && *recv);
}

void world_run(struct world *w, unsigned ms)
{
	for (unsigned i = 0; i < ms; i += 10) {
		ha_ctx_progress(w->a);
		ha_ctx_progress(w->b);
		w->clock.now += 10 * HA_NS_PER_MS;
	}
}
