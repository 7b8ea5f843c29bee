/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_JOB_OPTIONS_H
#define HAWSER_JOB_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/options.h"
#include "tools/job/datatype.h"
#include "tools/job/launch.h"

/*
 * options - the command line of the programs that run collectives: nccl-tests' options and those of
 * a run of ranks
 */

#define HA_TYPES_MOST 16

/* What all these programs take. Sizes are bytes. */
struct ha_run_options {
	struct ha_launch_options launch;
	size_t min_bytes, max_bytes;
	size_t step_bytes; /* 0: multiply by step_factor instead */
	double step_factor;
	int iters, warmup, checks;
	bool check_all;      /* verify every timed iteration too */
	int64_t duration_ns; /* 0: measure iters iterations */
	/* of a run by duration: every how many iterations one is verified; 0: none */
	int check_every;
	int64_t compute_ns;   /* of a run by duration: between two iterations */
	int64_t progress_ns;  /* between two lines of progress; 0: ha_progress_print() knows */
	const char *timeline; /* file, or NULL */
	int64_t step_ns;      /* of the timeline's buckets */
	const struct ha_datatype *types[HA_TYPES_MOST];
	int types_count;
	enum ha_redop redops[HA_REDOPS];
	int redops_count;
	int root;
	/* nccl-tests' -a: time of 0 rank 0, 1 the average, 2 the fastest, 3 the slowest rank */
	int average;
	uint64_t seed;
	bool in_place;
	bool json;
	const char *json_file; /* NULL: standard output instead of the table */
};

/*
 * Their rows, for a program whose own options begin with a struct ha_run_options. Which -o there
 * are differs: a program adds that row itself, with ha_run_take_redops() or a function that knows
 * fewer.
 */
extern const struct ha_option ha_run_option_rows[];
bool ha_run_take_redops(void *run, const struct ha_option_text *given);
/* The first `known` of enum ha_redop. */
bool ha_run_parse_redops(struct ha_run_options *run, const char *text, int known);

void ha_run_options_default(struct ha_run_options *run, const char *program);

/*
 * What only makes sense together, as far as the common options go, and what follows from them.
 * `reduces`: the operation takes -o. 0, or what ha_program_refuse() returns.
 */
int ha_run_options_check(struct ha_run_options *run, const struct ha_program *program,
			 bool reduces);

/* The run prints a table on standard output; else its JSON object goes there. */
static inline bool ha_run_has_table(const struct ha_run_options *run)
{
	return !run->json || run->json_file;
}

/* The size after `bytes`. */
size_t ha_run_size_next(const struct ha_run_options *run, size_t bytes);

#endif
