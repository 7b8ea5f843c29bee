/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_JOB_CUES_H
#define HAWSER_JOB_CUES_H

#include <stdint.h>
#include <sys/types.h>

struct ha_cues;
struct ha_launch_options;

#define HA_CUES 64 /* most commands of --at */

/* A shell command at a moment of the measurement. */
struct ha_cue {
	int64_t at_ns;
	const char *command;
};

/*
 * cues - shell commands at moments of the measurement (--at)
 *
 * A process beside the forked ranks waits for rank 0's word that the measurement starts, starts
 * each command at its moment and notes in shared memory when it began and ended. Commands find the
 * ranks' processes in the environment (HA_RANK_PID_0, ..., and as HA_PERF_PID_0) and this very `ha`
 * first in PATH; what they print goes to standard error. Commands that still run at the end are
 * ended.
 */

/* CLOCK_MONOTONIC ns; 0: has not begun, or not ended. */
struct ha_cue_mark {
	int64_t begin, end;
	int status; /* exit status, 128 + signal */
};

/*
 * In the parent, before the ranks are forked. NULL when there are no commands, or, with the line
 * printed, no memory.
 */
struct ha_cues *ha_cues_open(const struct ha_launch_options *options);

/* In the parent, when all ranks are forked. 0 or a negative errno with the line printed. */
int ha_cues_fork(struct ha_cues *cues, const pid_t *pids, int ranks);

/* In the parent: this child of it is gone. */
void ha_cues_reaped(struct ha_cues *cues, pid_t pid);

/* In the parent, at the end. */
void ha_cues_close(struct ha_cues *cues);

/* In a rank: only rank 0 keeps the way to start. */
void ha_cues_rank(struct ha_cues *cues, int rank);

/* In rank 0: the measurement starts. NULL: nothing to do. */
void ha_cues_start(struct ha_cues *cues, int64_t zero);

/* In rank 0: what is known of the i-th command. */
struct ha_cue_mark ha_cues_mark(const struct ha_cues *cues, int i);

#endif
