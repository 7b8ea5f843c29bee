/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * emu.h - GPU threads on the host: warps, a clock, and a scheduler that may switch at every access
 *
 * Two kinds of build use it. Without HA_GPU_SIM a GPU thread is a pthread: ha_gpu_pause() yields
 * the processor, the clock is the system's, and thread sanitizer sees every access. With HA_GPU_SIM
 * it is a fiber (fiber.h): one thread, a seed, and virtual time.
 */
#ifndef HA_GPU_EMU_H
#define HA_GPU_EMU_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HA_GPU_LANES_MAX 32

/*
 * Lanes that meet: the emulation's only shared state of a warp. All zero but `lanes` at the start.
 */
struct ha_gpu_warp {
	unsigned lanes;
	uint64_t arrived, round;
	uint64_t cell[HA_GPU_LANES_MAX];
};

struct ha_gpu_self {
	struct ha_gpu_warp *warp; /* NULL: a warp of one */
	unsigned lane;
};

/*
 * Who the calling thread is; the caller keeps the memory. NULL: a warp of one, as it is without
 * this call.
 */
void ha_gpu_emu_become(struct ha_gpu_self *self);
/* As it was called last; NULL: a warp of one. */
struct ha_gpu_self *ha_gpu_emu_self(void);

unsigned ha_gpu_lane(void);
unsigned ha_gpu_lanes(void);
void ha_gpu_syncwarp(void);
uint64_t ha_gpu_shfl(uint64_t v, unsigned lane);
uint32_t ha_gpu_ballot(bool p);

void ha_gpu_pause(void);
uint64_t ha_gpu_now(void);
void ha_gpu_emu_step(void); /* HA_GPU_SIM: the scheduler may switch here */

#ifdef __cplusplus
}
#endif

#endif
