/* SPDX-License-Identifier: BSD-3-Clause */
/* endpoint.c - one queue pair with its completion queue, and as the failover agent's hardware */
#include "gpu/host/state.h"

#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

static int make_queues(struct ha_gpu_pool *pool, struct ha_gpu_ep *e)
{
	struct ha_gpu_device *d = pool->device;
	const struct ha_gpu_settings *s = &d->host->config.settings;
	unsigned i = pool->used;
	struct ha_gpu_cq_attr cq = { .buf = pool->cq.buf,
				     .dbr_buf = pool->dbr.buf,
				     .offset = i * pool->cq.each,
				     .dbr_offset = i * pool->dbr.each + 64 };
	struct ha_gpu_qp_attr qp = { .buf = pool->wq.buf,
				     .dbr_buf = pool->dbr.buf,
				     .offset = i * pool->wq.each,
				     .dbr_offset = i * pool->dbr.each,
				     .nwqes = (uint32_t)s->qp_depth << pool->dc,
				     .dci = pool->dc,
				     .proxied = s->proxied };
	int r;

	e->wqe = qp.wqe = (uint8_t *)pool->wq.memory + qp.offset;
	e->cqe = cq.cqe = (uint8_t *)pool->cq.memory + cq.offset;
	e->dbrec = qp.dbrec = (uint32_t *)((char *)pool->dbr.memory + qp.dbr_offset);
	e->cq_dbrec = cq.dbrec = (uint32_t *)((char *)pool->dbr.memory + cq.dbr_offset);
	cq.log = s->cq_collapsed ? 0 : (uint32_t)__builtin_ctzll(s->qp_depth) + pool->dc;
	r = d->host->ops->cq_create(d->own, &cq, &e->cq);
	if (r) {
		HA_WARN(d->name, "makes no completion queue: %s", strerror(-r));
		return r;
	}
	qp.cq = e->cq;
	r = d->host->ops->qp_create(d->pd, &qp, &e->qp);
	if (!r)
		return 0;
	HA_WARN(d->name, "makes no queue pair: %s; lower HA_GPU_RC_PER_PE", strerror(-r));
	d->host->ops->cq_destroy(e->cq);
	return r;
}

/* With a key that no incarnation before it had. */
static int make_target(struct ha_gpu_ep *e)
{
	struct ha_gpu_device *d = e->device;
	uint64_t key;
	int r = getrandom(&key, sizeof(key), 0) == sizeof(key) ? 0 : -EIO;

	key |= 1; /* 0 says that there is none */
	if (!r)
		r = d->host->ops->dct_create(d->pd, e->cq, &e->link, key, &e->dct);
	if (r) {
		e->dct.own = NULL;
		HA_WARN(d->name, "makes no target of dynamic connections: %s", strerror(-r));
		return r;
	}
	e->link.local.qpn = e->dct.number;
	e->link.local.dc_key = key;
	return 0;
}

/* 0 or -EIO: nothing lands through it any more. */
static int end_target(struct ha_gpu_ep *e)
{
	int r;

	if (!e->dct.own)
		return 0;
	r = e->device->host->ops->dct_destroy(&e->dct);
	if (!r || r == -EIO)
		e->dct.own = NULL;
	return r;
}

int ha_gpu_ep_make(struct ha_gpu_pool *pool, struct ha_gpu_ep **out)
{
	const struct ha_gpu_settings *s = &pool->device->host->config.settings;
	struct ha_gpu_ep *e;
	int r;

	if (pool->used == pool->n)
		return -ENOSPC;
	e = calloc(1, sizeof(*e));
	r = e ? make_queues(pool, e) : -ENOMEM;
	if (r) {
		free(e);
		return r;
	}
	pool->used++;
	e->device = pool->device;
	e->link.timeout = (unsigned)s->qp_timeout;
	e->link.retry_cnt = (unsigned)s->qp_retry_cnt;
	e->link.traffic_class = (unsigned)s->traffic_class;
	e->link.service_level = (unsigned)s->service_level;
	pool->device->host->ops->qp_handle(&e->qp, &e->link.local);
	e->dc = pool->dc;
	r = pool->device->host->ops->address(pool->device->own, &e->link.local);
	if (!r && e->dc)
		r = make_target(e);
	if (r) {
		ha_gpu_ep_free(e);
		return r;
	}
	*out = e;
	return 0;
}

void ha_gpu_ep_free(struct ha_gpu_ep *e)
{
	const struct ha_gpu_hw_ops *ops = e->device->host->ops;

	end_target(e);
	ops->qp_destroy(&e->qp);
	ops->cq_destroy(e->cq);
	free(e);
}

int ha_gpu_ep_connect(struct ha_gpu_ep *e, uint64_t incarnation)
{
	const struct ha_gpu_hw_ops *ops = e->device->host->ops;
	static const enum ha_gpu_qp_state way[] = { HA_GPU_QP_RST, HA_GPU_QP_INIT, HA_GPU_QP_RTR,
						    HA_GPU_QP_RTS };
	struct ha_gpu_rc_link link = e->link;
	int r = e->dc && !e->dct.own ? make_target(e) : 0;

	e->fence = HA_GPU_EP_OPEN;
	link.local.psn = ha_gpu_psn(e->link.local.psn, incarnation);
	link.peer.psn = ha_gpu_psn(e->link.peer.psn, incarnation);
	for (unsigned i = 0; i < sizeof(way) / sizeof(way[0]) && !r; i++)
		r = ops->qp_modify(&e->qp, way[i], &link);
	if (e->dc && !r && !incarnation)
		r = ops->dct_av(&e->qp, &e->link, e->av);
	return r;
}

/*
 * Stopped once: what follows only looks whether it is drained. A device that is gone may come back,
 * so its word is for this time.
 */
static int fence(void *path)
{
	struct ha_gpu_ep *e = path;
	const struct ha_gpu_hw_ops *ops = e->device->host->ops;
	int r = 0;

	if (e->fence == HA_GPU_EP_OPEN)
		r = ops->qp_modify(&e->qp, HA_GPU_QP_ERR, &e->link);
	if (r)
		return r;
	if (e->fence == HA_GPU_EP_OPEN)
		e->fence = HA_GPU_EP_STOPPED;
	if (e->fence == HA_GPU_EP_STOPPED)
		r = ops->qp_drained(&e->qp);
	if (!r)
		e->fence = HA_GPU_EP_FENCED;
	return r;
}

/*
 * The target first: what the peer sends must not land, whatever becomes of what we send. A device
 * that is gone says so.
 */
static int fence_dc(void *path)
{
	int r = end_target(path);

	return r && r != -EIO ? r : fence(path);
}

static void describe_target(void *path, uint64_t word[HA_GPU_DETAILS])
{
	const struct ha_gpu_ep *e = path;

	word[0] = e->link.local.qpn;
	word[1] = e->link.local.dc_key;
}

/* The peer's new target. */
static int set_peer_target(void *path, const uint64_t word[HA_GPU_DETAILS],
			   struct ha_gpu_path *device)
{
	struct ha_gpu_ep *e = path;
	int r;

	if (!word[0] || word[0] > 0xffffff || !word[1])
		return -EPROTO;
	e->link.peer.qpn = (uint32_t)word[0];
	e->link.peer.dc_key = word[1];
	r = e->device->host->ops->dct_av(&e->qp, &e->link, e->av);
	if (!r)
		memcpy(device->av, e->av, sizeof(device->av));
	return r;
}

static int reconnect_path(void *path, uint64_t incarnation)
{
	return ha_gpu_ep_connect(path, incarnation);
}

static enum ha_gpu_port port(void *path)
{
	struct ha_gpu_ep *e = path;

	return e->device->host->ops->port(e->device->own);
}

/* ---- addresses, which may change while a port is down ---- */

static bool same_address(const struct ha_gpu_rc_handle *a, const struct ha_gpu_rc_handle *b)
{
	return a->lid == b->lid && a->mtu == b->mtu && a->spn == b->spn && a->iid == b->iid;
}

static int address(void *path, uint64_t word[HA_GPU_DETAILS])
{
	struct ha_gpu_ep *e = path;
	struct ha_gpu_rc_handle now = e->link.local;
	int r = e->device->host->ops->address(e->device->own, &now);

	if (!r && now.ethernet && !now.spn && !now.iid)
		r = -EADDRNOTAVAIL; /* the GID table is not filled again yet */
	if (r || same_address(&now, &e->link.local))
		return r;
	HA_INFO(e->device->name,
		"has come back with another address; the new address is sent to the peers");
	e->link.local = now;
	word[0] = (uint64_t)now.mtu << 16 | now.lid;
	word[1] = now.spn;
	word[2] = now.iid;
	return 1;
}

static int moved(void *path, const uint64_t word[HA_GPU_DETAILS])
{
	struct ha_gpu_ep *e = path;

	if (word[0] >> 24)
		return -EPROTO;
	e->link.peer.lid = (uint16_t)word[0];
	e->link.peer.mtu = (uint8_t)(word[0] >> 16);
	e->link.peer.spn = word[1];
	e->link.peer.iid = word[2];
	return 0;
}

const struct ha_gpu_path_ops ha_gpu_ep_path_ops = {
	.fence = fence, .connect = reconnect_path, .port = port, .address = address, .moved = moved
};
const struct ha_gpu_path_ops ha_gpu_dc_path_ops = { .fence = fence_dc,
						    .connect = reconnect_path,
						    .port = port,
						    .address = address,
						    .moved = moved,
						    .describe = describe_target,
						    .set_peer = set_peer_target };

/* RESET ends what would not drain in time. */
void ha_gpu_ep_fence(struct ha_gpu_ep *e, uint64_t deadline)
{
	const struct timespec pause = { 0, 1000000 };

	while ((e->dc ? fence_dc(e) : fence(e)) == -EAGAIN) {
		if (ha_gpu_now() > deadline) {
			e->device->host->ops->qp_modify(&e->qp, HA_GPU_QP_RST, &e->link);
			return;
		}
		nanosleep(&pause, NULL);
	}
}

void ha_gpu_ep_describe(const struct ha_gpu_ep *e, struct ha_gpu_path *p)
{
	const struct ha_gpu_settings *s = &e->device->host->config.settings;

	p->wqe = e->wqe;
	p->dbrec = e->dbrec;
	p->bf = e->qp.bf;
	p->host_bf = e->qp.host_bf;
	p->cqe = e->cqe;
	p->cq_dbrec = s->cq_collapsed ? NULL : e->cq_dbrec;
	p->cq_log = s->cq_collapsed ? 0 : (uint32_t)__builtin_ctzll(s->qp_depth) + e->dc;
	p->qpn = e->qp.qpn;
	p->wide = e->dc;
	memcpy(p->av, e->av, sizeof(p->av));
}
