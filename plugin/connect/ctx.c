/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/ctx.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "plugin/channel/oob_tcp.h"
#include "plugin/channel/stream.h"
#include "plugin/connect/accept.h"
#include "plugin/connect/events.h"
#include "plugin/connect/pending.h"
#include "plugin/connect/setup.h"
#include "plugin/device/device.h"
#include "plugin/report/journal.h"
#include "plugin/transfer/guard.h"
#include "rdma/topo/device.h"
#include "rdma/topo/standby.h"
#include "rdma/verbs/dlopen.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int take_params(struct ha_ctx *ctx, const struct ha_ctx_params *params)
{
	int err;

	if (params->config)
		ctx->config = *params->config;
	else
		ha_config_load_env(&ctx->config);
	if (ha_weights_parse(ctx->config.weights, &ctx->weights)) {
		HA_WARN(NULL,
			"HA_NCCL_WEIGHTS=%s is no list of numbers from 0 to %d, one per rail and "
			"not all 0: the ports' speeds "
			"decide",
			ctx->config.weights, HA_SHARE_ALL);
		ctx->weights.n = 0;
	}
	ctx->clock = params->clock ? params->clock : &ha_clock_live;
	ctx->verbs = params->verbs;
	if (!ctx->verbs) {
		err = ha_verbs_open_library(ctx->config.verbs, &ctx->own_verbs);
		if (err)
			return err;
		ctx->verbs = ctx->own_verbs;
	}
	ctx->oob.ops = params->oob;
	ctx->oob.net = params->oob_net;
	ctx->oob.soft = params->oob != NULL;
	if (!ctx->oob.ops) {
		if (ha_mpib_wanted(&ctx->config) && ctx->config.mpib_oob_if[0])
			memcpy(ctx->config.socket_ifname, ctx->config.mpib_oob_if,
			       sizeof(ctx->config.socket_ifname));
		err = ha_oob_tcp_open(&ctx->config, &ctx->oob.own_tcp);
		if (err)
			return err;
		ctx->oob.ops = &ha_oob_tcp_ops;
		ctx->oob.net = ctx->oob.own_tcp;
	}
	return 0;
}

static int discover_devices(struct ha_ctx *ctx, const struct ha_ctx_params *params)
{
	struct ha_standby_class class;
	int err;

	/* Registered memory must survive a fork of the host program; kernels that need no help make
	 * this free. */
	(void)ctx->verbs->fork_init(ctx->verbs);
	ctx->topo = calloc(1, sizeof(*ctx->topo));
	if (!ctx->topo)
		return -ENOMEM;
	err = ha_topo_discover(ctx->verbs, &ctx->config, ctx->topo);
	if (err) {
		free(ctx->topo);
		ctx->topo = NULL;
		return err;
	}
	if (!ctx->topo->ndevices)
		return -ENODEV;
	err = ha_topo_number(ctx->topo, params->known, params->nknown);
	if (err)
		return err;
	ctx->devices = calloc((size_t)ctx->topo->nports, sizeof(*ctx->devices));
	if (!ctx->devices)
		return -ENOMEM;
	ctx->ndevices = ctx->topo->ndevices;
	ctx->nports = ctx->topo->nports;
	for (int i = 0; i < ctx->nports; i++)
		ha_device_init(&ctx->devices[i], ctx, &ctx->topo->devices[i], i);
	for (int a = 0; a < ctx->nports; a++)
		for (int b = 0; b < ctx->nports; b++)
			ctx->devices[a].ports +=
				a == b || ha_standby_classify(ctx->topo, a, b, &class);
	return ha_returns_open(ctx, ha_events_watch);
}

static int watch_devices(struct ha_ctx *ctx)
{
	struct ha_nic *nic;
	int err = 0;

	TAILQ_FOREACH(nic, &ctx->returns.nics, entry) {
		err = ha_events_watch(nic);
		if (err)
			break;
	}
	return err;
}

static int open_mpib(struct ha_ctx *ctx)
{
	int dev, err = ha_mpib_find(ctx);

	if (err <= 0)
		return err;
	err = ha_ctx_fuse(ctx, (int[]) { ctx->mpib.sout, ctx->mpib.sup }, 2, &dev);
	if (!err)
		ha_mpib_enable(ctx);
	return err;
}

int ha_ctx_create(const struct ha_ctx_params *params, struct ha_ctx **out)
{
	struct ha_ctx *ctx = calloc(1, sizeof(*ctx));
	int err;

	*out = NULL;
	if (!ctx)
		return -ENOMEM;
	ctx->loop.fd = -1;
	ctx->progress = ha_ctx_progress;
	pthread_mutex_init(&ctx->drive, NULL);
	ha_round_init(&ctx->round);
	pthread_mutex_init(&ctx->lock, NULL);
	ha_reaper_open(ctx);
	ha_hookups_open(ctx, params->hookups, params->hookups_arg);
	ctx->own_barrier = !ha_guard_init();
	ctx->peers.own_id = ha_random_u64();
	err = take_params(ctx, params);
	if (!err)
		err = discover_devices(ctx, params);
	if (!err)
		err = open_mpib(ctx);
	if (!err) {
		ha_advice_open(ctx, params->hints);
		ha_journal_open(ctx);
		err = ha_service_open(ctx);
	}
	if (!err)
		err = watch_devices(ctx);
	if (!err)
		err = ha_service_start(ctx);
	if (err) {
		ha_ctx_destroy(ctx);
		return err;
	}
	*out = ctx;
	return 0;
}

/* Nobody is in a round any more, and nobody will be. */
static void close_connections(struct ha_ctx *ctx)
{
	struct ha_pending *p;
	struct ha_bundle *b;

	while (!LIST_EMPTY(&ctx->setup.listens))
		ha_close_listen(LIST_FIRST(&ctx->setup.listens));
	while ((p = LIST_FIRST(&ctx->setup.connects)) != NULL) {
		LIST_REMOVE(p, entry);
		ha_pending_forget(p);
		if (atomic_load_explicit(&p->state, memory_order_acquire) == HA_PENDING_UP)
			ha_bundle_retire(p->bundle);
		ha_pending_free(p);
	}
	while ((b = LIST_FIRST(&ctx->bundles)) != NULL) {
		ha_bundle_retire(b);
		ha_bundle_free(b);
	}
}

void ha_ctx_destroy(struct ha_ctx *ctx)
{
	ha_service_stop(ctx);
	close_connections(ctx);
	ha_hookups_close(ctx);
	ha_reaper_close(ctx);
	while (!LIST_EMPTY(&ctx->leaving))
		ha_stream_part(LIST_FIRST(&ctx->leaving));
	ha_returns_close(ctx);
	ha_service_close(ctx);
	ha_advice_close(ctx);
	ha_journal_close(ctx);
	if (ctx->topo)
		ha_topo_release(ctx->topo);
	ha_fused_free(&ctx->fused);
	free(ctx->devices);
	free(ctx->topo);
	ha_oob_tcp_close(ctx->oob.own_tcp);
	ha_verbs_close_library(ctx->own_verbs);
	pthread_mutex_destroy(&ctx->lock);
	pthread_mutex_destroy(&ctx->drive);
	free(ctx);
}
