/* SPDX-License-Identifier: BSD-3-Clause */
/* fault_draw.h - the length and the amount of a fault, by its class (faults.c has the table) */
#ifndef HA_SIM_FAULT_DRAW_H
#define HA_SIM_FAULT_DRAW_H

#include "base/rng.h"
#include "sim/plugin/scenario.h"

/* The end of the fault does not come. */
#define SIM_FOREVER UINT64_C(1000000000000)

typedef void sim_fault_make_fn(struct sim_fault *f, const struct sim_scenario *sc,
			       struct sr_rng *rng);
sim_fault_make_fn sim_make_none, sim_make_rate, sim_make_reorder, sim_make_delay, sim_make_short,
	sim_make_long, sim_make_switch, sim_make_stall, sim_make_sick, sim_make_hold,
	sim_make_acked, sim_make_count, sim_make_flaps, sim_make_connecting, sim_make_steering,
	sim_make_slow, sim_make_return;

#endif
