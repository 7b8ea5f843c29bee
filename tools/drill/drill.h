/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * drill.h - one thing taken away and put back, and what the job made of it
 *
 * In order: wait until everything is as protected as it was at the beginning; measure what arrives;
 * take away (guard.h); watch; put back; wait until everything is protected again.
 */
#ifndef HAWSER_DRILL_DRILL_H
#define HAWSER_DRILL_DRILL_H

#include <stdio.h>

#include "tools/drill/fault.h"
#include "tools/drill/guard.h"
#include "tools/drill/job.h"
#include "tools/drill/options.h"
#include "tools/drill/watch.h"

#define DRILLS 64

enum drill_verdict {
	DRILL_NOT_DONE, /* `why` says why */
	DRILL_SURVIVED,
	DRILL_UNPROTECTED,  /* the job goes on, but was not protected again in time */
	DRILL_NOT_PUT_BACK, /* not at once, at least: `why` says why */
	DRILL_LOST,         /* a connection has ended, or the job */
};

struct drill {
	char target[96]; /* "soft0 of process 4711", "soft0 of every process", "mlx5_0 (eth2)" */
	struct fault fault;

	enum drill_verdict verdict;
	char why[128];
	/* CLOCK_MONOTONIC ns; 0: it did not come to that */
	int64_t taken, put_back, again;
	int undo_error; /* negative errno: it could not be put back at first */
	bool lapsed;    /* a connection was not protected for a while */
	bool noticed;
	struct watch_event first; /* when noticed */
	unsigned failovers, lost; /* connections */
	uint64_t requests, bytes; /* sent again */
	uint64_t stall;           /* the longest, ns; of a connection that failed over */
	double before, during;    /* bytes per second; negative: unknown */
};

struct drill_run {
	const struct drill_options *options;
	struct job *job;
	struct watch watch;
	struct guard guard;
	unsigned usual; /* connections without protection when nothing is taken away */
	volatile const int *stop;
	int64_t zero; /* the first look */
	struct drill drills[DRILLS];
	unsigned count;
	struct job_verdict end;
};

/* Waits until the job is connected and protected. 0, or a negative errno after a line. */
int drill_await_job(struct drill_run *run);
/* What can be taken away from this job, into run->drills. 0, or a negative errno after a line. */
int drill_plan(struct drill_run *run);
void drill_do(struct drill_run *run, struct drill *drill);

/* report: what came out of it */
void drill_print(const struct drill *drill, FILE *out);
void drill_print_head(const struct drill_run *run, FILE *out);
void drill_print_end(const struct drill_run *run, FILE *out);
/* true: the job survived everything. */
bool drill_all_well(const struct drill_run *run);
const char *drill_verdict_text(enum drill_verdict verdict);
/* 0 or a negative errno. */
int drill_write_json(const struct drill_run *run, const char *path);
int drill_write_png(const struct drill_run *run, const char *path);

#endif
