/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scene.h - a pair (pair.h) whose NICs and agents are fibers, on which the body of a kernel runs
 * until it ends
 *
 *   scene_begin(); scene_run(body); look at what is there; scene_end();
 */
#ifndef HA_TESTS_GPU_SCENE_H
#define HA_TESTS_GPU_SCENE_H

#include "gpu/emu/fiber.h"
#include "sim/gpu/pair.h"

struct scene {
	struct soft_fabric *fabric;
	struct pair pair;
	struct pair_config config; /* of the next scene_begin() */
	struct ha_gpu_conn *a, *b; /* of end 0 and of end 1 */
};

extern struct scene scene;

void scene_configure(void); /* the usual: once at the start; scene_end() does it again */
void scene_begin(void);
void scene_run(void (*body)(
	/* ends the program when the body does not end within 20 ms of virtual time */
	void *unused));
void scene_end(void);

/* The next entry of a NIC, or the one `fault.at` after it, suffers that. */
void scene_strike(unsigned nic, struct soft_fault fault);
/* A word of an end's heap; puts it from end 0 to end 1. */
uint64_t *scene_word(unsigned end, unsigned i);
void scene_put(unsigned i, uint64_t value);
void scene_rest(uint64_t ns);

#endif
