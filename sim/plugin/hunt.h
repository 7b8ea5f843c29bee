/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hunt.h - many seeds, several processes, and the smallest scenario that still shows what one of
 * them found
 */
#ifndef HA_SIM_HUNT_H
#define HA_SIM_HUNT_H

#include "sim/plugin/world.h"

struct sim_hunt {
	uint64_t start, count;
	unsigned jobs;
	uint32_t allowed; /* mask of fault classes; 0 = the usual mix */
	enum sim_mutation mutation;
	bool shrink, quiet, first; /* first: one finding is enough */
};

struct sim_tally {
	uint64_t seeds, findings, messages, bytes, packets, errors, ns, failovers, recoveries;
	uint64_t by_finding[SIM_FINDINGS];
};

/* Findings go to `out`. 0, or a negative errno when processes cannot be made. */
int sim_hunt_run(const struct sim_hunt *hunt, struct sim_tally *tally, FILE *out);

/* One scenario in a process of its own, so that a crash is a result too. */
void sim_run_apart(const struct sim_scenario *sc, enum sim_mutation mutation,
		   struct sim_result *result);

#endif
