/* SPDX-License-Identifier: BSD-3-Clause */
/* device.h - one RDMA device and port that is open: protection domain, shared receive queue, registration cache */
#ifndef HA_CORE_DEVICE_H
#define HA_CORE_DEVICE_H

#include "core/core.h"
#include "verbs/ops.h"

#include <infiniband/verbs.h>
#include <stdatomic.h>

#define HA_REFILL 32 /* receives given back to the shared queue at once */

struct ha_topo_device;
struct ha_mr_cache;

struct ha_device {
	struct ibv_srq *srq; /* zero-length receives for the immediates of every connection on this device */
	struct ha_verbs_hot hot;
	struct ibv_recv_wr refill[HA_REFILL]; /* a chain, read-only after set-up, so threads may share it */
	/* Below: set-up. */
	struct ha_ctx *ctx;
	const struct ha_topo_device *topo;
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ha_mr_cache *mr_cache;
	int index;
	_Atomic int failed; /* 0, or the negative errno of a device that is gone for good */
	int max_comms;
	uint32_t srq_depth;
	_Atomic uint32_t srq_promised; /* receives that connections may consume at once, all together */
};

#endif
