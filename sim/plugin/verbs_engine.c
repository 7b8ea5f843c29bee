/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/plugin/unordered.h"
#include "sim/plugin/verbs_object.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct sim_verbs *host_of(const struct ha_verbs_ops *ops)
{
	return ops->priv;
}

static uint64_t now_of(const struct sim_verbs *v)
{
	return sr_memwire_now(v->wire);
}

static void *object_new(struct sim_device *dev, enum sim_kind kind, size_t size, size_t offset)
{
	struct sim_verbs *v = dev->host;
	char *p = calloc(1, size);
	struct sim_object *o = (struct sim_object *)(void *)(p + offset);

	if (!p)
		return NULL;
	o->dev = dev;
	o->kind = kind;
	LIST_INSERT_HEAD(&v->objects, o, entry);
	v->live[kind]++;
	return p;
}
#define NEW(dev, kind, type) \
	((struct type *)object_new(dev, kind, sizeof(struct type), offsetof(struct type, o)))

static void *get_container(struct sim_object *o)
{
	static const size_t offset[SIM_KINDS] = {
		[SIM_CONTEXT] = offsetof(struct sim_context, o),
		[SIM_PD] = offsetof(struct sim_pd, o),
		[SIM_MR] = offsetof(struct sim_mr, o),
		[SIM_CQ] = offsetof(struct sim_cq, o),
		[SIM_SRQ] = offsetof(struct sim_srq, o),
		[SIM_QP] = offsetof(struct sim_qp, o),
	};

	return (char *)o - offset[o->kind];
}

static void object_free(struct sim_object *o)
{
	if (o->kind == SIM_QP)
		sim_unordered_end(get_container(o));
	o->dev->host->live[o->kind]--;
	LIST_REMOVE(o, entry);
	free(get_container(o));
}

/* The engine's half of an object goes; ours stays. -EBUSY while it is in use. */
static int engine_destroy(struct sim_object *o)
{
	void *engine = o->engine;
	int err = 0;

	if (!engine)
		return 0;
	switch (o->kind) {
	case SIM_PD:
		err = sr_pd_destroy(engine);
		break;
	case SIM_MR:
		err = sr_mr_destroy(engine);
		break;
	case SIM_CQ:
		err = sr_cq_destroy(engine);
		break;
	case SIM_SRQ:
		err = sr_srq_destroy(engine);
		break;
	case SIM_QP:
		err = sr_qp_destroy(engine);
		break;
	default:
		break;
	}
	if (!err)
		o->engine = NULL;
	return err;
}

static int object_destroy(struct sim_object *o)
{
	int err = engine_destroy(o);

	if (!err)
		object_free(o);
	return err;
}

/* After a failed creation. */
static int finish_creation(struct sim_object *o, int err)
{
	if (!o->engine)
		object_free(o);
	else
		err = 0;
	return err < 0 ? err : -err;
}

/* ---- devices ---- */

#define V const struct ha_verbs_ops *ops

static int device_list(V, struct ibv_device ***list, int *n)
{
	struct sim_verbs *v = host_of(ops);

	*list = calloc(v->ndevices + 1, sizeof(**list));
	if (!*list)
		return -ENOMEM;
	*n = 0;
	for (unsigned i = 0; i < v->ndevices; i++)
		if (!v->device[i]->unlisted)
			(*list)[(*n)++] = &v->device[i]->ibv;
	return 0;
}

static void device_list_free(V, struct ibv_device **list)
{
	free(list);
}

/* Whatever address it has. */
static uint64_t guid_of(const struct sim_device *dev)
{
	return UINT64_C(0x0273696d00000000) | dev->host->host << 8 | dev->index;
}

static uint64_t device_guid(V, struct ibv_device *device)
{
	return guid_of((const struct sim_device *)device);
}

static int device_open(V, struct ibv_device *device, struct ibv_context **context)
{
	struct sim_device *dev = (struct sim_device *)device;
	struct sim_context *c;

	if (dev->dead)
		return -EIO;
	c = NEW(dev, SIM_CONTEXT, sim_context);
	if (!c)
		return -ENOMEM;
	c->ibv.device = device;
	c->ibv.async_fd = c->ibv.cmd_fd = -1;
	c->ibv.num_comp_vectors = 1;
	dev->context = *context = &c->ibv;
	return 0;
}

static int device_close(V, struct ibv_context *context)
{
	struct sim_context *c = (struct sim_context *)context;

	c->o.dev->context = NULL;
	object_free(&c->o);
	return 0;
}

static int hot(V, struct ibv_context *context, struct ha_verbs_hot *out)
{
	*out = sim_verbs_hot;
	return 0;
}

static int fork_init(V)
{
	return 0;
}

static struct sim_device *device_of(const struct ibv_context *context)
{
	return ((const struct sim_context *)context)->o.dev;
}

static int query_device(V, struct ibv_context *context, struct ibv_device_attr *attr)
{
	const struct sim_device *dev = device_of(context);

	sr_nic_query_device(dev->nic, attr);
	attr->node_guid = htobe64(guid_of(dev));
	attr->max_qp_wr = dev->host->limits.max_qp_wr;
	attr->max_srq_wr = dev->host->limits.max_srq_wr;
	attr->max_qp = dev->host->limits.max_qp;
	return 0;
}

static int query_port(V, struct ibv_context *context, uint8_t port, struct ha_port_attr *attr)
{
	if (port != 1)
		return -EINVAL;
	memset(attr, 0, sizeof(*attr));
	sr_nic_query_port(device_of(context)->nic, &attr->attr);
	if (device_of(context)->speed) { /* lanes of 100 Gb/s */
		attr->attr.active_width = device_of(context)->speed;
		attr->attr.active_speed = 128;
	}
	return 0;
}

static int query_gid_ex(V, struct ibv_context *context, uint8_t port, int index,
			struct ibv_gid_entry *entry)
{
	if (port != 1 || index)
		return -ENODATA;
	*entry = (struct ibv_gid_entry) { .gid = device_of(context)->gid,
					  .port_num = 1,
					  .gid_type = IBV_GID_TYPE_ROCE_V2 };
	return 0;
}

static int query_gid(V, struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
	struct ibv_gid_entry entry;
	int err = query_gid_ex(ops, context, port, index, &entry);

	if (!err)
		*gid = entry.gid;
	return err;
}

/* ---- events ---- */

static void on_async(void *user, enum ibv_event_type type, void *object)
{
	struct sim_device *dev = user;
	struct ibv_async_event *e;

	if (dev->host->gone)
		return;
	if (dev->events_n == SIM_EVENTS_MAX) {
		dev->events_lost++;
		return;
	}
	e = &dev->events[(dev->events_first + dev->events_n++) % SIM_EVENTS_MAX];
	memset(e, 0, sizeof(*e));
	e->event_type = type;
	if (object)
		e->element.qp = object; /* of whatever kind: the union holds pointers */
	else
		e->element.port_num = 1;
}

static void on_placing(void *user, void *to, const void *from, uint32_t len)
{
	struct sim_device *dev = user;

	if (dev->host->hooks.placing)
		dev->host->hooks.placing(dev->host->hooks.user, dev, to, from, len);
}

static const struct sr_event_ops event_ops = { .async = on_async, .placing = on_placing };

static int get_async_event(V, struct ibv_context *context, struct ibv_async_event *event)
{
	struct sim_device *dev = device_of(context);

	if (!dev->events_n || dev->host->gone)
		return -EAGAIN;
	*event = dev->events[dev->events_first];
	dev->events_first = (dev->events_first + 1) % SIM_EVENTS_MAX;
	dev->events_n--;
	return 0;
}

static void ack_async_event(V, struct ibv_async_event *event)
{
}

/* An object goes: nobody may learn of it any more. */
static void events_purge(struct sim_device *dev, const void *object)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < dev->events_n; i++) {
		struct ibv_async_event e = dev->events[(dev->events_first + i) % SIM_EVENTS_MAX];

		if (e.element.qp != object)
			dev->events[(dev->events_first + kept++) % SIM_EVENTS_MAX] = e;
	}
	dev->events_n = kept;
}

/* ---- objects ---- */

static int alloc_pd(V, struct ibv_context *context, struct ibv_pd **pd)
{
	struct sim_device *dev = device_of(context);
	struct sim_pd *p = NEW(dev, SIM_PD, sim_pd);
	int err = -EIO;

	if (!p)
		return -ENOMEM;
	p->ibv.context = context;
	*pd = &p->ibv;
	if (!dev->host->gone)
		p->o.engine = sr_pd_create(dev->nic, &err);
	return finish_creation(&p->o, err);
}

static int dealloc_pd(V, struct ibv_pd *pd)
{
	return object_destroy(&((struct sim_pd *)pd)->o);
}

static int reg_mr(V, struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned access,
		  struct ibv_mr **mr)
{
	struct sim_device *dev = device_of(pd->context);
	struct sim_pd *p = (struct sim_pd *)pd;
	struct sim_mr *m = NEW(dev, SIM_MR, sim_mr);
	int err = -EIO;

	if (!m)
		return -ENOMEM;
	m->ibv = (struct ibv_mr) {
		.context = pd->context, .pd = pd, .addr = addr, .length = length
	};
	*mr = &m->ibv;
	if (p->o.engine && !dev->dead)
		m->o.engine =
			sr_mr_create(p->o.engine, addr, length, iova,
				     (int)(access & ~(unsigned)IBV_ACCESS_OPTIONAL_RANGE), &err);
	if (m->o.engine) {
		m->ibv.lkey = sr_mr_lkey(m->o.engine);
		m->ibv.rkey = sr_mr_rkey(m->o.engine);
	}
	if (m->o.engine && dev->host->hooks.registered)
		dev->host->hooks.registered(dev->host->hooks.user);
	return finish_creation(&m->o, err);
}

static int dereg_mr(V, struct ibv_mr *mr)
{
	return object_destroy(&((struct sim_mr *)mr)->o);
}

static int create_cq(V, struct ibv_context *context, int cqe, void *cq_context,
		     struct ibv_comp_channel *channel, int vector, struct ibv_cq **cq)
{
	struct sim_device *dev = device_of(context);
	struct sim_cq *c = NEW(dev, SIM_CQ, sim_cq);
	int err = -EIO;

	if (!c)
		return -ENOMEM;
	c->ibv = (struct ibv_cq) { .context = context, .cq_context = cq_context, .cqe = cqe };
	*cq = &c->ibv;
	if (!dev->host->gone)
		c->o.engine = sr_cq_create(dev->nic, cqe, c, &err);
	return finish_creation(&c->o, err);
}

static int destroy_cq(V, struct ibv_cq *cq)
{
	struct sim_cq *c = (struct sim_cq *)cq;

	events_purge(c->o.dev, c);
	return object_destroy(&c->o);
}

static int create_srq(V, struct ibv_pd *pd, struct ibv_srq_init_attr *attr, struct ibv_srq **srq)
{
	struct sim_device *dev = device_of(pd->context);
	struct sim_pd *p = (struct sim_pd *)pd;
	struct sim_srq *s;
	int err = -EIO;

	if ((int)attr->attr.max_wr > dev->host->limits.max_srq_wr)
		return -EINVAL;
	s = NEW(dev, SIM_SRQ, sim_srq);
	if (!s)
		return -ENOMEM;
	s->ibv = (struct ibv_srq) { .context = pd->context,
				    .srq_context = attr->srq_context,
				    .pd = pd };
	*srq = &s->ibv;
	if (p->o.engine)
		s->o.engine = sr_srq_create(p->o.engine, attr, s, &err);
	return finish_creation(&s->o, err);
}

static int modify_srq(V, struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	struct sim_srq *s = (struct sim_srq *)srq;

	return s->o.engine ? sr_srq_modify(s->o.engine, attr, mask) : -EIO;
}

static int query_srq(V, struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	struct sim_srq *s = (struct sim_srq *)srq;

	if (!s->o.engine)
		return -EIO;
	sr_srq_query(s->o.engine, attr);
	return 0;
}

static int destroy_srq(V, struct ibv_srq *srq)
{
	struct sim_srq *s = (struct sim_srq *)srq;

	events_purge(s->o.dev, s);
	return object_destroy(&s->o);
}

static int query_unordered(V, struct ibv_context *context)
{
	return host_of(ops)->limits.unordered ? 0 : -EOPNOTSUPP;
}

static int create_qp(V, struct ibv_pd *pd, struct ibv_qp_init_attr *attr, struct ibv_qp **qp)
{
	struct sim_device *dev = device_of(pd->context);
	struct sim_cq *scq = (struct sim_cq *)attr->send_cq, *rcq = (struct sim_cq *)attr->recv_cq;
	struct sim_srq *srq = (struct sim_srq *)attr->srq;
	struct sim_qp *q = NEW(dev, SIM_QP, sim_qp);
	struct sr_qp_init init = {
		.type = attr->qp_type, .cap = attr->cap, .sq_sig_all = attr->sq_sig_all, .user = q
	};
	int err = -EIO;

	if (!q)
		return -ENOMEM;
	init.send_cq = scq->o.engine;
	init.recv_cq = rcq->o.engine;
	init.srq = srq ? srq->o.engine : NULL;
	*qp = &q->ibv;
	if (!dev->host->gone && !dev->dead)
		q->o.engine = sr_qp_create(((struct sim_pd *)pd)->o.engine, &init, &err);
	if (q->o.engine) {
		attr->cap = init.cap;
		q->ibv = (struct ibv_qp) {
			.context = pd->context,
			.qp_context = attr->qp_context,
			.pd = pd,
			.send_cq = attr->send_cq,
			.recv_cq = attr->recv_cq,
			.srq = attr->srq,
			.qp_type = attr->qp_type,
			.qp_num = sr_qp_num(q->o.engine),
		};
		if (dev->host->hooks.made_qp)
			dev->host->hooks.made_qp(dev->host->hooks.user);
	}
	return finish_creation(&q->o, err);
}

static int create_unordered_qp(V, struct ibv_pd *pd, struct ibv_qp_init_attr *attr,
			       struct ibv_qp **qp)
{
	int err = create_qp(ops, pd, attr, qp);

	if (err)
		return err;
	((struct sim_cq *)attr->send_cq)->unordered = true;
	err = sim_unordered_begin((struct sim_qp *)*qp);
	if (err)
		object_destroy(&((struct sim_qp *)*qp)->o);
	return err;
}

bool sim_device_reaches(const struct sim_device *dev, const union ibv_gid *gid)
{
	return !dev->host->apart || gid->raw[15] == dev->gid.raw[15];
}

static int modify_qp(V, struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct sim_qp *q = (struct sim_qp *)qp;
	int err;

	if (!q->o.engine || q->o.dev->dead)
		return -EIO;
	if (mask & IBV_QP_AV &&
	    (q->o.dev->knobs.unreachable || !sim_device_reaches(q->o.dev, &attr->ah_attr.grh.dgid)))
		return -ETIMEDOUT;
	if (mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET)
		sim_unordered_forget(q);
	err = sr_qp_modify(q->o.engine, now_of(q->o.dev->host), attr, mask);
	qp->state = sr_qp_state(q->o.engine);
	return err;
}

static int query_qp(V, struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		    struct ibv_qp_init_attr *init)
{
	struct sim_qp *q = (struct sim_qp *)qp;

	if (!q->o.engine)
		return -EIO;
	sr_qp_query(q->o.engine, attr, init);
	return 0;
}

static int destroy_qp(V, struct ibv_qp *qp)
{
	struct sim_qp *q = (struct sim_qp *)qp;
	struct sim_device *dev = q->o.dev;

	events_purge(dev, q);
	if (dev->knobs.leak_qp) {
		dev->knobs.leak_qp = false;
		return 0;
	}
	return object_destroy(&q->o);
}
#undef V

static const struct ha_verbs_ops table = {
	.name = "simulator",
	.device_list = device_list,
	.device_list_free = device_list_free,
	.device_guid = device_guid,
	.open = device_open,
	.close = device_close,
	.hot = hot,
	.fork_init = fork_init,
	.query_device = query_device,
	.query_port = query_port,
	.query_gid = query_gid,
	.query_gid_ex = query_gid_ex,
	.get_async_event = get_async_event,
	.ack_async_event = ack_async_event,
	.alloc_pd = alloc_pd,
	.dealloc_pd = dealloc_pd,
	.reg_mr = reg_mr,
	.dereg_mr = dereg_mr,
	.create_cq = create_cq,
	.destroy_cq = destroy_cq,
	.create_srq = create_srq,
	.modify_srq = modify_srq,
	.query_srq = query_srq,
	.destroy_srq = destroy_srq,
	.create_qp = create_qp,
	.query_unordered = query_unordered,
	.create_unordered_qp = create_unordered_qp,
	.modify_qp = modify_qp,
	.query_qp = query_qp,
	.destroy_qp = destroy_qp,
};

/* ---- a host ---- */

/* Its NIC, with its first address. */
static int device_start(struct sim_device *dev)
{
	struct sim_verbs *v = dev->host;
	struct sr_nic_config config = {
		.name = dev->ibv.name,
		.active_mtu = v->limits.mtu,
		.seed = (uint32_t)(v->seed >> 7 ^ v->seed * (2 * dev->index + 1)),
		.max_inflight = v->limits.inflight,
		.retry_forever = v->limits.retry_forever,
		.event_ops = &event_ops,
		.user = dev,
	};
	int err;

	dev->gid.raw[10] = dev->gid.raw[11] = 0xff;
	dev->gid.raw[12] = 10;
	dev->gid.raw[13] = (uint8_t)(v->host + 1);
	dev->gid.raw[15] = (uint8_t)(dev->index + 1);
	config.gid[0] = dev->gid;
	dev->nic = sr_memwire_nic(v->wire, &config, &err);
	if (!dev->nic)
		return err;
	dev->port = sr_memwire_port_of(v->wire, dev->nic);
	return 0;
}

/* `number`: of its name. NULL: no memory. */
static struct sim_device *device_new(struct sim_verbs *v, unsigned i, unsigned number)
{
	struct sim_device *dev = calloc(1, sizeof(*dev));

	if (!dev)
		return NULL;
	dev->host = v;
	dev->index = i;
	dev->number = number;
	dev->ibv.node_type = IBV_NODE_CA;
	dev->ibv.transport_type = IBV_TRANSPORT_IB;
	snprintf(dev->ibv.name, sizeof(dev->ibv.name), "sim%u", number);
	if (!device_start(dev))
		return dev;
	free(dev);
	return NULL;
}

int sim_verbs_create(struct sr_memwire *wire, unsigned host, unsigned ndevices,
		     const struct sim_limits *limits, const struct sim_hooks *hooks, uint64_t seed,
		     struct sim_verbs **out)
{
	struct sim_verbs *v = calloc(1, sizeof(*v));

	*out = v;
	if (!v)
		return -ENOMEM;
	v->ops = table;
	v->ops.priv = v;
	ha_verbs_ops_fill(&v->ops);
	v->wire = wire;
	v->host = host;
	v->seed = seed;
	v->limits = *limits;
	v->hooks = *hooks;
	for (unsigned i = 0; i < ndevices; i++) {
		v->device[i] = device_new(v, i, i);
		if (!v->device[i])
			return -ENOMEM;
		v->ndevices++;
	}
	return 0;
}

void sim_verbs_destroy(struct sim_verbs *v)
{
	struct sim_object *o;
	struct sim_device *dev;

	if (!v)
		return;
	while ((o = LIST_FIRST(&v->objects)) != NULL) {
		engine_destroy(o);
		object_free(o);
	}
	for (unsigned i = 0; i < v->ndevices; i++)
		free(v->device[i]);
	while ((dev = SLIST_FIRST(&v->past)) != NULL) {
		SLIST_REMOVE_HEAD(&v->past, past);
		free(dev);
	}
	free(v);
}

int sim_device_restore(struct sim_verbs *v, unsigned i, bool renamed)
{
	struct sim_device *past = v->device[i];
	unsigned number = renamed ? SIM_DEVICES_MAX * ++v->renames + i : past->number;
	struct sim_device *dev = device_new(v, i, number);

	if (!dev)
		return -ENOMEM;
	dev->speed = past->speed;
	/* defects that have not happened yet; what a fault wanted was of the old one */
	dev->knobs = past->knobs;
	dev->knobs.hold_until = 0;
	dev->knobs.lose = dev->knobs.die_at_post = 0;
	dev->gid = past->gid;
	sr_memwire_set_gid(v->wire, dev->nic, 0, &dev->gid);
	SLIST_INSERT_HEAD(&v->past, past, past);
	v->device[i] = dev;
	return 0;
}

uint64_t sim_device_sent(const struct sim_verbs *v, unsigned i)
{
	uint64_t sent = sr_nic_counters(v->device[i]->nic)->sent_bytes;
	const struct sim_device *dev;

	SLIST_FOREACH(dev, &v->past, past)
		if (dev->index == i)
			sent += sr_nic_counters(dev->nic)->sent_bytes;
	return sent;
}

unsigned sim_device_break_qps(struct sim_device *dev)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct sim_object *o;
	unsigned n = 0;

	for (o = LIST_FIRST(&dev->host->objects); o && !dev->dead; o = LIST_NEXT(o, entry))
		if (o->kind == SIM_QP && o->dev == dev && o->engine &&
		    sr_qp_state(o->engine) == IBV_QPS_RTS)
			n += !sr_qp_modify(o->engine, now_of(dev->host), &attr, IBV_QP_STATE);
	return n;
}

void sim_verbs_die(struct sim_verbs *v)
{
	struct sim_object *o;

	v->gone = true;
	/*
	 * The list has the newest first: queue pairs before their queues, regions before their
	 * domain.
	 */
	LIST_FOREACH(o, &v->objects, entry)
		engine_destroy(o);
	LIST_FOREACH(o, &v->objects, entry)
		engine_destroy(o); /* what was in use by something older */
}

void sim_verbs_left(const struct sim_verbs *v, char *text, size_t size)
{
	static const char *const names[SIM_KINDS] = {
		"contexts",          "protection domains",    "memory regions",
		"completion queues", "shared receive queues", "queue pairs",
	};
	size_t at = 0;

	text[0] = 0;
	for (int k = 0; k < SIM_KINDS; k++)
		if (v->live[k] && at < size)
			at += (size_t)snprintf(text + at, size - at, "%s%u %s", at ? ", " : "",
					       v->live[k], names[k]);
}
