/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/rdma/verbs/fake.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdio.h>

#include "base/check.h"

struct fake_context {
	struct ibv_context context; /* first */
	struct ibv_device ibv;      /* outlives the list that it is from */
	struct fake_verbs *fake;
	const struct fake_device *device;
};

static struct fake_verbs *fake_of(const struct ha_verbs_ops *v)
{
	return (struct fake_verbs *)(void *)v;
}

static const struct fake_device *device_of(const struct ibv_context *context)
{
	return ((const struct fake_context *)(const void *)context)->device;
}

static const struct fake_port *port_of(const struct ibv_context *context, uint8_t port)
{
	const struct fake_device *d = device_of(context);

	return port >= 1 && port <= d->nports ? &d->ports[port - 1] : NULL;
}

static int fake_list(const struct ha_verbs_ops *v, struct ibv_device ***list, int *n)
{
	struct fake_verbs *f = fake_of(v);
	struct ibv_device *made;

	*n = 0;
	if (f->list_error)
		return f->list_error;
	*list = calloc(1, ((size_t)f->n + 1) * (sizeof(**list) + sizeof(*made)));
	made = (struct ibv_device *)(*list + f->n + 1);
	for (int i = 0; i < f->n; i++) {
		const struct fake_device *d = &f->devices[i];

		if (d->away)
			continue;
		snprintf(made[*n].name, sizeof(made[*n].name), "%s", d->name);
		if (d->folder)
			snprintf(made[*n].ibdev_path, sizeof(made[*n].ibdev_path), "%s", d->folder);
		(*list)[*n] = &made[*n];
		++*n;
	}
	f->lists++;
	return 0;
}

static struct fake_device *find_device(const struct ha_verbs_ops *v,
				       const struct ibv_device *device)
{
	struct fake_device *d = fake_of(v)->devices;

	while (d->away || strcmp(d->name, device->name) != 0)
		d++;
	return d;
}

static uint64_t fake_guid(const struct ha_verbs_ops *v, struct ibv_device *device)
{
	return device ? find_device(v, device)->guid : 0;
}

static void fake_list_free(const struct ha_verbs_ops *v, struct ibv_device **list)
{
	free(list);
	fake_of(v)->lists--;
}

static int fake_open(const struct ha_verbs_ops *v, struct ibv_device *device,
		     struct ibv_context **context)
{
	struct fake_verbs *f = fake_of(v);
	struct fake_device *d = find_device(v, device);
	struct fake_context *c;

	if (d->open_error)
		return d->open_error;
	c = calloc(1, sizeof(*c));
	c->ibv = *device;
	c->context.device = &c->ibv;
	c->fake = f;
	c->device = d;
	f->open_contexts++;
	*context = &c->context;
	return 0;
}

static int fake_close(const struct ha_verbs_ops *v, struct ibv_context *context)
{
	fake_of(v)->open_contexts--;
	free(context);
	return 0;
}

static int fake_query_device(const struct ha_verbs_ops *v, struct ibv_context *context,
			     struct ibv_device_attr *attr)
{
	const struct fake_device *d = device_of(context);

	memset(attr, 0, sizeof(*attr));
	attr->node_guid = htobe64(d->guid);
	attr->sys_image_guid = htobe64(d->card_guid);
	attr->phys_port_cnt = (uint8_t)d->nports;
	attr->max_qp = 131072;
	attr->max_cqe = 4194303;
	return d->query_error;
}

static int fake_query_port(const struct ha_verbs_ops *v, struct ibv_context *context, uint8_t port,
			   struct ha_port_attr *attr)
{
	const struct fake_port *p = port_of(context, port);

	memset(attr, 0, sizeof(*attr));
	if (!p || p->error)
		return p ? p->error : -EINVAL;
	attr->attr.state = p->state;
	attr->attr.link_layer = (uint8_t)p->link_layer;
	attr->attr.active_width = (uint8_t)p->width;
	attr->attr.active_speed = (uint8_t)p->speed;
	attr->active_speed_ex = (uint32_t)p->speed_ex;
	attr->attr.active_mtu = IBV_MTU_4096;
	attr->attr.gid_tbl_len = FAKE_GIDS;
	attr->attr.lid = p->lid;
	return 0;
}

static int fake_query_port_speed(const struct ha_verbs_ops *v, struct ibv_context *context,
				 uint8_t port, uint64_t *mbps)
{
	*mbps = port_of(context, port)->effective_mbps;
	return *mbps ? 0 : -EOPNOTSUPP;
}

static int fake_query_gid(const struct ha_verbs_ops *v, struct ibv_context *context, uint8_t port,
			  int index, union ibv_gid *gid)
{
	const char *address;

	fake_of(v)->gid_queries++;
	memset(gid, 0, sizeof(*gid));
	if (index < 0 || index >= FAKE_GIDS)
		return -EINVAL;
	address = port_of(context, port)->gids[index].address;
	if (!address)
		return 0;
	if (strchr(address, ':')) {
		CHECK_INT(inet_pton(AF_INET6, address, gid->raw), 1);
	} else {
		gid->raw[10] = gid->raw[11] = 0xff;
		CHECK_INT(inet_pton(AF_INET, address, gid->raw + 12), 1);
	}
	return 0;
}

static int fake_query_gid_ex(const struct ha_verbs_ops *v, struct ibv_context *context,
			     uint8_t port, int index, struct ibv_gid_entry *entry)
{
	static const uint32_t types[] = { IBV_GID_TYPE_IB, IBV_GID_TYPE_ROCE_V1,
					  IBV_GID_TYPE_ROCE_V2 };
	const struct fake_port *p = port_of(context, port);

	if (fake_of(v)->without_gid_ex)
		return -EOPNOTSUPP;
	entry->gid_index = (uint32_t)index;
	entry->port_num = port;
	if (!p->gids[index].address)
		return -ENODATA;
	entry->gid_type = types[p->gids[index].version];
	return fake_query_gid(v, context, port, index, &entry->gid);
}

static int fake_query_gid_table(const struct ha_verbs_ops *v, struct ibv_context *context,
				struct ibv_gid_entry *entries, int max, int *n)
{
	int before = fake_of(v)->gid_queries;

	if (fake_of(v)->without_gid_ex || fake_of(v)->without_gid_table)
		return -EOPNOTSUPP;
	*n = 0;
	for (int port = 1; port <= device_of(context)->nports; port++)
		for (int i = 0; i < FAKE_GIDS; i++) {
			struct ibv_gid_entry entry = { 0 };

			if (fake_query_gid_ex(v, context, (uint8_t)port, i, &entry))
				continue;
			CHECK(*n < max);
			entries[(*n)++] = entry;
		}
	fake_of(v)->gid_queries = before + 1;
	return 0;
}

static int fake_alloc_pd(const struct ha_verbs_ops *v, struct ibv_context *context,
			 struct ibv_pd **pd)
{
	*pd = calloc(1, sizeof(**pd));
	(*pd)->context = context;
	fake_of(v)->objects++;
	return 0;
}

static int fake_dealloc_pd(const struct ha_verbs_ops *v, struct ibv_pd *pd)
{
	fake_of(v)->objects--;
	free(pd);
	return 0;
}

static int fake_reg_dmabuf_mr(const struct ha_verbs_ops *v, struct ibv_pd *pd, uint64_t offset,
			      size_t length, uint64_t iova, int fd, int access, struct ibv_mr **mr)
{
	return device_of(pd->context)->dma_buf_error;
}

static int fake_data_direct_path(const struct ha_verbs_ops *v, struct ibv_context *context,
				 char *path, size_t len)
{
	const char *is = device_of(context)->data_direct;

	if (!is)
		return -EOPNOTSUPP;
	snprintf(path, len, "%s", is);
	return 0;
}

static struct fake_verbs *fake_behind(const struct ibv_context *context)
{
	return ((const struct fake_context *)(const void *)context)->fake;
}

static int fake_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	fake_behind(qp->context)->posted++;
	return 0;
}

static int fake_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	fake_behind(qp->context)->posted++;
	return 0;
}

static int fake_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
			      struct ibv_recv_wr **bad_wr)
{
	fake_behind(srq->context)->posted++;
	return 0;
}

static int fake_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	struct fake_verbs *f = fake_behind(cq->context);
	int got = 0;

	while (got < n && f->completions) {
		memset(&wc[got], 0, sizeof(*wc));
		wc[got++].wr_id = ++f->next_wr_id;
		f->completions--;
	}
	return got;
}

static int fake_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	return 0;
}

static int fake_hot(const struct ha_verbs_ops *v, struct ibv_context *context,
		    struct ha_verbs_hot *hot)
{
	*hot = (struct ha_verbs_hot) { fake_post_send, fake_post_recv, fake_post_srq_recv,
				       fake_poll_cq, fake_req_notify_cq };
	return 0;
}

void fake_verbs_init(struct fake_verbs *fake, struct fake_device *devices, int n)
{
	memset(fake, 0, sizeof(*fake));
	fake->devices = devices;
	fake->n = n;
	fake->ops = (struct ha_verbs_ops) {
		.name = "fake",
		.optional_access = true,
		.device_list = fake_list,
		.device_list_free = fake_list_free,
		.device_guid = fake_guid,
		.open = fake_open,
		.close = fake_close,
		.hot = fake_hot,
		.query_device = fake_query_device,
		.query_port = fake_query_port,
		.query_port_speed = fake_query_port_speed,
		.query_gid = fake_query_gid,
		.query_gid_ex = fake_query_gid_ex,
		.query_gid_table = fake_query_gid_table,
		.alloc_pd = fake_alloc_pd,
		.dealloc_pd = fake_dealloc_pd,
		.reg_dmabuf_mr = fake_reg_dmabuf_mr,
		.data_direct_path = fake_data_direct_path,
	};
	ha_verbs_ops_fill(&fake->ops);
}

void fake_verbs_done(struct fake_verbs *fake)
{
	CHECK_INT(fake->open_contexts, 0);
	CHECK_INT(fake->objects, 0);
	CHECK_INT(fake->lists, 0);
}

struct fake_port fake_roce_port(const char *ipv4)
{
	return (struct fake_port) {
		.state = IBV_PORT_ACTIVE,
		.link_layer = IBV_LINK_LAYER_ETHERNET,
		.width = 2,
		.speed = 128,
		.gids = { { "fe80::1", 1 }, { "fe80::1", 2 }, { ipv4, 1 }, { ipv4, 2 } },
	};
}

struct fake_port fake_ib_port(uint16_t lid)
{
	return (struct fake_port) {
		.state = IBV_PORT_ACTIVE,
		.link_layer = IBV_LINK_LAYER_INFINIBAND,
		.width = 2,
		.speed = 128,
		.lid = lid,
		.gids = { { "fe80::a088:c203:1", 0 } },
	};
}
