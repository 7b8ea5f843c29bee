/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/device/mr.h"

#include "base/clock.h"
#include "base/log.h"
#include "plugin/bundle.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "plugin/device/dmabuf.h"
#include "plugin/device/fused.h"
#include "plugin/device/rail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/*
 * Whole pages, so that neighbours in a page share a registration. The kernel wants a dma-buf's
 * offset and the address to agree within the page. Callers differ in what the offset belongs to,
 * the address or its page: if it agrees with the address, both move back to the page; if it is a
 * page's, it stays.
 */
static struct ha_mr_want round_to_pages(const struct ha_mr_want *w)
{
	struct ha_mr_want r = *w;
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t in_page = w->addr & (page - 1);

	r.addr -= in_page;
	r.size = (in_page + w->size + page - 1) & ~(page - 1);
	if (w->dmabuf && (w->offset & (page - 1)) == in_page)
		r.offset -= in_page;
	return r;
}

/* Reads behind received data need their queue pair ready: iflush may do nothing slow. */
static bool needs_flush(const struct ha_bundle *b, int type)
{
	return !b->is_send && type != HA_MEM_HOST && !b->ctx->config.gdr_flush_disable;
}

/* Rails on one device share one registration through its cache. */
static int register_rail(struct ha_bundle *b, struct ha_rail *r, struct ha_mr *mr,
			 const struct ha_mr_want *want)
{
	int err = ha_mr_cache_get(r->opening->mr_cache, want, &mr->entry[r->index]);

	if (err) {
		mr->entry[r->index] = NULL;
		return err;
	}
	/* A rail that is not up gets its queue pair when it comes up. Without one no key: nothing
	 * comes in that cannot be flushed. */
	if (needs_flush(b, want->type) && r->connected)
		err = ha_rail_prepare_flush(b, r);
	if (err)
		return err;
	mr->lkey[r->index] = ha_mr_entry_mr(mr->entry[r->index])->lkey;
	mr->rkey[r->index] = ha_mr_entry_mr(mr->entry[r->index])->rkey;
	return 0;
}

static void release_mr(struct ha_bundle *b, struct ha_mr *mr)
{
	for (unsigned i = 0; i < HA_MAX_RAILS; i++)
		if (mr->entry[i])
			ha_mr_cache_put(mr->entry[i]);
	if (mr->kept)
		ha_dmabuf_drop(&b->ctx->dmabufs, mr->kept);
	free(mr);
}

/* A rail's device may be chosen and not be open yet (failover/incarnation.c). */
static void register_on(struct ha_opening *o, const struct ha_mr_want *want,
			struct ha_mr_entry **entry)
{
	if (ha_opening_open(o) || ha_mr_cache_get(o->mr_cache, want, entry))
		*entry = NULL;
}

/*
 * While the caller's descriptor is there: on the devices of rails that are not needed yet. Such an
 * entry has no key until its rail has (failover/keys.c).
 */
static void register_early(struct ha_bundle *b, struct ha_mr *mr, const struct ha_mr_want *want)
{
	struct rlimit files = { 0 };
	unsigned kept;

	for (unsigned i = 0; i < b->nrails; i++)
		if (!mr->entry[i] && b->rail[i].opening)
			register_on(b->rail[i].opening, want, &mr->entry[i]);
	if (!ha_dmabuf_report_once(&b->ctx->dmabufs, &kept))
		return;
	getrlimit(RLIMIT_NOFILE, &files);
	HA_WARN(b->name,
		"no descriptor is left to keep dma-bufs for other NICs (%u are kept; the limit of "
		"open files is %llu): buffers are "
		"registered on the standby at once, and a connection that needs a third NIC, or "
		"its standby again, ends; raise the "
		"limit (ulimit -n)",
		kept, (unsigned long long)files.rlim_cur);
}

/* The caller may close its descriptor at once; a rail that is not needed yet will want one. */
static void keep_descriptor(struct ha_bundle *b, struct ha_mr *mr)
{
	const struct ha_mr_want want = mr->want;

	mr->want.fd = -1;
	if (!want.dmabuf ||
	    (b->nrails == b->balance.ndata && b->registered.rails == (1u << b->nrails) - 1))
		return;
	mr->kept = ha_dmabuf_keep(&b->ctx->dmabufs, &want);
	if (mr->kept)
		mr->want.fd = mr->kept->fd;
	else
		register_early(b, mr, &want);
}

const char *ha_mr_advice(const struct ha_mr *mr)
{
	if (mr->want.dmabuf && mr->want.fd < 0)
		return "no descriptor was left to keep its dma-buf for this NIC; raise the limit "
		       "of open files (ulimit -n)";
	return "raise the limit of locked memory (ulimit -l)";
}

static const char *find_advice(int err, bool dmabuf, int type)
{
	if (err == -ENOMEM)
		return "raise the limit of locked memory (ulimit -l)";
	if (dmabuf)
		return "kernel and driver must support dma-buf for RDMA";
	if (type == HA_MEM_CUDA)
		return "GPU memory needs nvidia_peermem (modprobe nvidia_peermem) or dma-buf";
	return "is the buffer mapped, and writable?";
}

/* What a device says that is gone, or about to be. */
static bool means_lost(int err)
{
	return err == -EIO || err == -ENODEV || err == -ENXIO;
}

/* Failover's business. What is missing on it is registered when the rail is back. */
static bool device_lost(const struct ha_bundle *b, int err)
{
	return b->terms.flags & HA_FLAG_FAILOVER && means_lost(err);
}

static int register_all(struct ha_bundle *b, struct ha_mr *mr, const struct ha_mr_want *want)
{
	int err = 0;

	for (unsigned i = 0; i < b->nrails && !err; i++) {
		if (!(b->registered.rails >> i & 1))
			continue;
		err = register_rail(b, &b->rail[i], mr, want);
		if (!device_lost(b, err))
			continue;
		b->registered.rails &= (uint8_t) ~(1u << i);
		err = 0;
	}
	return err;
}

static void link_mr(struct ha_bundle *b, struct ha_mr *mr)
{
	pthread_mutex_lock(&b->registered.list_lock);
	LIST_INSERT_HEAD(&b->registered.list, mr, link);
	pthread_mutex_unlock(&b->registered.list_lock);
}

static void unlink_mr(struct ha_bundle *b, struct ha_mr *mr)
{
	pthread_mutex_lock(&b->registered.list_lock);
	LIST_REMOVE(mr, link);
	pthread_mutex_unlock(&b->registered.list_lock);
}

static struct ha_mr_want describe_buffer(void *data, size_t size, int type, uint64_t offset, int fd,
					 unsigned flags)
{
	struct ha_mr_want want = {
		.addr = (uintptr_t)data,
		.size = size,
		.offset = offset,
		.fd = fd,
		.dmabuf = fd >= 0,
		.strict = flags & HA_MR_FORCE_SO,
		.type = (uint8_t)type,
	};

	return round_to_pages(&want);
}

int ha_reg_mr(struct ha_bundle *b, void *data, size_t size, int type, uint64_t offset, int fd,
	      unsigned flags, struct ha_mr **out)
{
	struct ha_mr_want want = describe_buffer(data, size, type, offset, fd, flags);
	struct ha_mr *mr;
	int err;

	*out = NULL;
	if (!size || (type != HA_MEM_HOST && type != HA_MEM_CUDA))
		return -EINVAL;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -ENOMEM;
	mr->type = (uint8_t)type;
	mr->addr = data;
	mr->size = size;
	mr->want = want;
	pthread_mutex_lock(&b->registered.lock);
	/* Whether or not a rail is there: the next one makes its queue pair by it. Relaxed: who
	 * flushes has been given the buffer. */
	if (needs_flush(b, type))
		atomic_store_explicit(&b->flushable, true, memory_order_relaxed);
	err = register_all(b, mr, &want);
	if (!err) {
		keep_descriptor(b, mr);
		link_mr(b, mr);
	} else {
		release_mr(b, mr); /* before a rail can take another device */
	}
	pthread_mutex_unlock(&b->registered.lock);
	if (err) {
		HA_WARN(b->name, "cannot register %zu bytes of %s memory at %p%s: %s; %s", size,
			type == HA_MEM_HOST ? "host" : "GPU", data,
			want.dmabuf ? " by dma-buf" : "", strerror(-err),
			find_advice(err, want.dmabuf, type));
		return err;
	}
	*out = mr;
	return 0;
}

/* ---- before there is a connection ---- */

struct ha_held {
	unsigned n;
	struct ha_mr_entry *entry[HA_MAX_RAILS];
};

void ha_unhold_mr(struct ha_held *held)
{
	for (unsigned i = 0; held && i < held->n; i++)
		ha_mr_cache_put(held->entry[i]);
	free(held);
}

/* The device may not have been used yet. One that is lost holds nothing: its connections register
 * the buffer on the standby. */
static int hold_on(struct ha_held *held, struct ha_device *dev, const struct ha_mr_want *want)
{
	struct ha_opening *o = ha_device_take(dev);
	struct ha_mr_entry *entry;
	int err = ha_device_failed(dev);

	if (!err)
		err = ha_opening_open(o);
	if (!err)
		err = ha_mr_cache_get(o->mr_cache, want, &entry);
	ha_opening_put(o); /* the entry is a user */
	if (means_lost(err) && dev->ctx->config.enable_backup)
		return 0;
	if (err) {
		HA_WARN(ha_device_name(dev),
			"cannot register %zu bytes of %s memory at %p%s: %s; %s", want->size,
			want->type == HA_MEM_HOST ? "host" : "GPU", (void *)want->addr,
			want->dmabuf ? " by dma-buf" : "", strerror(-err),
			find_advice(err, want->dmabuf, want->type));
		return err;
	}
	held->entry[held->n++] = entry;
	return 0;
}

int ha_hold_mr(struct ha_ctx *ctx, int dev, void *data, size_t size, int type, uint64_t offset,
	       int fd, unsigned flags, struct ha_held **out)
{
	struct ha_comm_opts opts = { .traffic_class = -1 };
	struct ha_mr_want want = describe_buffer(data, size, type, offset, fd, flags);
	struct ha_held *held;
	int err;

	*out = NULL;
	if (!size || (type != HA_MEM_HOST && type != HA_MEM_CUDA))
		return -EINVAL;
	err = ha_fused_resolve(ctx, &dev, NULL, &opts);
	if (err)
		return err;
	held = calloc(1, sizeof(*held));
	if (!held)
		return -ENOMEM;
	for (int i = 0; i <= opts.nmore && !err; i++)
		err = hold_on(held, &ctx->devices[i ? opts.more[i - 1] : dev], &want);
	if (err) {
		ha_unhold_mr(held);
		return err;
	}
	*out = held;
	return 0;
}

bool ha_mr_known(const struct ha_bundle *b, const struct ha_mr *mr)
{
	const struct ha_mr *at;

	LIST_FOREACH(at, &b->registered.list, link)
		if (at == mr)
			return true;
	return false;
}

int ha_dereg_mr(struct ha_bundle *b, struct ha_mr *mr)
{
	if (!mr)
		return 0;
	pthread_mutex_lock(&b->registered.lock);
	unlink_mr(b, mr);
	release_mr(b, mr);
	pthread_mutex_unlock(&b->registered.lock);
	atomic_store_explicit(&b->registered.given_back_at, ha_clock_now(b->ctx->clock),
			      memory_order_relaxed);
	return 0;
}

void ha_bundle_free_mrs(struct ha_bundle *b)
{
	struct ha_mr *mr;

	while ((mr = LIST_FIRST(&b->registered.list)) != NULL) {
		unlink_mr(b, mr);
		release_mr(b, mr);
	}
}
