/* SPDX-License-Identifier: BSD-3-Clause */
#include "gpu/emu/env_host.h"

/* The last to arrive opens the next round; the others wait for it. */
void ha_gpu_syncwarp(void)
{
	const struct ha_gpu_self *self = ha_gpu_emu_self();
	struct ha_gpu_warp *w = self ? self->warp : 0;
	uint64_t round, arrived = 0;

	if (!w)
		return;
	round = ha_gpu_load(&w->round);
	while (!ha_gpu_cas(&w->arrived, &arrived, arrived + 1))
		;
	if (arrived + 1 == w->lanes) {
		ha_gpu_store(&w->arrived, 0);
		ha_gpu_store(&w->round, round + 1);
	}
	while (ha_gpu_load(&w->round) == round)
		ha_gpu_pause();
}

/* Two barriers: before the cells are read, and before they are written again. */
uint64_t ha_gpu_shfl(uint64_t v, unsigned lane)
{
	const struct ha_gpu_self *self = ha_gpu_emu_self();
	struct ha_gpu_warp *w = self ? self->warp : 0;

	if (!w)
		return v;
	w->cell[self->lane] = v;
	ha_gpu_syncwarp();
	v = w->cell[lane % w->lanes];
	ha_gpu_syncwarp();
	return v;
}

uint32_t ha_gpu_ballot(bool p)
{
	const struct ha_gpu_self *self = ha_gpu_emu_self();
	struct ha_gpu_warp *w = self ? self->warp : 0;
	uint32_t bits = 0;

	if (!w)
		return p;
	w->cell[self->lane] = p;
	ha_gpu_syncwarp();
	for (unsigned i = 0; i < w->lanes; i++)
		bits |= (uint32_t)w->cell[i] << i;
	ha_gpu_syncwarp();
	return bits;
}
