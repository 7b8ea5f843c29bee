/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_PERF_ONESIDED_SIDE_H
#define HAWSER_PERF_ONESIDED_SIDE_H

#include <pthread.h>
#include <stdatomic.h>

#include "tools/perf/gin_table.h"
#include "tools/perf/options.h"
#include "tools/perf/plugin.h"

struct ha_place;
struct ha_rendezvous;

/*
 * onesided_side - one plugin's one-sided table with a communicator of all ranks, a window of data
 * and one of signals, as NCCL's proxy has them
 *
 * Counters are 64-bit and only grow. Calls return 0 or a negative errno with the fault recorded.
 */
struct ha_side {
	struct ha_plugin plugin;
	struct ha_gin_table gin;
	struct ha_gin_comm comm;
	struct ha_gin_memory data_memory, signal_memory;
	char *data;
	size_t data_bytes;
	uint64_t *signals;
	unsigned counters;
	void **request; /* in flight; NULL: done */
	unsigned inflight, room;
	uint64_t iterations; /* so far, of all sizes: data and counters go on */
	/* While this rank waits elsewhere, as a thread of NCCL's would: others need its progress.
	 */
	pthread_t keeper;
	bool has_keeper;
	atomic_int keeping; /* enum in the .c */
	atomic_int kept;    /* what its calls returned */
};

struct ha_side_setting {
	const struct perf_options *options;
	const struct ha_place *place;
	struct ha_rendezvous *rendezvous;
	const char *name; /* of the plugin */
	int version;      /* or 0 */
	size_t data_bytes;
	unsigned counters;
};

/* Collective. */
int ha_side_open(struct ha_side *side, const struct ha_side_setting *setting);
int ha_side_close(struct ha_side *side);

/* `put` with this side's handles: windows are its own. */
int ha_side_put(struct ha_side *side, struct ha_gin_put *put);
int ha_side_get(struct ha_side *side, struct ha_gin_put *get);
/* Progress, and what is done leaves the list; *moved: something was. */
int ha_side_step(struct ha_side *side, bool *moved);
uint64_t ha_side_counter(const struct ha_side *side, unsigned which);
/* Between them this rank may wait for others, without a call of its own. */
void ha_side_leave(struct ha_side *side);
int ha_side_return(struct ha_side *side);

#endif
