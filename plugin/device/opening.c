/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/device/opening.h"

#include "base/log.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "plugin/device/mr.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * What one connection may consume from the shared queue before it gives receives back: an immediate
 * for every slot, since a receiver that completes early (optional) may not poll until its slots run
 * out, and what it gives back in portions. With many connections the queue is shorter than the sum;
 * then those that poll carry the others, and a moment without receives is a pause of the sender
 * (receiver not ready), not a fault.
 */
#define RESERVE (HA_SLOTS + HA_REFILL)

struct ha_opening *ha_opening_new(struct ha_device *dev, struct ha_nic *nic)
{
	struct ha_opening *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->dev = dev;
	o->nic = nic;
	o->srq_depth = dev->srq_depth;
	atomic_init(&o->users, 1);
	return o;
}

static const struct ha_verbs_ops *verbs_of(const struct ha_opening *o)
{
	return o->dev->ctx->verbs;
}

/* Less than what the device allows for one queue may still be too much for what is left of its
 * memory. */
static int open_srq(struct ha_opening *o)
{
	int err;

	for (;;) {
		struct ibv_srq_init_attr init = { .attr = { .max_wr = o->srq_depth,
							    .max_sge = 1 } };

		err = verbs_of(o)->create_srq(verbs_of(o), o->pd, &init, &o->srq);
		if (!err || o->srq_depth / 2 < HA_SRQ_DEPTH_MIN ||
		    (err != -ENOMEM && err != -EINVAL))
			break;
		o->srq_depth /= 2;
	}
	if (err)
		o->srq = NULL;
	return err;
}

static int open_locked(struct ha_opening *o)
{
	const struct ha_verbs_ops *v = verbs_of(o);
	const char *name = ha_device_name(o->dev);
	int err = v->alloc_pd(v, o->nic->verbs, &o->pd);

	if (err) {
		HA_WARN(name,
			"cannot allocate a protection domain: %s; look for the driver's lines in "
			"`dmesg`",
			strerror(-err));
		return err;
	}
	err = open_srq(o);
	if (err) {
		HA_WARN(name,
			"cannot create a shared receive queue of %u entries: %s; raise the limit "
			"of locked memory (ulimit -l), or look for the driver's lines in `dmesg`",
			o->srq_depth, strerror(-err));
		goto dealloc_pd;
	}
	o->mr_cache = ha_mr_cache_new(o, (unsigned)o->dev->ctx->config.mr_cache_entries);
	if (!o->mr_cache) {
		err = -ENOMEM;
		goto destroy_srq;
	}
	o->open = true;
	return 0;

destroy_srq:
	v->destroy_srq(v, o->srq);
dealloc_pd:
	v->dealloc_pd(v, o->pd);
	return err;
}

static bool post_refill(struct ha_opening *o, uint32_t n)
{
	struct ibv_recv_wr *bad;

	return o->nic->hot.post_srq_recv(o->srq, ha_device_refill(o->dev, n), &bad) == 0;
}

/* As many receives as are reserved for the connections here, or as there is room for. */
static void post_reserved(struct ha_opening *o)
{
	while (o->srq_posted < o->srq_reserved && o->srq_posted < o->srq_depth) {
		uint32_t n = o->srq_depth - o->srq_posted;

		n = n < HA_REFILL ? n : HA_REFILL;
		if (!post_refill(o, n))
			break;
		o->srq_posted += n;
	}
}

/* The one before has failed. */
static int replace_locked(struct ha_opening *o)
{
	const char *name = ha_device_name(o->dev);
	int err = open_srq(o);

	if (err) {
		HA_WARN(name,
			"cannot create another shared receive queue of %u entries: %s; raise the "
			"limit of locked memory (ulimit -l), or look for the driver's lines in "
			"`dmesg`",
			o->srq_depth, strerror(-err));
		return err;
	}
	o->srq_posted = 0;
	post_reserved(o);
	HA_INFO(name,
		"another shared receive queue of %u entries takes the place of the failed one",
		o->srq_depth);
	return 0;
}

int ha_opening_open(struct ha_opening *o)
{
	int err = 0;

	pthread_mutex_lock(&o->dev->lock);
	if (!o->nic || ha_opening_lost(o))
		err = -EIO;
	else if (!o->open)
		err = open_locked(o);
	else if (!o->srq)
		err = replace_locked(o);
	pthread_mutex_unlock(&o->dev->lock);
	return err;
}

/* Those that no queue pair is on any more; others say so (EBUSY). */
static void destroy_failed_srqs(struct ha_opening *o)
{
	for (int i = 0; i < HA_FAILED_SRQS; i++)
		if (o->failed_srq[i] && !verbs_of(o)->destroy_srq(verbs_of(o), o->failed_srq[i]))
			o->failed_srq[i] = NULL;
}

/* Where a failed queue waits for its queue pairs to go. NULL: there are too many of them. */
static struct ibv_srq **failed_place(struct ha_opening *o)
{
	destroy_failed_srqs(o);
	for (int i = 0; i < HA_FAILED_SRQS; i++)
		if (!o->failed_srq[i])
			return &o->failed_srq[i];
	return NULL;
}

struct ibv_srq *ha_opening_srq(struct ha_opening *o)
{
	struct ibv_srq *srq;

	pthread_mutex_lock(&o->dev->lock);
	srq = o->srq;
	pthread_mutex_unlock(&o->dev->lock);
	return srq;
}

bool ha_opening_replace_srq(struct ha_opening *o, const struct ibv_srq *failed)
{
	struct ibv_srq **place;
	bool ours;

	pthread_mutex_lock(&o->dev->lock);
	ours = o->open && o->srq && o->srq == failed;
	place = ours ? failed_place(o) : NULL;
	if (ours && !place) {
		HA_WARN(ha_device_name(o->dev),
			"%d shared receive queues have failed and are still in use: there is no "
			"other one; the device needs "
			"a reset",
			HA_FAILED_SRQS + 1);
	} else if (ours) {
		*place = o->srq;
		o->srq = NULL;
		(void)replace_locked(o); /* or when the next queue pair asks for it */
	}
	pthread_mutex_unlock(&o->dev->lock);
	return ours;
}

void ha_opening_close(struct ha_opening *o)
{
	const struct ha_verbs_ops *v = verbs_of(o);

	if (o->open) {
		ha_mr_cache_free(o->mr_cache);
		destroy_failed_srqs(o);
		if (o->srq)
			v->destroy_srq(v, o->srq);
		v->dealloc_pd(v, o->pd);
	}
	free(o);
}

/*
 * What connections hold back must never be all that there is, or the queue is dry for good: each
 * waits for an immediate that finds no receive. A portion p is for at most depth / (4 p)
 * connections, which hold back less than depth / 4 together. Whoever took a larger portion when
 * there were fewer keeps it for a while: those with twice the portion are at most half as many, so
 * all of them hold back less than three quarters.
 */
static void set_portion(const struct ha_opening *o)
{
	uint32_t p = HA_REFILL;

	if (o != o->dev->now)
		return;
	while (p > 1 && o->receivers * p > o->srq_depth / 4)
		p /= 2;
	atomic_store_explicit(&o->dev->portion, p, memory_order_relaxed);
}

void ha_opening_reserve(struct ha_opening *o)
{
	pthread_mutex_lock(&o->dev->lock);
	o->receivers++;
	set_portion(o);
	o->srq_reserved += RESERVE;
	if (o->srq)
		post_reserved(o);
	if (o->srq_posted < o->srq_reserved)
		HA_TRACE(ha_device_name(o->dev),
			 "%u receives are shared by connections that may want %u at once",
			 o->srq_posted, o->srq_reserved);
	pthread_mutex_unlock(&o->dev->lock);
}

void ha_opening_unreserve(struct ha_opening *o)
{
	pthread_mutex_lock(&o->dev->lock);
	o->srq_reserved -= RESERVE;
	o->receivers--;
	set_portion(o);
	pthread_mutex_unlock(&o->dev->lock);
}

void ha_opening_repay(const struct ha_opening *o, struct ibv_srq *srq, uint32_t n)
{
	struct ibv_recv_wr one = { .next = NULL }, *bad;

	while (n-- && !o->nic->hot.post_srq_recv(srq, &one, &bad))
		;
}
