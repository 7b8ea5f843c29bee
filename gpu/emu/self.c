/* SPDX-License-Identifier: BSD-3-Clause */
#include "gpu/emu/emu.h"

static __thread struct ha_gpu_self *self;

void ha_gpu_emu_become(struct ha_gpu_self *who)
{
	self = who;
}

struct ha_gpu_self *ha_gpu_emu_self(void)
{
	return self;
}

unsigned ha_gpu_lane(void)
{
	return self && self->warp ? self->lane : 0;
}

unsigned ha_gpu_lanes(void)
{
	return self && self->warp ? self->warp->lanes : 1;
}
