/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The program looks for a port that stands in for one that has been away from the beginning, while
 * the driver asks ports again because of their events. ThreadSanitizer looks at what they share.
 */
#include "base/check.h"
#include "base/config.h"

#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "plugin/device/fused.h"
#include "rdma/topo/device.h"
#include "rdma/verbs/dlopen.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define TURNS 200

static struct ha_verbs_ops below, *library;
static atomic_bool away, over;
static struct ha_ctx *ctx;

static int query_port(const struct ha_verbs_ops *v, struct ibv_context *context, uint8_t port,
		      struct ha_port_attr *attr)
{
	int err = below.query_port(v, context, port, attr);

	if (!err && atomic_load(&away) && !strcmp(context->device->name, "soft0"))
		attr->attr.state = IBV_PORT_DOWN;
	return err;
}

static void refresh_all(void)
{
	pthread_mutex_lock(&ctx->drive);
	for (int i = 0; i < ctx->nports; i++)
		ha_device_refresh(&ctx->devices[i]);
	pthread_mutex_unlock(&ctx->drive);
}

static void *refresh_until_over(void *arg)
{
	while (!atomic_load(&over))
		refresh_all();
	return arg;
}

static int resolve_device(void)
{
	struct ha_comm_opts opts = { .traffic_class = -1 };
	int dev = 0;

	CHECK_INT(ha_fused_resolve(ctx, &dev, NULL, &opts), 0);
	return dev;
}

int main(void)
{
	static const struct ha_topo_known known[] = { { "soft0:1", 0 }, { "soft1:1", 0 } };
	static struct ha_config config;
	struct ha_ctx_params params = { .config = &config, .known = known, .nknown = 2 };
	pthread_t thread;

	setenv("SOFTROCE_DEVICES", "127.146.1.0/24,127.146.2.0/24,127.146.3.0/24", 1);
	CHECK_INT(ha_verbs_open_library(getenv("HA_NCCL_VERBS"), &library), 0);
	below = *library;
	library->query_port = query_port;
	params.verbs = library;
	ha_config_load_env(&config);
	atomic_store(&away, true);
	CHECK_INT(ha_ctx_create(&params, &ctx), 0);
	CHECK_INT(pthread_create(&thread, NULL, refresh_until_over, NULL), 0);
	for (int i = 0; i < TURNS; i++)
		CHECK_INT(resolve_device(), 1);
	/* It comes back at some moment while it is being looked for. */
	atomic_store(&away, false);
	while (resolve_device())
		;
	atomic_store(&over, true);
	pthread_join(thread, NULL);
	ha_ctx_destroy(ctx);
	ha_verbs_close_library(library);
	return 0;
}
