/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "tools/job/options.h"

#define DAY_NS (UINT64_C(86400) * 1000000000)
#define SIZE_MOST (UINT64_C(1) << 46)

/* ---- values ---- */

/* A list: a comma-separated choice, or "all". false for a name that does not exist. */
static bool take_types(void *target, const struct ha_option_text *given)
{
	struct ha_run_options *o = target;
	char copy[256], *save = NULL, *word;

	o->types_count = 0;
	if (!strcmp(given->text, "all")) {
		for (size_t i = 0; i < ha_datatypes_count; i++)
			o->types[o->types_count++] = &ha_datatypes[i];
		return true;
	}
	snprintf(copy, sizeof(copy), "%s", given->text);
	word = strtok_r(copy, ",", &save);
	for (; word && o->types_count < HA_TYPES_MOST; word = strtok_r(NULL, ",", &save)) {
		o->types[o->types_count] = ha_datatype_find(word);
		if (!o->types[o->types_count++])
			return false;
	}
	return o->types_count > 0;
}

bool ha_run_parse_redops(struct ha_run_options *o, const char *text, int known)
{
	char copy[256], *save = NULL, *word;
	int op;

	o->redops_count = 0;
	if (!strcmp(text, "all")) {
		for (op = 0; op < known; op++)
			o->redops[o->redops_count++] = (enum ha_redop)op;
		return true;
	}
	snprintf(copy, sizeof(copy), "%s", text);
	word = strtok_r(copy, ",", &save);
	for (; word && o->redops_count < HA_REDOPS; word = strtok_r(NULL, ",", &save)) {
		op = ha_redop_find(word);
		if (op < 0 || op >= known)
			return false;
		o->redops[o->redops_count++] = (enum ha_redop)op;
	}
	return o->redops_count > 0;
}

bool ha_run_take_redops(void *run, const struct ha_option_text *given)
{
	return ha_run_parse_redops(run, given->text, HA_REDOPS);
}

/* The last of -i and -f counts. */
static bool take_factor(void *target, const struct ha_option_text *given)
{
	struct ha_run_options *o = target;
	char *end;

	o->step_factor = strtod(given->text, &end);
	o->step_bytes = 0;
	return end != given->text && !*end && o->step_factor > 1 && o->step_factor <= 1e6;
}

static bool take_cue(void *target, const struct ha_option_text *given)
{
	struct ha_launch_options *l = &((struct ha_run_options *)target)->launch;
	uint64_t ns;

	if (l->cues_count == HA_CUES || !ha_time_parse(given->text, &ns) || ns > DAY_NS)
		return false;
	l->cues[l->cues_count].at_ns = (int64_t)ns;
	l->cues[l->cues_count++].command = given->second;
	return true;
}

/* "--json FILE" besides "--json=FILE", where the word looks like a file. */
static bool is_json_file(const char *word)
{
	size_t n = strlen(word);

	return word[0] != '-' && (strchr(word, '/') || (n > 5 && !strcmp(word + n - 5, ".json")));
}

/* ---- the table ---- */

#define HA_TARGET struct ha_run_options

/* The first part has nccl-tests' names. */
const struct ha_option ha_run_option_rows[] = {
	{ "minbytes", 'b', "SIZE", "first size (8); K, M, G are powers of 1024",
	  HA_SIZE(min_bytes, 0, SIZE_MOST) },
	{ "maxbytes", 'e', "SIZE", "last size (64M)", HA_SIZE(max_bytes, 0, SIZE_MOST) },
	{ "stepbytes", 'i', "SIZE", "add this from size to size",
	  HA_SIZE(step_bytes, 1, SIZE_MOST) },
	{ "stepfactor", 'f', "FACTOR", "multiply by this from size to size (2)",
	  HA_CALL(take_factor, "a number above 1, up to 1000000") },
	{ "iters", 'n', "N", "measured iterations (20)", HA_NUMBER(iters, 0, 100000000) },
	{ "warmup_iters", 'w', "N", "iterations before those (1)",
	  HA_NUMBER(warmup, 0, 100000000) },
	{ "check", 'c', "N",
	  "iterations verified after those, from fresh data and poisoned buffers (1)",
	  HA_NUMBER(checks, 0, 1000000) },
	{ "datatype", 'd', "TYPE,...",
	  "int8 uint8 int32 uint32 int64 uint64 half float double bfloat16, or all (float)",
	  HA_CALL(take_types, "names of data types with commas between, or all") },
	{ "root", 'r', "RANK", "root of broadcast and reduce (0)", HA_NUMBER(root, 0, 1 << 20) },
	{ "average", 'a', "0-3",
	  "time of 0: rank 0, 1: the average, 2: the fastest, 3: the slowest rank (1)",
	  HA_NUMBER(average, 0, 3) },
	{ "timeout", 'T', "SECONDS", "give up when nothing moves for so long (60)",
	  HA_NUMBER(launch.timeout_s, 1, 86400) },
	{ "ranks", 0, "N", "fork N ranks here (2, unless mpirun, torchrun or srun started this)",
	  HA_NUMBER(launch.ranks, 1, 4096) },
	{ "rank", 0, "R", "be rank R of --ranks N, started by hand; needs --rendezvous",
	  HA_NUMBER(launch.rank, 0, 4095) },
	{ "rendezvous", 0, "HOST:PORT", "where rank 0 is (MASTER_ADDR and MASTER_PORT)",
	  HA_TEXT(launch.rendezvous) },
	{ "no-in-place", 0, NULL, "out of place only", HA_FLAG_OFF(in_place) },
	{ "check-all", 0, NULL, "verify every measured iteration too (a barrier before each)",
	  HA_FLAG(check_all) },
	{ "duration", 0, "TIME",
	  "measure one size for so long (10s, 500ms) instead of -n iterations; ^C ends it early",
	  HA_TIME(duration_ns, 1000000, DAY_NS) },
	{ "check-every", 0, "N",
	  "with --duration: verify every N-th iteration, at the full pace; 0 none (1)",
	  HA_NUMBER(check_every, 0, 100000000) },
	{ "compute", 0, "TIME",
	  "with --duration: sleep so long before each iteration, as a training step computes",
	  HA_TIME(compute_ns, 1000, DAY_NS) },
	{ "at", 0, "TIME COMMAND",
	  "with --duration: run the shell command so long after the start; may be repeated",
	  HA_CALL(take_cue, "a time up to 86400s, as in 10s or 500ms, 64 of them at most") },
	{ "progress", 0, "TIME",
	  "between two lines on standard error that say how far it has come (1s on a terminal, "
	  "10s elsewhere)",
	  HA_TIME(progress_ns, 1000000, DAY_NS) },
	{ "timeline", 0, "FILE",
	  "with --duration: what arrived when, and when nothing moved, as JSON",
	  HA_TEXT(timeline) },
	{ "timeline-step", 0, "TIME", "what a bucket of the timeline is long (1ms)",
	  HA_TIME(step_ns, 10000, DAY_NS) },
	{ "seed", 0, "N", "of the pseudo-random data (1)", HA_NUMBER(seed, 0, UINT64_C(1) << 40) },
	{ "json", 0, "[FILE]", "one JSON object, to FILE, or instead of the table",
	  HA_TEXT(json_file), HA_GIVEN(json), .may_follow = is_json_file },
	{ 0 },
};

void ha_run_options_default(struct ha_run_options *run, const char *program)
{
	*run = (struct ha_run_options) {
		.launch = { .program = program, .timeout_s = 60, .rank = -1 },
		.min_bytes = 8,
		.max_bytes = 64UL << 20,
		.step_factor = 2,
		.iters = 20,
		.warmup = 1,
		.checks = 1,
		.types = { ha_datatype_find("float") },
		.types_count = 1,
		.redops = { HA_SUM },
		.redops_count = 1,
		.average = 1,
		.in_place = true,
		.check_every = 1,
		.step_ns = 1000000,
		.seed = 1,
	};
}

/* ---- what only makes sense together ---- */

static int check_duration(const struct ha_run_options *run, const struct ha_program *program,
			  bool reduces)
{
	const struct ha_launch_options *l = &run->launch;

	if (run->max_bytes != run->min_bytes || run->types_count > 1 ||
	    (reduces && run->redops_count > 1))
		return ha_program_refuse(
			program,
			"--duration measures one size of one type: give -b and -e the same");
	if (run->check_all)
		return ha_program_refuse(program, "--duration does not go with --check-all");
	for (int i = 0; i < l->cues_count; i++)
		if (l->cues[i].at_ns >= run->duration_ns)
			return ha_program_refuse(
				program, "'%s' of --at would come after the end of --duration",
				l->cues[i].command);
	return 0;
}

/* What was given that only a run by duration has. */
static const char *needs_duration(const struct ha_run_options *run)
{
	if (run->timeline)
		return "--timeline";
	return run->compute_ns ? "--compute" : "--at";
}

int ha_run_options_check(struct ha_run_options *run, const struct ha_program *program, bool reduces)
{
	const struct ha_launch_options *l = &run->launch;

	run->launch.interruptible = run->duration_ns != 0;
	if (run->duration_ns)
		run->in_place = false;
	if (run->max_bytes < run->min_bytes)
		return ha_program_refuse(program, "--maxbytes is less than --minbytes");
	if (l->rank >= 0 && (!l->ranks || l->rank >= l->ranks || !l->rendezvous))
		return ha_program_refuse(program,
					 "--rank needs --ranks, larger than it, and --rendezvous");
	if (!run->duration_ns && (l->cues_count || run->timeline || run->compute_ns))
		return ha_program_refuse(program, "%s needs --duration", needs_duration(run));
	if (run->check_all && !run->iters)
		return ha_program_refuse(
			program,
			"--check-all verifies the measured iterations, of which -n 0 has none");
	return run->duration_ns ? check_duration(run, program, reduces) : 0;
}

size_t ha_run_size_next(const struct ha_run_options *run, size_t bytes)
{
	size_t next = run->step_bytes ? bytes + run->step_bytes
				      : (size_t)((double)bytes * run->step_factor);

	return next > bytes ? next : bytes + 1;
}
