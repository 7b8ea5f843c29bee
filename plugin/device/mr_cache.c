/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_cache.c - registrations of one protection domain, counted
 *
 * NCCL registers the same buffers once per connection; one ibv_mr serves them all. Entries are
 * found by page range, type, ordering and kind. A dma-buf's descriptor and offset are not part of
 * the key: NCCL exports the same memory anew for each registration and closes the descriptor at
 * once, so the number says nothing, while a range of addresses that is registered cannot change its
 * memory under us.
 *
 * An entry that nobody uses any more is deregistered, unless HA_NCCL_MR_CACHE_ENTRIES asks to keep
 * that many of the most recently used. Keeping is only right for a program that never gives
 * registered memory back to the system: if pages are unmapped and others mapped at their address, a
 * kept registration goes on pointing at the old pages, and data lands where nobody looks. Hence 0
 * by default; and GPU memory is never kept, because its addresses are reused at once.
 */
#include "plugin/device/mr.h"

#include "base/log.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "rdma/topo/device.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#define BUCKETS 256

#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

struct ha_mr_entry {
	struct ha_mr_cache *cache;
	struct ha_mr_want want;
	struct ibv_mr *mr;
	unsigned users;
	LIST_ENTRY(ha_mr_entry) chain; /* in its bucket */
	TAILQ_ENTRY(ha_mr_entry) kept; /* while users == 0 */
};

TAILQ_HEAD(ha_mr_entries, ha_mr_entry);

struct ha_mr_cache {
	struct ha_opening *opening; /* each entry that is in use is one of its users */
	/* everything below; across the slow verbs, so that two threads register a buffer once */
	pthread_mutex_t lock;
	unsigned limit, used, nkept;
	struct ha_mr_entries kept; /* from the most to the least recently used */
	LIST_HEAD(, ha_mr_entry) bucket[BUCKETS];
};

static unsigned hash_want(const struct ha_mr_want *w)
{
	return (unsigned)((w->addr >> 12) * UINT64_C(0x9e3779b97f4a7c15) >> 56) % BUCKETS;
}

static bool is_same_buffer(const struct ha_mr_want *a, const struct ha_mr_want *b)
{
	return a->addr == b->addr && a->size == b->size && a->type == b->type &&
	       a->strict == b->strict && a->dmabuf == b->dmabuf;
}

static int verbs_register(struct ha_opening *o, const struct ha_mr_want *w, unsigned access,
			  struct ibv_mr **mr)
{
	const struct ha_verbs_ops *v = o->dev->ctx->verbs;

	if (w->dmabuf && o->dev->topo->data_direct)
		return v->reg_data_direct_mr(v, o->pd, w->offset, w->size, w->addr, w->fd,
					     (int)access, mr);
	if (w->dmabuf)
		return v->reg_dmabuf_mr(v, o->pd, w->offset, w->size, w->addr, w->fd, (int)access,
					mr);
	return v->reg_mr(v, o->pd, (void *)w->addr, w->size, w->addr, access, mr);
}

/* Relaxed ordering where it may be; a device that refuses it once is not asked again. */
static int do_register(struct ha_opening *o, const struct ha_mr_want *w, struct ibv_mr **mr)
{
	struct ha_device *dev = o->dev;
	bool relaxed = !w->strict && atomic_load_explicit(&dev->relaxed, memory_order_relaxed);
	int err =
		relaxed ? verbs_register(o, w, ACCESS | IBV_ACCESS_RELAXED_ORDERING, mr) : -EINVAL;

	if (!relaxed)
		return verbs_register(o, w, ACCESS, mr);
	if (err != -EINVAL && err != -EOPNOTSUPP)
		return err;
	err = verbs_register(o, w, ACCESS, mr);
	if (!err && atomic_exchange_explicit(&dev->relaxed, false, memory_order_relaxed))
		HA_INFO(dev->name, "the device refuses memory with relaxed ordering; none is used");
	return err;
}

static void unlink_kept(struct ha_mr_cache *c, struct ha_mr_entry *e)
{
	TAILQ_REMOVE(&c->kept, e, kept);
	c->nkept--;
}

static void link_kept(struct ha_mr_cache *c, struct ha_mr_entry *e)
{
	TAILQ_INSERT_HEAD(&c->kept, e, kept);
	c->nkept++;
}

static void drop_entry(struct ha_mr_cache *c, struct ha_mr_entry *e)
{
	const struct ha_verbs_ops *v = c->opening->dev->ctx->verbs;
	int err = v->dereg_mr(v, e->mr);

	/* Of a device that is gone nothing else can be expected, and its end has been logged. */
	if (err && !ha_opening_lost(c->opening))
		HA_WARN(c->opening->dev->name,
			"cannot deregister %zu bytes at %#lx: %s; they stay locked until the "
			"process ends; look for the driver's lines in `dmesg`",
			e->want.size, (unsigned long)e->want.addr, strerror(-err));
	LIST_REMOVE(e, chain);
	free(e);
}

static int add_entry(struct ha_mr_cache *c, const struct ha_mr_want *want,
		     struct ha_mr_entry **entry)
{
	struct ha_mr_entry *old, *e = calloc(1, sizeof(*e));
	int err = -ENOMEM;

	if (e) {
		e->want = *want;
		err = do_register(c->opening, want, &e->mr);
	}
	/* What is kept for later may be what is missing now. */
	while (err == -ENOMEM && e && !TAILQ_EMPTY(&c->kept)) {
		old = TAILQ_LAST(&c->kept, ha_mr_entries);
		unlink_kept(c, old);
		drop_entry(c, old);
		err = do_register(c->opening, want, &e->mr);
	}
	if (err) {
		free(e);
		return err;
	}
	e->cache = c;
	e->users = 1;
	ha_opening_take(c->opening);
	LIST_INSERT_HEAD(&c->bucket[hash_want(want)], e, chain);
	c->used++;
	*entry = e;
	return 0;
}

int ha_mr_cache_get(struct ha_mr_cache *c, const struct ha_mr_want *want,
		    struct ha_mr_entry **entry)
{
	struct ha_mr_entry *e;
	int err = 0;

	pthread_mutex_lock(&c->lock);
	LIST_FOREACH(e, &c->bucket[hash_want(want)], chain)
		if (is_same_buffer(&e->want, want))
			break;
	if (!e) {
		err = add_entry(c, want, entry);
	} else {
		if (!e->users++) {
			unlink_kept(c, e);
			c->used++;
			ha_opening_take(c->opening);
		}
		*entry = e;
	}
	pthread_mutex_unlock(&c->lock);
	return err;
}

void ha_mr_cache_put(struct ha_mr_entry *e)
{
	struct ha_mr_cache *c = e->cache;
	bool unused;

	pthread_mutex_lock(&c->lock);
	unused = !--e->users;
	if (unused) {
		c->used--;
		if (!c->limit || e->want.dmabuf || e->want.type != HA_MEM_HOST) {
			drop_entry(c, e);
		} else {
			link_kept(c, e);
			while (c->nkept > c->limit) {
				e = TAILQ_LAST(&c->kept, ha_mr_entries);
				unlink_kept(c, e);
				drop_entry(c, e);
			}
		}
	}
	pthread_mutex_unlock(&c->lock);
	if (unused)
		ha_opening_put(c->opening); /* with which the cache may go */
}

const struct ibv_mr *ha_mr_entry_mr(const struct ha_mr_entry *e)
{
	return e->mr;
}

void ha_mr_cache_count(struct ha_mr_cache *c, unsigned *used, unsigned *kept)
{
	pthread_mutex_lock(&c->lock);
	*used = c->used;
	*kept = c->nkept;
	pthread_mutex_unlock(&c->lock);
}

struct ha_mr_cache *ha_mr_cache_new(struct ha_opening *opening, unsigned limit)
{
	struct ha_mr_cache *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->opening = opening;
	c->limit = limit;
	TAILQ_INIT(&c->kept);
	pthread_mutex_init(&c->lock, NULL);
	return c;
}

void ha_mr_cache_free(struct ha_mr_cache *c)
{
	if (!c)
		return;
	for (unsigned i = 0; i < BUCKETS; i++)
		while (!LIST_EMPTY(&c->bucket[i]))
			drop_entry(c, LIST_FIRST(&c->bucket[i]));
	pthread_mutex_destroy(&c->lock);
	free(c);
}
