/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_TOOL_NCCL_ROUNDS_H
#define HAWSER_TOOL_NCCL_ROUNDS_H

#include <jansson.h>

#include "tools/job/figures.h"
#include "tools/nccl/options.h"

struct ha_rendezvous;
struct ha_place;

/*
 * rounds - two transports that take turns (--vs), round by round
 *
 * What a machine does besides changes from minute to minute, and hits both sides of a round alike:
 * the ratio of each round is taken, and of these the median. A pause of the machine in the middle
 * of a round hits one side: the median of its iterations, unlike their mean, does not move by it.
 */

/* One process's iterations of one side and round. */
struct nccl_round {
	uint64_t elapsed_ns, cpu_ns, iterations;
	double p50_us; /* of the iterations */
};

/* All processes' together; at rank 0. */
struct nccl_rounds {
	int count;
	double time_us[HA_SIDES][NCCL_ROUNDS_MOST]; /* of an iteration, mean over the processes */
	/* of a round's iterations, mean over the processes */
	double p50_us[HA_SIDES][NCCL_ROUNDS_MOST];
	double cpu_us[HA_SIDES][NCCL_ROUNDS_MOST]; /* of an iteration, sum over the processes */
};

/*
 * mine: count of the first side, then of the second. Collective. 0 or a negative errno with the
 * fault recorded.
 */
int nccl_rounds_gather(struct nccl_rounds *all,
		       const struct nccl_round mine[HA_SIDES][NCCL_ROUNDS_MOST], int count,
		       struct ha_rendezvous *rendezvous, const struct ha_place *place);

/*
 * The median over the rounds of second side / first side, of one of the three figures above. 0:
 * none.
 */
double nccl_rounds_ratio(int count, const double values[HA_SIDES][NCCL_ROUNDS_MOST]);

/*
 * {"time_us": [[...], [...]], "p50_us": ..., "cpu_us": ..., "ratio_time": ..., "ratio_p50": ...,
 * "ratio_cpu": ...}
 */
json_t *nccl_rounds_object(const struct nccl_rounds *all);

#endif
