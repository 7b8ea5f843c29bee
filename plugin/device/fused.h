/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fused.h - devices as NCCL counts them: first the ports themselves, then what was fused of several
 *
 * A connection on a fused device has a rail on each of its members. Fused devices are numbered from
 * ctx->ndevices upwards and live as long as the context; the same members in the same order are the
 * same device.
 */
#ifndef HA_PLUGIN_FUSED_H
#define HA_PLUGIN_FUSED_H

#include "plugin/core.h"
#include "plugin/device/wire_end.h"

#include <stdatomic.h>

#define HA_FUSED_MAX 128

struct ha_fused {
	int n; /* members */
	int member[HA_MAX_RAILS];
	char *name; /* "mlx5_0+mlx5_1" */
};

struct ha_fused_list {
	/* written under ctx->lock, before `n` counts them; then they stay as they are */
	struct ha_fused device[HA_FUSED_MAX];
	atomic_int n;
	atomic_bool logged_queue_pairs; /* that there are fewer than NCCL_IB_QPS_PER_CONNECTION */
};

/* The port of rail 0, and the further ones in opts: what `*dev` stands for towards the listener at
 * `peer` (NULL: towards anybody). -EINVAL: there is no such device. */
int ha_fused_resolve(struct ha_ctx *ctx, int *dev, const struct ha_wire_addr *peer,
		     struct ha_comm_opts *opts);
void ha_fused_free(struct ha_fused_list *list);

#endif
