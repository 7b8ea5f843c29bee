/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/device/subnet.h"

#include "base/log.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "rdma/topo/device.h"
#include "rdma/topo/gid.h"

static bool matches_any(const struct ha_ctx *ctx, const union ibv_gid *gid,
			const union ibv_gid *peer, int n)
{
	for (int i = 0; i < n; i++)
		if (ha_gid_same_subnet(gid, &peer[i], ctx->config.ib_subnet_prefix_len))
			return true;
	return false;
}

/* Every RoCE port of the device, and it has one: a rail of it on another subnet would lead
 * nowhere. */
static bool matches_all(struct ha_ctx *ctx, int dev, const union ibv_gid *peer, int n)
{
	struct ha_dev_props props;
	bool any = false;

	if (ha_ctx_device(ctx, dev, &props))
		return false;
	for (int i = 0; i < props.nmembers; i++) {
		struct ha_device *port = &ctx->devices[props.member[i]];
		struct ha_address address = ha_device_address(port);

		if (!port->topo->is_ethernet)
			continue;
		if (!matches_any(ctx, &address.gid, peer, n))
			return false;
		any = true;
	}
	return any;
}

int ha_subnet_choose(struct ha_ctx *ctx, int dev, const union ibv_gid *peer, int n)
{
	int all = ctx->ndevices + atomic_load_explicit(&ctx->fused.n, memory_order_acquire);
	struct ha_dev_props props;
	bool known = false;

	for (int i = 0; i < n; i++)
		known |= !ha_gid_is_zero(&peer[i]);
	if (!ctx->config.ib_subnet_aware_routing || ctx->mpib.on || !known ||
	    ha_ctx_device(ctx, dev, &props) || matches_all(ctx, dev, peer, n))
		return dev; /* one that does not exist is refused later */
	for (int i = 0; i < all; i++)
		if (matches_all(ctx, i, peer, n)) {
			HA_INFO(NULL,
				"device %d takes the place of device %d for this connection: it "
				"shares a subnet with the peer "
				"(NCCL_IB_SUBNET_AWARE_ROUTING)",
				i, dev);
			return i;
		}
	return dev;
}
