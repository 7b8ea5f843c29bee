/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_TOOL_NCCL_GRAPH_H
#define HAWSER_TOOL_NCCL_GRAPH_H

struct ha_samples;
struct nccl_round;
struct nccl_run;

/*
 * graph - the measured iterations as a CUDA graph (-G): captured once, launched several times
 *
 * A graph's iterations are not timed one by one: each counts as the mean of its launch. Collective.
 * 0 or a negative errno with the fault recorded.
 */
int nccl_graph_run(const struct nccl_run *run, int iterations, struct nccl_round *round,
		   struct ha_samples *samples);

#endif
