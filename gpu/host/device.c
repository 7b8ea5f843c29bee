/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device.c - a port that carries: context, protection domain, the heap's keys, and control memory
 * carved per queue
 */
#include "gpu/host/state.h"

#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * Every queue starts at a page: what a NIC is given of it is an offset in pages. Records have a
 * cache line each.
 */
#define QUEUE_ALIGN 4096
#define DBR_EACH 128 /* queue pair's at 0, completion queue's at 64 */

int ha_gpu_device_open(struct ha_gpu_host *h, int port, struct ha_gpu_device **out)
{
	struct ha_gpu_device *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return -ENOMEM;
	d->host = h;
	d->port = port;
	d->name = h->port[port].name;
	r = h->ops->open(h->config.hw, port, &d->own);
	if (r) {
		HA_WARN(d->name,
			"does not open: %s; leave it out of the list, or look at the kernel's log",
			strerror(-r));
		free(d);
		return r;
	}
	r = h->ops->pd_alloc(d->own, &d->pd);
	if (r) {
		HA_WARN(d->name, "gives no protection domain: %s", strerror(-r));
		h->ops->close(d->own);
		free(d);
		return r;
	}
	*out = d;
	return 0;
}

void ha_gpu_device_close(struct ha_gpu_device *d)
{
	const struct ha_gpu_hw_ops *ops = d->host->ops;

	ops->pd_free(d->pd);
	ops->close(d->own);
	free(d);
}

/* ---- keys ---- */

void ha_gpu_device_deregister(struct ha_gpu_device *d)
{
	struct ha_gpu_host *h = d->host;

	while (d->nmr)
		h->ops->mr_dereg(&d->mr[--d->nmr]);
	free(d->mr);
	d->mr = NULL;
	if (d->lkey)
		h->ops->mem_free(h->config.hw, d->lkey, h->chunks * sizeof(uint32_t));
	d->lkey = NULL;
}

static int register_parts(struct ha_gpu_device *d, size_t each, unsigned n)
{
	const struct ha_gpu_host_config *c = &d->host->config;
	size_t at, bytes;
	int r;

	for (unsigned i = 0; i < n; i++) {
		at = i * each;
		bytes = c->heap_bytes - at < each ? c->heap_bytes - at : each;
		r = d->host->ops->mr_reg(d->pd, (char *)c->heap + at, bytes, true, &d->mr[i]);
		if (r) {
			HA_WARN(d->name,
				"does not register %zu bytes of the heap: %s; look at ulimit -l, "
				"or at the GPU's peer memory module",
				bytes, strerror(-r));
			return r;
		}
		d->nmr = i + 1;
	}
	return 0;
}

int ha_gpu_device_register(struct ha_gpu_device *d)
{
	struct ha_gpu_host *h = d->host;
	size_t chunk = (size_t)1 << h->config.settings.chunk_log,
	       each = h->config.mr_bytes ? h->config.mr_bytes : h->config.heap_bytes;
	unsigned n = (unsigned)((h->config.heap_bytes + each - 1) / each);
	void *memory;
	int r;

	d->mr = calloc(n, sizeof(*d->mr));
	r = d->mr ? h->ops->mem_alloc(h->config.hw, h->chunks * sizeof(uint32_t), &memory)
		  : -ENOMEM;
	if (!r) {
		d->lkey = memory;
		r = register_parts(d, each, n);
	}
	if (r) {
		ha_gpu_device_deregister(d);
		return r;
	}
	for (unsigned i = 0; i < h->chunks; i++)
		d->lkey[i] = d->mr[i * chunk / each].lkey;
	return 0;
}

/* ---- control memory ---- */

static size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

static void part_free(struct ha_gpu_device *d, struct ha_gpu_pool_part *part)
{
	if (part->buf)
		d->host->ops->buf_unmap(part->buf);
	if (part->memory)
		d->host->ops->mem_free(d->host->config.hw, part->memory, part->bytes);
	memset(part, 0, sizeof(*part));
}

static int part_make(struct ha_gpu_device *d, struct ha_gpu_pool_part *part, size_t each,
		     unsigned n)
{
	const struct ha_gpu_hw_ops *ops = d->host->ops;
	int r;

	part->each = each;
	part->bytes = round_up(each * n, QUEUE_ALIGN);
	r = ops->mem_alloc(d->host->config.hw, part->bytes, &part->memory);
	if (!r)
		r = ops->buf_map(d->own, part->memory, part->bytes, &part->buf);
	return r;
}

int ha_gpu_pool_make(struct ha_gpu_device *d, unsigned n, bool dc, struct ha_gpu_pool **out)
{
	const struct ha_gpu_settings *s = &d->host->config.settings;
	struct ha_gpu_pool *p = calloc(1, sizeof(*p));
	int r = -ENOMEM;

	if (p) {
		p->device = d;
		p->n = n;
		p->dc = dc;
		r = part_make(d, &p->wq,
			      round_up((s->qp_depth << dc) * HA_GPU_WQE_BYTES, QUEUE_ALIGN), n);
		if (!r)
			r = part_make(d, &p->cq,
				      round_up((s->cq_collapsed ? 1 : s->qp_depth << dc) *
						       HA_GPU_CQE_BYTES,
					       QUEUE_ALIGN),
				      n);
		if (!r)
			r = part_make(d, &p->dbr, DBR_EACH, n);
	}
	if (r) {
		HA_WARN(d->name,
			"no control memory for %u queue pairs: %s; lower HA_GPU_QP_DEPTH or "
			"HA_GPU_RC_PER_PE",
			n, strerror(-r));
		if (p) {
			part_free(d, &p->dbr);
			part_free(d, &p->cq);
			part_free(d, &p->wq);
		}
		free(p);
		return r;
	}
	memset(p->cq.memory, 0xff, p->cq.bytes);
	LIST_INSERT_HEAD(&d->pools, p, link);
	*out = p;
	return 0;
}

void ha_gpu_pool_free(struct ha_gpu_pool *p)
{
	LIST_REMOVE(p, link);
	part_free(p->device, &p->dbr);
	part_free(p->device, &p->cq);
	part_free(p->device, &p->wq);
	free(p);
}
