/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * opening.h - what is made on a port from one opening of its device to the next
 *
 * A device that fails is never of use again as it was opened, but it may come back (returns.h) and
 * is then opened anew. What was made on the one opening (queue pairs, registrations) keeps it alive
 * until it is gone, beside the next one.
 */
#ifndef HA_PLUGIN_OPENING_H
#define HA_PLUGIN_OPENING_H

#include "base/loop.h"
#include "rdma/verbs/ops.h"

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#define HA_FAILED_SRQS 4

struct ha_ctx;
struct ha_device;
struct ha_mr_cache;

/* An open context; the ports of one device share it. Under ctx->drive, but for `lost`. */
struct ha_nic {
	struct ha_ctx *ctx;
	struct ibv_context *verbs;
	struct ha_verbs_hot hot; /* of that context; read-only */
	struct ha_device *dev;   /* the first of its ports */
	struct ha_watch events;
	atomic_bool lost;          /* the device has failed: nothing on it works any more */
	TAILQ_ENTRY(ha_nic) entry; /* in ctx->returns.nics */
};

struct ha_opening {
	struct ha_device *dev;
	/* Below: under dev->lock. NULL: the device is away, and has not been opened since. */
	struct ha_nic *nic;
	bool open; /* the rest is there */
	struct ibv_pd *pd;
	struct ha_mr_cache *mr_cache;
	/* Zero-length receives for the immediates of every connection on this port: where a new
	 * queue pair takes them from. NULL: it failed, and no other could be made since. */
	struct ibv_srq *srq;
	struct ibv_srq *failed_srq[HA_FAILED_SRQS]; /* kept while queue pairs are on them */
	uint32_t srq_depth;
	uint32_t srq_reserved; /* receives that connections may consume at once, all together */
	/* put into the queue for them; never shrinks, because nobody can take a receive back */
	uint32_t srq_posted;
	uint32_t receivers; /* connections that reserved some */
	/* Rails, queue pairs that wait for their destruction, registrations; one for the device
	 * while this is its present opening. */
	_Atomic unsigned users;
	LIST_ENTRY(ha_opening) past; /* in ctx->returns.past, under ctx->drive */
};

/* With one user, the device. NULL: no memory. */
struct ha_opening *ha_opening_new(struct ha_device *dev, struct ha_nic *nic);
/* Protection domain, shared receive queue, cache: on first use, then free of charge. A failure is
 * one line. */
int ha_opening_open(struct ha_opening *o);
static inline bool ha_opening_lost(const struct ha_opening *o)
{
	/* Acquire: pairs with the release when it is lost. */
	return o->nic && atomic_load_explicit(&o->nic->lost, memory_order_acquire);
}
/* One more user; any thread that has one already, or holds dev->lock. NULL is fine. */
struct ha_opening *ha_opening_take(struct ha_opening *o);
/* NULL is fine. From any thread; who is the last wakes the driver, which closes it. */
void ha_opening_put(struct ha_opening *o);
/* Everything that was made on it must be gone, but for cached registrations. Frees it. */
void ha_opening_close(struct ha_opening *o);

/* A connection that may consume receives comes or goes. A queue that is too small for all is only
 * slower, never wrong. */
void ha_opening_reserve(struct ha_opening *o);
void ha_opening_unreserve(struct ha_opening *o);
/* Give n consumed receives back to the queue they were taken from, off the hot path. */
void ha_opening_repay(const struct ha_opening *o, struct ibv_srq *srq, uint32_t n);
/* The queue for a queue pair that is about to be made. */
struct ibv_srq *ha_opening_srq(struct ha_opening *o);
/* This queue has failed. True: it is the one in use, and another has taken its place if one could
 * be made; whatever has queue pairs on it must make others. Under ctx->drive. */
bool ha_opening_replace_srq(struct ha_opening *o, const struct ibv_srq *failed);

#endif
