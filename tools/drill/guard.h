/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * guard.h - a process that puts back what the drill has taken away
 *
 * The guard applies and undoes every fault for the drill. It is in a session of its own and ignores
 * the terminal's signals; when the drill is gone, however it ended, or does not undo a fault in
 * time (it was stopped, or hangs), the guard does. When the guard itself is killed, the drill does
 * it from the memory that they share. Only who kills both at the same moment keeps a fault. What
 * cannot be put back is tried again a second later, and nothing else is taken away before.
 */
#ifndef HAWSER_DRILL_GUARD_H
#define HAWSER_DRILL_GUARD_H

#include <sys/types.h>

#include "tools/drill/fault.h"

struct guard_memory;

struct guard {
	int fd; /* to the guard; -1: closed */
	pid_t pid;
	struct guard_memory *memory;
};

/* 0 or a negative errno. Call it before threads and before the job. */
int guard_open(struct guard *guard);
/* `until`: CLOCK_MONOTONIC ns when the guard puts it back by itself. 0 or a negative errno: nothing
 * is applied then; -EALREADY: the fault before could not be put back. */
int guard_apply(struct guard *guard, const struct fault *fault, int64_t until);
/* 0, also when there is nothing to undo, or a negative errno. */
int guard_undo(struct guard *guard);
/* Undoes and ends it, after half a minute of tries at most. */
int guard_close(struct guard *guard);

#endif
