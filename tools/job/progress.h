/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_JOB_PROGRESS_H
#define HAWSER_JOB_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * progress - the line on standard error that says how far a run has come, when it takes long; rank
 * 0 only
 */
struct ha_progress {
	const char *program, *operation, *phase;
	int iteration, iterations; /* iterations 0: not known */
	size_t bytes;
	int64_t printed_ns; /* CLOCK_MONOTONIC: when the last line was printed */
	int64_t every_ns;   /* 0: a second on a terminal, ten elsewhere */
	bool printed;
};

/* Prints it when the last one was so long ago. */
void ha_progress_print(struct ha_progress *progress, int64_t now);

/* Removes the line from the terminal, before something else is printed. */
void ha_progress_quiet(struct ha_progress *progress);

#endif
