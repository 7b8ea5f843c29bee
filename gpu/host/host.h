/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * host.h - set-up of the GPU-initiated path: devices, queue pairs to all peers with backups,
 * tables, agents; growth; the end
 *
 * All calls but those named otherwise are collective (every process calls them, in the same order,
 * with the same numbers) and are made by one thread at a time. Where one process fails, all do, and
 * what the call took is given back everywhere. Errors are a negative errno and one line in the log.
 */
#ifndef HA_GPU_HOST_HOST_H
#define HA_GPU_HOST_HOST_H

#include "gpu/device/world.h"
#include "gpu/host/backup.h"
#include "gpu/host/bootstrap.h"
#include "gpu/host/settings.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ha_gpu_host;

struct ha_gpu_host_config {
	const struct ha_gpu_hw_ops *ops;
	void *hw;
	struct ha_gpu_bootstrap *bootstrap; /* the caller's, until the end */
	struct ha_gpu_settings settings;
	const int *ports; /* indices into ops->ports' list; NULL: every port that is up */
	int nports;
	ha_gpu_backup_order order; /* NULL: backup.h's rules */
	const void *order_self;
	/* Memory of this process that peers may reach; the sizes may differ. */
	void *heap;
	size_t heap_bytes;
	/* a registration covers so much, a multiple of the chunk; 0: one covers all */
	size_t mr_bytes;
};

struct ha_gpu_host_stats {
	unsigned devices, rows, backed_up; /* rows with a backup at this end */
	unsigned dc;                       /* rows that are dynamically connected */
	/* bytes that went to device memory for connections and their row entries */
	uint64_t copied;
	uint64_t switches, replayed, suspicions;
};

/* Opens, registers, exchanges keys; no queue pair yet. -ENODEV: no port is up. */
int ha_gpu_host_open(const struct ha_gpu_host_config *config, struct ha_gpu_host **host);
/* Adds `n` connections to each peer on each device, the first `nbackup` of them with a backup: at
 * first, and again at any time, while kernels run. n = 0: HA_GPU_RC_PER_PE, all with a backup.
 * -ENOSPC: more than HA_GPU_ROWS_MAX. */
int ha_gpu_host_connect(struct ha_gpu_host *host, unsigned n, unsigned nbackup);
/* The same with dynamic connections: an initiator and a target for each peer, and the same on the
 * backup NIC. Once, before any other: later calls add queue pairs of their own only. Kernels find
 * them with ha_gpu_world_dc(). -EALREADY: there are rows already; -EOPNOTSUPP. */
int ha_gpu_host_connect_dc(struct ha_gpu_host *host, unsigned n, unsigned nbackup);
/* What kernels get; it exists until the end. Not collective. */
struct ha_gpu_world *ha_gpu_host_world(struct ha_gpu_host *host);

/*
 * Before a launch: no kernel of before is in it any more. -EBUSY: after limit_ms one still is. Not
 * collective.
 */
int ha_gpu_host_launch(struct ha_gpu_host *host, unsigned limit_ms);
/* The caller knows that all kernels have ended, some of them in the middle (an exception, a reset
 * stream): what they had reserved and not published is filled with nothing, and locks that they
 * held are opened. Returns how many entries. Not collective. */
int ha_gpu_host_repair(struct ha_gpu_host *host);

/* Ends: what is outstanding gets limit_ms; then everything is given back. -EBUSY: a kernel is still
 * in it, nothing was touched. -ETIMEDOUT: something outstanding was given up; the rest as with
 * 0. */
int ha_gpu_host_finalize(struct ha_gpu_host *host, unsigned limit_ms);

/* Not collective. */
void ha_gpu_host_stats(struct ha_gpu_host *host, struct ha_gpu_host_stats *stats);
const struct ha_gpu_backup_map *ha_gpu_host_backups(const struct ha_gpu_host *host);

#ifdef __cplusplus
}
#endif

#endif
