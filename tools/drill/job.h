/* SPDX-License-Identifier: BSD-3-Clause */
/* job.h - the job that is drilled: one of our own, or one that runs */
#ifndef HAWSER_DRILL_JOB_H
#define HAWSER_DRILL_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tools/drill/options.h"

struct job {
	pid_t pid; /* that has started its processes */
	bool own;
	bool reaped;
	char name[96];   /* "ha perf allreduce, 2 ranks, 1M", "python3 4711" */
	char report[64]; /* the file of its own report; "": none */
	char output[64]; /* what it printed */
};

/* What a job of our own says at its end. */
struct job_verdict {
	bool known; /* false: it left no report */
	int status; /* wait()'s */
	int64_t iterations, wrong;
	char said[256]; /* its last line, when it failed */
};

/* Starts the job of our own. 0, or a negative errno after a line. */
int job_start(struct job *job, const struct drill_options *o);
/* Finds the one that runs. 0, or -ESRCH after a line. */
int job_find(struct job *job, const struct drill_options *o, const char *dir);
/* It is there (of our own), or any of its processes is. */
bool job_runs(struct job *job);
/* Ends a job of our own in order; one that does not end within a minute is killed. */
void job_end(struct job *job, struct job_verdict *verdict);

#endif
