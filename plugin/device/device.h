/* SPDX-License-Identifier: BSD-3-Clause */
/* device.h - one RDMA device and port: protection domain, shared receive queue, registration
 * cache */
#ifndef HA_CORE_DEVICE_H
#define HA_CORE_DEVICE_H

#include "base/loop.h"
#include "plugin/core.h"
#include "plugin/device/address.h"
#include "plugin/device/silence.h"
#include "rdma/verbs/ops.h"

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>

#define HA_FAILED_SRQS 4
/* receives given back to the shared queue at once, where it is long enough */
#define HA_REFILL 32

struct ha_topo_device;
struct ha_mr_cache;

struct ha_device {
	/* Zero-length receives for the immediates of every connection on this device: where a new
	 * queue pair takes them from. Under lock. NULL: it failed, and no other could be made
	 * since. */
	struct ibv_srq *srq;
	/* under lock; kept while queue pairs are on them */
	struct ibv_srq *failed_srq[HA_FAILED_SRQS];
	struct ha_verbs_hot hot;
	_Atomic uint32_t polls; /* of connections that keep polling (bundle.h), all together */
	/* a chain, read-only after set-up, so threads may share it */
	struct ibv_recv_wr refill[HA_REFILL];
	/* Below: set-up. */
	struct ha_ctx *ctx;
	const struct ha_topo_device *topo;
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ha_mr_cache *mr_cache;
	int index;
	/* of this host, up or not, that could stand in for this one; itself is one of them */
	unsigned ports;
	struct ha_address address; /* under lock; how peers reach it, when it was last asked */
	bool up;                   /* under lock; active and with an address */
	int speed_mbps;            /* under lock; what the port ran at when it was last up */
	unsigned hookups; /* threads that connect queue pairs of it now; under ctx->hookups.lock */
	struct ha_silence silence; /* under ctx->drive; how long its paths may stand still */
	/* under ctx->drive; senders' work requests on it, and when they were counted
	 * (balance/lag.c) */
	uint32_t load;
	uint64_t load_at;
	_Atomic int failed; /* 0, or the negative errno of a device that is gone for good */
	int max_comms;
	pthread_mutex_t lock; /* open, srq_promised, srq_posted, receivers */
	bool open;
	uint32_t srq_depth;
	uint32_t srq_promised; /* receives that connections may consume at once, all together */
	/* put into the queue for them; never shrinks, because nobody can take a receive back */
	uint32_t srq_posted;
	uint32_t receivers; /* connections that promised */
	/* receives that each gives back at once: HA_REFILL, or a power of two below */
	_Atomic uint32_t portion;
	uint32_t send_depth; /* work requests in the send queue of a sending connection's rail */
	uint32_t recv_depth; /* of a receiving one's */
	/* register memory with relaxed ordering, until the device refuses it */
	atomic_bool relaxed;
	struct ha_watch events;
	char name[IBV_SYSFS_NAME_MAX + 8]; /* "mlx5_0:1" */
};

/* Budget and limits; touches no hardware. */
void ha_device_init(struct ha_device *dev, struct ha_ctx *ctx, const struct ha_topo_device *topo,
		    int index);
/* Protection domain, shared receive queue, cache: on first use, then free of charge. A failure is
 * one line. */
int ha_device_open(struct ha_device *dev);
/* Everything made on the device must be gone, but for cached registrations. */
void ha_device_close(struct ha_device *dev);

/* A connection that may consume receives comes or goes. A queue that is too small for all is only
 * slower, never wrong. */
void ha_device_promise(struct ha_device *dev);
void ha_device_unpromise(struct ha_device *dev);
/* How many receives a connection may consume before it gives them back: 1 to HA_REFILL. From any
 * thread. */
static inline uint32_t ha_device_portion(const struct ha_device *dev)
{
	/* Relaxed: an older value is as good for a moment. */
	return atomic_load_explicit(&dev->portion, memory_order_relaxed);
}
/* That many as a chain. */
static inline struct ibv_recv_wr *ha_device_refill(struct ha_device *dev, uint32_t n)
{
	return &dev->refill[HA_REFILL - n];
}
/* Give n consumed receives back to the queue they were taken from, off the hot path. */
void ha_device_repay(struct ha_device *dev, struct ibv_srq *srq, uint32_t n);
/* The queue for a queue pair that is about to be made. */
struct ibv_srq *ha_device_srq(struct ha_device *dev);
/* This queue has failed. True: it is the one in use, and another has taken its place if one could
 * be made; whatever has queue pairs on it must make others. Under ctx->drive. */
bool ha_device_replace_srq(struct ha_device *dev, const struct ibv_srq *failed);

/* Ask the port again. Under ctx->drive. True: its address has changed. */
bool ha_device_refresh(struct ha_device *dev);
/* Up, and not failed for good. */
bool ha_device_usable(struct ha_device *dev);
struct ha_address ha_device_address(struct ha_device *dev);
int ha_device_speed(struct ha_device *dev);

/* Bytes that one work request may carry; a multiple of the stripes' alignment. */
uint32_t ha_device_max_msg(const struct ha_device *dev);

void ha_device_props(const struct ha_device *dev, struct ha_dev_props *props);

/* Where it is in the fabric, as NCCL_IB_HCA says (wire.h); 0: it does not say. */
uint32_t ha_device_place(const struct ha_device *dev);

static inline const char *ha_device_name(const struct ha_device *dev)
{
	return dev->name;
}

#endif
