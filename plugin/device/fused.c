/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/device/fused.h"

#include "base/log.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "rdma/topo/device.h"
#include "rdma/topo/gid.h"
#include "rdma/topo/standby.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const struct ha_fused *find_fused(struct ha_ctx *ctx, int dev)
{
	/* Acquire: pairs with the release behind a new one. */
	int n = atomic_load_explicit(&ctx->fused.n, memory_order_acquire);

	return dev >= ctx->ndevices && dev < ctx->ndevices + n
		       ? &ctx->fused.device[dev - ctx->ndevices]
		       : NULL;
}

/* The variable is followed in part: a warning, once. */
static void warn_fewer_devices(struct ha_ctx *ctx, int devices, int each)
{
	if (!atomic_exchange_explicit(&ctx->fused.logged_queue_pairs, true, memory_order_relaxed))
		HA_WARN(NULL,
			"NCCL_IB_QPS_PER_CONNECTION=%d: a connection over %d device%s has %d queue "
			"pairs on each here; there are %d at most, and the standby is one of them",
			ctx->config.ib_qps_per_connection, devices, devices > 1 ? "s" : "", each,
			HA_MAX_RAILS);
}

/* NCCL_IB_QPS_PER_CONNECTION: so many rails on each device, as far as there is room. */
static void multiply_rails(struct ha_ctx *ctx, int first, struct ha_comm_opts *opts)
{
	int devices = opts->nmore + 1, each = ctx->config.ib_qps_per_connection,
	    room = HA_MAX_RAILS, list[HA_MAX_RAILS] = { first };

	if (each <= 1 || devices < 1 || devices > HA_MAX_RAILS)
		return; /* what makes no sense is refused where the rails are opened */
	/* A connection on one device keeps a place for its standby. */
	if (devices == 1 && ctx->config.enable_backup && ctx->devices[first].ports > 1)
		room--;
	if (each > room / devices) {
		each = room / devices;
		warn_fewer_devices(ctx, devices, each);
	}
	memcpy(list + 1, opts->more, (size_t)opts->nmore * sizeof(list[0]));
	opts->nmore = devices * each - 1;
	for (int i = 1; i <= opts->nmore; i++)
		opts->more[i - 1] = list[i / each];
}

static bool has_address(struct ha_device *dev)
{
	struct ha_address address = ha_device_address(dev);

	return address.lid || !ha_gid_is_zero(&address.gid);
}

/* How well another port stands in; INT_MAX: it cannot. The driver may be asking both anew. */
static int rank_of(struct ha_ctx *ctx, int dev, int other)
{
	struct ha_standby_class class;
	bool may;

	pthread_mutex_lock(&ctx->topo->lock);
	may = ha_standby_classify(ctx->topo, dev, other, &class);
	pthread_mutex_unlock(&ctx->topo->lock);
	return may ? ha_standby_rank(&class) : INT_MAX;
}

/*
 * A port that has been away since before the context began has no address yet, so no path can begin
 * on it: the best one that is up stands in. One that goes away later is known to the peer, and what
 * begins on it fails over.
 */
static int find_present_port(struct ha_ctx *ctx, int dev)
{
	int best = dev, best_rank = INT_MAX, rank;

	if (has_address(&ctx->devices[dev]))
		return dev;
	for (int i = 0; i < ctx->nports; i++) {
		if (i == dev || !ha_device_usable(&ctx->devices[i]))
			continue;
		rank = rank_of(ctx, dev, i);
		if (rank >= best_rank)
			continue;
		best = i;
		best_rank = rank;
	}
	return best;
}

static void stand_in(struct ha_ctx *ctx, int *dev, struct ha_comm_opts *opts)
{
	*dev = find_present_port(ctx, *dev);
	for (int i = 0; i < opts->nmore && i < HA_MAX_RAILS - 1; i++)
		if (opts->more[i] >= 0 && opts->more[i] < ctx->nports)
			opts->more[i] = find_present_port(ctx, opts->more[i]);
}

int ha_fused_resolve(struct ha_ctx *ctx, int *dev, const struct ha_wire_addr *peer,
		     struct ha_comm_opts *opts)
{
	const struct ha_fused *f = find_fused(ctx, *dev);

	if (ctx->mpib.on) {
		if (*dev)
			return -EINVAL;
		/* A listener does not know who will come: SUP's rails are made when it does. */
		ha_mpib_rails(&ctx->mpib,
			      peer ? ha_mpib_uses_sup(ctx, peer) : ctx->config.mpib_mode, dev,
			      opts);
		stand_in(ctx, dev, opts);
		return 0;
	}
	if (!f && (*dev < 0 || *dev >= ctx->ndevices))
		return -EINVAL;
	if (f) {
		*dev = f->member[0];
		opts->nmore = f->n - 1;
		memcpy(opts->more, f->member + 1, (size_t)opts->nmore * sizeof(opts->more[0]));
	}
	multiply_rails(ctx, *dev, opts);
	stand_in(ctx, dev, opts);
	return 0;
}

void ha_fused_free(struct ha_fused_list *list)
{
	for (int i = 0; i < atomic_load_explicit(&list->n, memory_order_relaxed); i++)
		free(list->device[i].name);
}

/* ---- to fuse ---- */

static int check_members(const struct ha_ctx *ctx, const int *devs, int n)
{
	if (n < 1 || n > HA_MAX_RAILS) {
		HA_WARN(NULL, "cannot fuse %d devices: 1 to %d are possible", n, HA_MAX_RAILS);
		return -EINVAL;
	}
	for (int i = 0; i < n; i++) {
		if (devs[i] < 0 || devs[i] >= ctx->ndevices) {
			HA_WARN(NULL, "cannot fuse device %d: there are %d", devs[i],
				ctx->ndevices);
			return -EINVAL;
		}
		for (int k = 0; k < i; k++)
			if (devs[k] == devs[i]) {
				HA_WARN(ha_device_name(&ctx->devices[devs[i]]),
					"cannot be fused with itself");
				return -EINVAL;
			}
		if (ctx->devices[devs[i]].topo->is_ethernet !=
		    ctx->devices[devs[0]].topo->is_ethernet) {
			HA_WARN(ha_device_name(&ctx->devices[devs[i]]),
				"cannot be fused with %s: one is InfiniBand, the other RoCE; "
				"see NCCL_IB_HCA",
				ha_device_name(&ctx->devices[devs[0]]));
			return -EINVAL;
		}
	}
	return 0;
}

static char *join_names(const struct ha_ctx *ctx, const int *devs, int n)
{
	char *name = malloc((size_t)n * (HA_DEVICE_NAME_MAX + 1)), *at = name;

	for (int i = 0; name && i < n; i++)
		at += sprintf(at, "%s%s", i ? "+" : "", ctx->devices[devs[i]].topo->name);
	return name;
}

/* Under ctx->lock. */
static int find_or_add(struct ha_ctx *ctx, const int *devs, int n, int *dev)
{
	struct ha_fused_list *list = &ctx->fused;
	int count = atomic_load_explicit(&list->n, memory_order_relaxed);
	struct ha_fused *f = &list->device[count];

	for (int i = 0; i < count; i++)
		if (list->device[i].n == n &&
		    !memcmp(list->device[i].member, devs, (size_t)n * sizeof(*devs))) {
			*dev = ctx->ndevices + i;
			return 0;
		}
	if (count == HA_FUSED_MAX) {
		HA_WARN(NULL, "cannot fuse more devices: there are %d fused ones", HA_FUSED_MAX);
		return -ENOSPC;
	}
	f->name = join_names(ctx, devs, n);
	if (!f->name)
		return -ENOMEM;
	f->n = n;
	memcpy(f->member, devs, (size_t)n * sizeof(*devs));
	atomic_store_explicit(&list->n, count + 1, memory_order_release);
	*dev = ctx->ndevices + count;
	if (!ha_mpib_wanted(&ctx->config))
		HA_INFO(f->name, "device %d, fused of %d", *dev, n);
	return 0;
}

int ha_ctx_fuse(struct ha_ctx *ctx, const int *devs, int n, int *dev)
{
	int err = ctx->mpib.on ? -EPERM : check_members(ctx, devs, n);

	if (err)
		return err; /* the two of MPIB are fused already */
	if (n == 1) {
		*dev = devs[0];
		return 0;
	}
	pthread_mutex_lock(&ctx->lock);
	err = find_or_add(ctx, devs, n, dev);
	pthread_mutex_unlock(&ctx->lock);
	return err;
}

/* ---- what NCCL is given ---- */

int ha_ctx_ndevices(const struct ha_ctx *ctx)
{
	return ctx->mpib.on ? 1 : ctx->ndevices;
}

/* this number stands for several planes: a bit for each, by its place among the planes of this
 * host */
#define PLANE_SET 0x4000
#define PLANES_MAX 14

/* The places are those of the numbers in ascending order, so that hosts whose devices are listed
 * in another order agree. -1: too many. */
static int plane_place(const struct ha_ctx *ctx, int plane)
{
	int smaller[PLANES_MAX], n = 0;

	for (int i = 0; i < ctx->ndevices; i++) {
		int other = ctx->devices[i].topo->place.plane_id, k = 0;

		if (other < 0 || other >= plane)
			continue;
		while (k < n && smaller[k] != other)
			k++;
		if (k == PLANES_MAX - 1)
			return -1;
		smaller[k] = other;
		n = k == n ? n + 1 : n;
	}
	return n;
}

/* The one plane of all members, the set of their planes, or -1 where a member's is not known. */
static int fused_plane(const struct ha_ctx *ctx, const struct ha_fused *f)
{
	int first = ctx->devices[f->member[0]].topo->place.plane_id, set = PLANE_SET;
	bool same = true;

	for (int i = 0; i < f->n; i++) {
		int plane = ctx->devices[f->member[i]].topo->place.plane_id;
		int place = plane < 0 ? -1 : plane_place(ctx, plane);

		if (place < 0)
			return -1;
		same &= plane == first;
		set |= 1 << place;
	}
	return same ? first : set;
}

const char *ha_ctx_port(const struct ha_ctx *ctx, int dev)
{
	return dev >= 0 && dev < ctx->ndevices ? ha_device_name(&ctx->devices[dev]) : NULL;
}

/* One more member: together they are as fast as all, and can do what each can. */
static void add_member(struct ha_dev_props *all, const struct ha_dev_props *one)
{
	all->speed_mbps += one->speed_mbps;
	all->ptr_support &= one->ptr_support;
	all->force_flush |= one->force_flush;
	if (one->rail_id != all->rail_id)
		all->rail_id = -1;
	if (one->latency_us > all->latency_us)
		all->latency_us = one->latency_us;
	if (one->max_comms < all->max_comms)
		all->max_comms = one->max_comms;
	if (one->max_p2p_bytes < all->max_p2p_bytes)
		all->max_p2p_bytes = one->max_p2p_bytes;
	if (one->max_coll_bytes < all->max_coll_bytes)
		all->max_coll_bytes = one->max_coll_bytes;
}

int ha_ctx_device(struct ha_ctx *ctx, int dev, struct ha_dev_props *props)
{
	const struct ha_fused *f = find_fused(ctx, ctx->mpib.on && !dev ? ctx->ndevices : dev);

	if ((!f && (dev < 0 || dev >= ctx->ndevices)) || (ctx->mpib.on && dev))
		return -EINVAL;
	ha_device_props(&ctx->devices[f ? f->member[0] : dev], props);
	props->nmembers = f ? f->n : 1;
	props->member[0] = f ? f->member[0] : dev;
	for (int i = 1; f && i < f->n; i++) {
		struct ha_dev_props one;

		ha_device_props(&ctx->devices[f->member[i]], &one);
		add_member(props, &one);
		props->member[i] = f->member[i];
	}
	if (f) {
		props->name = f->name;
		props->plane_id = fused_plane(ctx, f);
	}
	if (ctx->mpib.on) {
		/* NCCL knows no other device: its members would be numbers of none. */
		props->nmembers = 1;
		props->member[0] = dev;
	}
	return 0;
}
