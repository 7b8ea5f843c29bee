/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_JOB_PACE_H
#define HAWSER_JOB_PACE_H

#include <stdint.h>

struct ha_place;
struct ha_rendezvous;
struct ha_timeline;

/*
 * pace - iterations for a time instead of a number (--duration), the same number in all ranks
 *
 * Rank 0 says every now and then how many come next. SIGINT to rank 0 ends them early and in order.
 * The commands of
 * --at and the timeline begin with the first iteration.
 */
struct ha_pace {
	struct ha_rendezvous *rendezvous;
	const struct ha_place *place;
	int64_t duration_ns;
	int64_t compute_ns; /* slept before each iteration */
	struct ha_timeline *timeline;
	/* One iteration: 0 or a negative errno. */
	int (*iterate)(void *context);
	void *context;
};

/* Collective. 0 or a negative errno with the fault recorded. */
int ha_pace_run(const struct ha_pace *pace);

#endif
