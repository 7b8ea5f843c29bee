/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * subnet.h - NCCL_IB_SUBNET_AWARE_ROUTING: begin on a device that shares a subnet with the peer's
 *
 * Where NICs of a host lie in subnets of their own and nothing routes between them, the device that
 * NCCL names may not reach the peer's at all. RoCE only: on InfiniBand a subnet prefix says nothing
 * of the kind.
 */
#ifndef HA_DEVICE_SUBNET_H
#define HA_DEVICE_SUBNET_H

#include <infiniband/verbs.h>

struct ha_ctx;

/*
 * `dev`, a port or a fused device, when it is not wanted otherwise, when nothing is known of the
 * peer, or when each of its RoCE ports shares a subnet with one of the peer's n addresses. Else the
 * first device of which that is true; else `dev`.
 */
int ha_subnet_choose(struct ha_ctx *ctx, int dev, const union ibv_gid *peer, int n);

#endif
