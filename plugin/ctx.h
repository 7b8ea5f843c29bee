/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ctx.h - the context: everything that hawser has in one host, or in one host of a simulation
 *
 * Two locks, always taken in this order:
 *   drive  the right to run a round (service.h). Whoever holds it alone touches ctx->setup.driven,
 *          ctx->bundles, the sockets and the connections in the making. Slow verbs run under it; no
 *          call that NCCL repeats waits for it.
 *   lock   held for moments: the lists in which connect, accept and listen meet the one who drives
 *          (setup.connects, .incoming, .listens, each listener's accepts).
 */
#ifndef HA_PLUGIN_CTX_H
#define HA_PLUGIN_CTX_H

#include "base/config.h"
#include "base/loop.h"
#include "plugin/balance/advice.h"
#include "plugin/balance/share.h"
#include "plugin/channel/oob.h"
#include "plugin/channel/peer.h"
#include "plugin/channel/schedule.h"
#include "plugin/connect/returns.h"
#include "plugin/connect/service.h"
#include "plugin/core.h"
#include "plugin/device/device.h"
#include "plugin/device/dmabuf.h"
#include "plugin/device/fused.h"
#include "plugin/device/hookup.h"
#include "plugin/device/mpib.h"
#include "plugin/device/reaper.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

struct ha_device;
struct ha_journal;
struct ha_pending;
struct ha_topo;

/* Connections in the making. */
struct ha_setup {
	/* Under ctx->drive. */
	LIST_HEAD(, ha_pending) driven;
	/* start of the interval in which connections of unauthenticated peers are counted */
	uint64_t unauthenticated_since;
	/* in it: lines written and left out */
	unsigned unauthenticated_logged, unauthenticated_silent;
	/* Under ctx->lock. */
	LIST_HEAD(, ha_pending) incoming; /* new ones, for the next round */
	LIST_HEAD(, ha_pending) connects; /* what ha_connect has begun and not yet collected */
	LIST_HEAD(, ha_listen) listens;
};

struct ha_ctx {
	struct ha_config config; /* a copy */
	const struct ha_verbs_ops *verbs;
	const struct ha_clock *clock;
	struct ha_verbs_ops *own_verbs; /* what verbs is by default; NULL: the caller's are used */
	struct ha_oob oob;
	struct ha_topo *topo;
	struct ha_device *devices;
	int ndevices; /* reported to NCCL */
	/* of devices[]: with those that were not usable at the start and may come up as standbys */
	int nports;
	struct ha_fused_list fused;
	struct ha_mpib mpib;
	struct ha_weights weights; /* of HA_NCCL_WEIGHTS */
	struct ha_advice advice;
	bool own_barrier; /* no membarrier(2): see guard.h */
	/* NCCL_IB_OOO_RQ: a queue pair of that kind could not be made, so no more are */
	atomic_bool ordered;
	void (*progress)(struct ha_ctx *ctx); /* ha_ctx_progress, for the floors below */
	struct ha_loop loop; /* sockets and devices; under drive, but for ha_loop_wake */
	struct ha_service service;
	struct ha_reaper reaper;
	struct ha_returns returns; /* under drive */
	struct ha_dmabufs dmabufs;
	struct ha_hookups hookups;
	struct ha_journal *journal; /* NULL: not open, events are only logged */

	pthread_mutex_t drive;
	LIST_HEAD(, ha_bundle) bundles; /* connections that are up */
	struct ha_round round;
	struct ha_peers peers;
	bool shared_switch_reported; /* once is enough */
	/* streams of connections that are closed, until BYE has arrived */
	LIST_HEAD(, ha_stream) leaving;

	pthread_mutex_t lock;
	struct ha_setup setup;
};

#endif
