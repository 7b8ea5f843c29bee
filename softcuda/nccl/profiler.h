/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * profiler.h - counters and time stamps by which NCCL's profiler follows works of a kernel
 *
 * A channel's work counter grows by one for each work, profiled or not. profiler_events.c and
 * profiler_none.c: for versions that have one, and for those that do not.
 */
#ifndef SOFTCUDA_NCCL_PROFILER_H
#define SOFTCUDA_NCCL_PROFILER_H

#include "softcuda/nccl/batch.h"
#include "softcuda/nccl/lane.h"

uint64_t read_work_counter(const struct channel *channel);
void write_work_counter(struct channel *channel, uint64_t counter);

/* counter: the channel's before the batch. */
void note_works_started(const struct batch *batch, const struct lane_context *context,
			uint64_t counter);
void note_works_completed(const struct batch *batch, const struct lane_context *context,
			  uint64_t counter);

#endif
