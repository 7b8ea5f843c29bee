/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * world.h - all connections of a process as kernels find them
 *
 * Connections come in rows: a row has one connection to each peer, all on one NIC (and its backup).
 * The host adds rows while kernels run:
 * what a kernel has found stays where it is, and a row counts when nrows says so. The entry for the
 * process itself is closed for good.
 */
#ifndef HA_GPU_WORLD_H
#define HA_GPU_WORLD_H

#include "gpu/device/conn.h"

#define HA_GPU_ROWS_MAX 256

struct ha_gpu_world {
	uint64_t nrows __attribute__((aligned(64))); /* the host adds */
	/* kernels' threads (or whoever stands for several) that began and ended */
	uint64_t entered __attribute__((aligned(64))), left;
	uint32_t pe __attribute__((aligned(64))), pes; /* constant */
	/* the first so many rows are dynamically connected; constant once there are rows */
	uint32_t dc, unused;
	/* address of struct ha_gpu_conn [pes]; written before nrows counts it, then constant */
	uint64_t row[HA_GPU_ROWS_MAX];
};

HA_GPU_FN struct ha_gpu_conn *ha_gpu_world_any(const struct ha_gpu_world *w, uint64_t row,
					       uint32_t pe)
{
	if (pe >= w->pes || pe == w->pe || row >= ha_gpu_load(&w->nrows))
		return 0;
	return (struct ha_gpu_conn *)(uintptr_t)ha_gpu_load(&w->row[row]) + pe;
}

/* Connection `row` to peer `pe`, over queue pairs of its own; NULL: there is no such. */
HA_GPU_FN struct ha_gpu_conn *ha_gpu_world_conn(const struct ha_gpu_world *w, uint64_t row,
						uint32_t pe)
{
	/* dc is not read before there are rows */
	return ha_gpu_load(&w->nrows) ? ha_gpu_world_any(w, row + w->dc, pe) : 0;
}

#if HA_GPU_DC
/* The same of the dynamically connected ones. */
HA_GPU_FN struct ha_gpu_conn *ha_gpu_world_dc(const struct ha_gpu_world *w, uint64_t row,
					      uint32_t pe)
{
	return ha_gpu_load(&w->nrows) && row < w->dc ? ha_gpu_world_any(w, row, pe) : 0;
}
#endif

/*
 * Around what a kernel does with connections, by one thread for all: the host frees and repairs
 * nothing in between.
 */
HA_GPU_FN void ha_gpu_world_enter(struct ha_gpu_world *w)
{
	ha_gpu_add(&w->entered, 1);
}

HA_GPU_FN void ha_gpu_world_leave(struct ha_gpu_world *w)
{
	ha_gpu_add(&w->left, 1);
}

#endif
