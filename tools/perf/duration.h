/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_PERF_DURATION_H
#define HAWSER_PERF_DURATION_H

struct ha_bench;
struct ha_job;
struct ha_samples;
struct ha_tally;

/*
 * duration - measured iterations for a time instead of a number (--duration), with the timeline and
 * the commands
 *
 * Rank 0 sends the others now and then how many iterations come next. The iterations' data
 * comes from the sets in turn and every N-th result is compared whole with the one that a verified
 * iteration gave before; the time for that is not in the iterations' times. SIGINT to rank 0 ends
 * the measurement early and in order.
 */

/* Collective. 0 or a negative errno with the fault recorded. */
int ha_duration_run(struct ha_bench *bench, struct ha_job *job, struct ha_tally *tally,
		    struct ha_samples *samples);

#endif
