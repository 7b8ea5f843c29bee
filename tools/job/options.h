/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_JOB_OPTIONS_H
#define HAWSER_JOB_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/job/datatype.h"
#include "tools/job/launch.h"

/*
 * options - the command line of the programs that run collectives: nccl-tests' options and those of a run of ranks,
 * and, from a table of its own, what a program has besides
 */

#define HA_TYPES_MOST 16

/* What all these programs take. Sizes are bytes. */
struct ha_run_options {
	struct ha_launch_options launch;
	size_t min_bytes, max_bytes;
	size_t step_bytes; /* 0: multiply by step_factor instead */
	double step_factor;
	int iters, warmup, checks;
	bool check_all; /* verify every timed iteration too */
	int64_t duration_ns; /* 0: measure iters iterations */
	int check_every; /* of a run by duration: every how many iterations one is verified; 0: none */
	const char *timeline; /* file, or NULL */
	int64_t step_ns; /* of the timeline's buckets */
	const struct ha_datatype *types[HA_TYPES_MOST];
	int types_count;
	enum ha_redop redops[HA_REDOPS];
	int redops_count;
	int root;
	int average; /* nccl-tests' -a: time of 0 rank 0, 1 the average, 2 the fastest, 3 the slowest rank */
	uint64_t seed;
	bool in_place;
	bool json;
	const char *json_file; /* NULL: standard output instead of the table */
};

/* One option; a value below 256 is its letter, the common options' other values are below HA_OPTION_OWN. */
struct ha_option {
	const char *name;
	int value;
	const char *argument; /* NULL: none; "[...": may be left out */
	const char *help;
};
#define HA_OPTION_OWN 512

/* What the parser must know of a program. */
struct ha_program {
	const char *name; /* "ha perf" */
	const struct ha_option *options; /* its own; they come after the common ones */
	size_t options_count;
	int redops; /* the first so many of enum ha_redop are known */
	const char *const *names; /* operations and what they are, in turn; NULL at the end */
	const char *about; /* the help's last lines */
	/* One of its own options; false: the text is out of range. */
	bool (*take)(void *context, int value, const char *text);
	/* The operation; false: there is none of that name. */
	bool (*choose)(void *context, const char *name);
};

/*
 * Parses the arguments after the program's name into run, whose defaults it sets, and, by take and choose, into the
 * program's own options. 0: go; 1: help was printed, done; -EINVAL: a line saying what is wrong was printed.
 */
int ha_run_options_parse(struct ha_run_options *run, const struct ha_program *program, void *context, int argc,
			 char **argv);

/* What only makes sense together, as far as the common options go. `reduces`: the operation takes -o. As above. */
int ha_run_options_check(const struct ha_run_options *run, bool reduces);

/* The line about a wrong call; returns -EINVAL. */
int ha_complain(const char *program, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The size after `bytes`. */
size_t ha_run_size_next(const struct ha_run_options *run, size_t bytes);

#endif
