/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fiber.h - many GPU threads, NICs and agents in one thread, in an order that a seed decides
 *
 * Every access of env.h may be followed by another fiber's, and every pause is. What one seed does
 * it does again. Orders are sequentially consistent: what weaker memory would do is for thread
 * sanitizer and the model to find. Time passes with each switch only.
 */
#ifndef HA_GPU_FIBER_H
#define HA_GPU_FIBER_H

#include "gpu/emu/emu.h"

#define HA_GPU_FIBERS_MAX 96

/* Forgets all fibers; virtual time begins. `eager` of 256 accesses let another fiber go on. */
void ha_gpu_fibers_begin(uint64_t seed, unsigned eager);
/* `self` may be NULL. A helper does not keep ha_gpu_fibers_run() going. False: too many. */
bool ha_gpu_fiber_add(void (*run)(void *arg), void *arg, struct ha_gpu_self *self, bool helper);
/*
 * Until all but helpers have returned, or virtual time has come to `until_ns`. True: they have
 * returned.
 */
bool ha_gpu_fibers_run(uint64_t until_ns);
/* The machine stands still: time passes, and nobody runs. */
void ha_gpu_fibers_stand_still(uint64_t ns);
/* The scheduler's dice, for tests. */
uint64_t ha_gpu_fibers_random(void);

#endif
