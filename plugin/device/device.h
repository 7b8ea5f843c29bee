/* SPDX-License-Identifier: BSD-3-Clause */
/* device.h - one RDMA device and port: protection domain, shared receive queue, registration
 * cache */
#ifndef HA_PLUGIN_DEVICE_H
#define HA_PLUGIN_DEVICE_H

#include "plugin/core.h"
#include "plugin/device/address.h"
#include "plugin/device/opening.h"
#include "plugin/device/silence.h"
#include "rdma/verbs/ops.h"

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>

/* receives given back to the shared queue at once, where it is long enough */
#define HA_REFILL 32

#define HA_SRQ_DEPTH_MIN 256

struct ha_away;
struct ha_topo_device;

struct ha_device {
	_Atomic uint32_t polls; /* of connections that keep polling (bundle.h), all together */
	/* a chain, read-only after set-up, so threads may share it */
	struct ibv_recv_wr refill[HA_REFILL];
	/* Below: set-up. */
	struct ha_ctx *ctx;
	const struct ha_topo_device *topo;
	/* What new rails and registrations are made on. Another one when the device is back after a
	 * failure (returns.h); changed under ctx->drive and lock. */
	struct ha_opening *now;
	/* Under ctx->drive: it is looked for; when it was last back, and how often it failed again
	 * at once. */
	struct ha_away *away;
	uint64_t back_at;
	unsigned flaps;
	int index;
	/* of this host, up or not, that could stand in for this one; itself is one of them */
	unsigned ports;
	struct ha_address address; /* under lock; how peers reach it, when it was last asked */
	bool up;                   /* under lock; active and with an address */
	int speed_mbps;            /* under lock; what the port ran at when it was last up */
	int speed_followed;        /* under ctx->drive; what the shares of fused devices know */
	unsigned hookups; /* threads that connect queue pairs of it now; under ctx->hookups.lock */
	struct ha_silence silence; /* under ctx->drive; how long its paths may stand still */
	/* under ctx->drive; senders' work requests on it, and when they were counted
	 * (balance/lag.c) */
	uint32_t load;
	uint64_t load_at;
	_Atomic int
		failed; /* 0, or the negative errno of a device that is gone, and not back yet */
	int max_comms;
	pthread_mutex_t lock; /* the address and the port's state, `now` and all that is in it */
	uint32_t srq_depth;   /* of the shared receive queue, at most */
	/* receives that each gives back at once: HA_REFILL, or a power of two below */
	_Atomic uint32_t portion;
	uint32_t send_depth; /* work requests in the send queue of a sending connection's rail */
	uint32_t recv_depth; /* of a receiving one's */
	/* register memory with relaxed ordering, until the device refuses it */
	atomic_bool relaxed;
	char name[IBV_SYSFS_NAME_MAX + 8]; /* "mlx5_0:1" */
};

/* Budget and limits; touches no hardware. */
void ha_device_init(struct ha_device *dev, struct ha_ctx *ctx, const struct ha_topo_device *topo,
		    int index);
/* Everything made on the device must be gone, but for cached registrations. */
void ha_device_close(struct ha_device *dev);

/* The present opening, with one user more. From any thread. */
struct ha_opening *ha_device_take(struct ha_device *dev);
/* 0, or the negative errno of one that has failed, with a line. */
int ha_device_failed(const struct ha_device *dev);

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
/* The shared receive queue that new queue pairs are made on; NULL: there is none now. */
struct ibv_srq *ha_device_srq(struct ha_device *dev);

/* Ask the port again. Under ctx->drive. */
void ha_device_refresh(struct ha_device *dev);
/* Up, and not failed for good. */
bool ha_device_usable(struct ha_device *dev);
struct ha_address ha_device_address(struct ha_device *dev);
int ha_device_speed(struct ha_device *dev);

/* Bytes that one work request may carry; a multiple of the stripes' alignment. */
uint32_t ha_device_max_msg(const struct ha_device *dev);

void ha_device_props(const struct ha_device *dev, struct ha_dev_props *props);

/* The leaf switch that it hangs on (rdma/topo/leaf.h); 0: not known. */
uint32_t ha_device_place(const struct ha_device *dev);

/* "mlx5_4:1": as the system has it now, for its files. By the driver. Returns buf. */
const char *ha_device_system_label(const struct ha_device *dev, char *buf, size_t len);

/* As it was discovered, and NCCL knows it; also if it has come back by another name. */
static inline const char *ha_device_name(const struct ha_device *dev)
{
	return dev->name;
}

#endif
