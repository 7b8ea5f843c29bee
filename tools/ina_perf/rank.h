/* SPDX-License-Identifier: BSD-3-Clause */
/* rank.h - what one rank of `ha ina-perf` does */
#ifndef HAWSER_INA_PERF_RANK_H
#define HAWSER_INA_PERF_RANK_H

#include "tools/ina_perf/values.h"

#include <stdatomic.h>

struct ina_perf {
	struct ina_step *step;
	size_t steps;
	/* steps follow each other in runs of so many alike; the first of a run is not timed */
	unsigned iterations;
	unsigned rank, ranks;
	uint32_t member[HA_INA_RANKS];
	bool members;        /* given; else every rank is on this host */
	const char *backend; /* NULL: as ha_ina_open() has it */
	const char *ticket;  /* a file that all ranks see; the k-th group's has .k behind it */
	unsigned incarnation, again; /* the first group's k; how many after it, when one ends */
	size_t first;                /* the step to begin with */
	bool each;                   /* a line for every step, of every rank */
	unsigned timeout_s; /* for the other ranks, each operation, and a backend that is away */
	bool loopback;
	/* ranks of the first group so far, shared by those on this host; NULL: nobody counts */
	atomic_uint *joined;
};

/*
 * The exit status: 0, 1 something was wrong, 3 it could not be done (a line says why). Rank 0
 * prints the table. SIGTERM and SIGINT end it in order, with what it has.
 */
int ina_perf_rank(const struct ina_perf *perf);

#endif
