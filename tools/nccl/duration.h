/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_TOOL_NCCL_DURATION_H
#define HAWSER_TOOL_NCCL_DURATION_H

struct ha_samples;
struct ha_tally;
struct nccl_run;

/*
 * duration - measured iterations for a time instead of a number (--duration), with the timeline and
 * the commands
 *
 * The iterations' data comes from several sets in turn, each of which has been verified element by
 * element before, and every N-th result is compared whole with the one of its set; the time for
 * that is not in the iterations' times.
 * Collective. 0 or a negative errno with the fault recorded.
 */
int nccl_duration_run(const struct nccl_run *run, struct ha_tally *tally,
		      struct ha_samples *samples);

#endif
