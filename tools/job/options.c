/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/job/options.h"
#include "tools/job/parse.h"

#define OPTIONS_MOST 96

enum {
	OPT_RANKS = 256,
	OPT_RANK,
	OPT_RENDEZVOUS,
	OPT_IN_PLACE,
	OPT_CHECK_ALL,
	OPT_SEED,
	OPT_JSON,
	OPT_DURATION,
	OPT_CHECK_EVERY,
	OPT_AT,
	OPT_TIMELINE,
	OPT_TIMELINE_STEP,
};

/* The first part has nccl-tests' names. */
static const struct ha_option common[] = {
	{ "minbytes", 'b', "SIZE", "first size (8); K, M, G are powers of 1024" },
	{ "maxbytes", 'e', "SIZE", "last size (64M)" },
	{ "stepbytes", 'i', "SIZE", "add this from size to size" },
	{ "stepfactor", 'f', "FACTOR", "multiply by this from size to size (2)" },
	{ "iters", 'n', "N", "measured iterations (20)" },
	{ "warmup_iters", 'w', "N", "iterations before those (1)" },
	{ "check", 'c', "N", "iterations verified after those, from fresh data and poisoned buffers (1)" },
	{ "datatype", 'd', "TYPE,...",
	  "int8 uint8 int32 uint32 int64 uint64 half float double bfloat16, or all (float)" },
	{ "op", 'o', "OP,...", NULL },
	{ "root", 'r', "RANK", "root of broadcast and reduce (0)" },
	{ "average", 'a', "0-3", "time of 0: rank 0, 1: the average, 2: the fastest, 3: the slowest rank (1)" },
	{ "timeout", 'T', "SECONDS", "give up when nothing moves for so long (60)" },
	{ "ranks", OPT_RANKS, "N", "fork N ranks here (2, unless mpirun, torchrun or srun started this)" },
	{ "rank", OPT_RANK, "R", "be rank R of --ranks N, started by hand; needs --rendezvous" },
	{ "rendezvous", OPT_RENDEZVOUS, "HOST:PORT", "where rank 0 is (MASTER_ADDR and MASTER_PORT)" },
	{ "no-in-place", OPT_IN_PLACE, NULL, "out of place only" },
	{ "check-all", OPT_CHECK_ALL, NULL, "verify every measured iteration too (a barrier before each)" },
	{ "duration", OPT_DURATION, "TIME",
	  "measure one size for so long (10s, 500ms) instead of -n iterations; ^C ends it early" },
	{ "check-every", OPT_CHECK_EVERY, "N",
	  "with --duration: verify every N-th iteration, at the full pace; 0 none (1)" },
	{ "at", OPT_AT, "TIME COMMAND",
	  "with --duration: run the shell command so long after the start; may be repeated" },
	{ "timeline", OPT_TIMELINE, "FILE", "with --duration: what arrived when, and when nothing moved, as JSON" },
	{ "timeline-step", OPT_TIMELINE_STEP, "TIME", "what a bucket of the timeline is long (1ms)" },
	{ "seed", OPT_SEED, "N", "of the pseudo-random data (1)" },
	{ "json", OPT_JSON, "[=FILE]", "one JSON object, to FILE, or instead of the table" },
	{ "help", 'h', NULL, "print this" },
};

#define COMMON (sizeof(common) / sizeof(common[0]))

/* The common options, then the program's. */
struct table {
	const struct ha_program *program;
	const struct ha_option *rows[OPTIONS_MOST];
	size_t count;
};

static void table_fill(struct table *t, const struct ha_program *program)
{
	*t = (struct table){ .program = program };
	for (size_t i = 0; i < COMMON; i++)
		t->rows[t->count++] = &common[i];
	for (size_t i = 0; i < program->options_count && t->count < OPTIONS_MOST; i++)
		t->rows[t->count++] = &program->options[i];
}

/* --- help ---------------------------------------------------------------------------------------------------------- */

static void redops_print(const struct ha_program *program)
{
	for (int i = 0; i < program->redops; i++)
		printf("%s ", ha_redop_names[i]);
	printf("or all (sum)\n");
}

static void help_print(const struct table *t)
{
	printf("usage: %s OPERATION [OPTIONS]\n\noperations:\n", t->program->name);
	for (const char *const *name = t->program->names; *name; name += 2)
		printf("  %-14s %s\n", name[0], name[1]);
	printf("\noptions:\n");
	for (size_t i = 0; i < t->count; i++) {
		const struct ha_option *o = t->rows[i];
		bool optional = o->argument && o->argument[0] == '[', letter = o->value < 256;
		char left[64];

		snprintf(left, sizeof(left), "%c%c%s--%s%s%s", letter ? '-' : ' ', letter ? o->value : ' ',
			 letter ? "," : " ", o->name, o->argument && !optional ? " " : "",
			 o->argument ? o->argument : "");
		printf("  %-30s ", left);
		if (o->help)
			printf("%s\n", o->help);
		else
			redops_print(t->program);
	}
	printf("\n%s\nExit status: 0 all right, 1 wrong data or failure, 2 called wrongly.\n", t->program->about);
}

int ha_complain(const char *program, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s: ", program);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "; `%s --help` lists what there is\n", program);
	return -EINVAL;
}

/* --- values -------------------------------------------------------------------------------------------------------- */

/* Both lists: a comma-separated choice, or "all". false for a name that does not exist. */
static bool types_parse(struct ha_run_options *o, const char *text)
{
	char copy[256], *save = NULL, *word;

	o->types_count = 0;
	if (!strcmp(text, "all")) {
		for (size_t i = 0; i < ha_datatypes_count; i++)
			o->types[o->types_count++] = &ha_datatypes[i];
		return true;
	}
	snprintf(copy, sizeof(copy), "%s", text);
	word = strtok_r(copy, ",", &save);
	for (; word && o->types_count < HA_TYPES_MOST; word = strtok_r(NULL, ",", &save)) {
		o->types[o->types_count] = ha_datatype_find(word);
		if (!o->types[o->types_count++])
			return false;
	}
	return o->types_count > 0;
}

static bool redops_parse(struct ha_run_options *o, const char *text, int known)
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

static bool factor_parse(struct ha_run_options *o, const char *text)
{
	char *end;

	o->step_factor = strtod(text, &end);
	o->step_bytes = 0;
	return ha_parse_check(end != text && !*end && o->step_factor > 1 && o->step_factor <= 1e6,
			      "a number above 1, up to 1000000");
}

static bool seed_parse(struct ha_run_options *o, const char *text)
{
	long n;

	if (!ha_long_parse(text, 0, 1L << 40, &n))
		return false;
	o->seed = (uint64_t)n;
	return true;
}

/* nccl-tests' options; false when the argument is out of range. */
static bool letter_take(struct ha_run_options *o, int value, const char *text, int redops)
{
	switch (value) {
	case 'b':
		return ha_size_parse(text, &o->min_bytes);
	case 'e':
		return ha_size_parse(text, &o->max_bytes);
	case 'i':
		return ha_parse_check(ha_size_parse(text, &o->step_bytes) && o->step_bytes > 0,
				      "a number of bytes from 1 to 64T, as in 8, 64K or 1M");
	case 'f':
		return factor_parse(o, text);
	case 'n':
		return ha_int_parse(text, 0, 100000000, &o->iters);
	case 'w':
		return ha_int_parse(text, 0, 100000000, &o->warmup);
	case 'c':
		return ha_int_parse(text, 0, 1000000, &o->checks);
	case 'd':
		return types_parse(o, text);
	case 'o':
		return redops_parse(o, text, redops);
	case 'r':
		return ha_int_parse(text, 0, 1 << 20, &o->root);
	case 'a':
		return ha_int_parse(text, 0, 3, &o->average);
	case 'T':
		return ha_int_parse(text, 1, 86400, &o->launch.timeout_s);
	}
	return true;
}

/* The other common options; false when the argument is out of range. */
static bool word_take(struct ha_run_options *o, int value, const char *text)
{
	struct ha_launch_options *l = &o->launch;

	switch (value) {
	case OPT_RANKS:
		return ha_int_parse(text, 1, 4096, &l->ranks);
	case OPT_RANK:
		return ha_int_parse(text, 0, 4095, &l->rank);
	case OPT_RENDEZVOUS:
		l->rendezvous = text;
		break;
	case OPT_IN_PLACE:
		o->in_place = false;
		break;
	case OPT_CHECK_ALL:
		o->check_all = true;
		break;
	case OPT_DURATION:
		return ha_parse_check(ha_time_parse(text, &o->duration_ns) && o->duration_ns >= 1000000,
				      "a time from 1ms to 86400s, as in 10s or 500ms");
	case OPT_CHECK_EVERY:
		return ha_int_parse(text, 0, 100000000, &o->check_every);
	case OPT_AT:
		return l->cues_count < HA_CUES && ha_time_parse(text, &l->cues[l->cues_count].at_ns);
	case OPT_TIMELINE:
		o->timeline = text;
		break;
	case OPT_TIMELINE_STEP:
		return ha_parse_check(ha_time_parse(text, &o->step_ns) && o->step_ns >= 10000,
				      "a time from 10us to 86400s, as in 1ms");
	case OPT_SEED:
		return seed_parse(o, text);
	case OPT_JSON:
		o->json = true;
		o->json_file = text;
		break;
	}
	return true;
}

/* --- the command line ---------------------------------------------------------------------------------------------- */

/* getopt takes no "--json FILE", only "--json=FILE": what looks like a file is put where it belongs. */
static char *json_file(int argc, char **argv)
{
	size_t n;

	if (optarg || optind >= argc || argv[optind][0] == '-')
		return optarg;
	n = strlen(argv[optind]);
	if (strchr(argv[optind], '/') || (n > 5 && !strcmp(argv[optind] + n - 5, ".json")))
		return argv[optind++];
	return NULL;
}

static void getopt_fill(const struct table *t, struct option *longs, char *shorts)
{
	*shorts++ = '-'; /* operands in their place */
	*shorts++ = ':';
	for (size_t i = 0; i < t->count; i++) {
		const struct ha_option *o = t->rows[i];
		int argument = no_argument;

		if (o->argument)
			argument = o->argument[0] == '[' ? optional_argument : required_argument;
		longs[i] = (struct option){ o->name, argument, NULL, o->value };
		if (o->value < 256) {
			*shorts++ = (char)o->value;
			if (argument)
				*shorts++ = ':';
		}
	}
	longs[t->count] = (struct option){ 0 };
	*shorts = 0;
}

static const char *name_of(const struct table *t, int value)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->rows[i]->value == value)
			return t->rows[i]->name;
	return "?";
}

static bool is_common(int value)
{
	for (size_t i = 0; i < COMMON; i++)
		if (common[i].value == value)
			return true;
	return false;
}

/* An argument that is none; where a parser knows the range, the line says it. */
static int argument_complain(const char *program, const char *name, const char *text)
{
	const char *accepts = ha_parse_accepts();

	if (!*accepts)
		return ha_complain(program, "--%s does not take '%s'", name, text);
	return ha_complain(program, "--%s does not take '%s', it takes %s", name, text, accepts);
}

/* One option with its argument. 0 or -EINVAL with the line printed. */
static int option_take(const struct table *t, struct ha_run_options *run, void *context, int value, int argc,
		       char **argv)
{
	const struct ha_program *p = t->program;
	const char *text = value == OPT_JSON ? json_file(argc, argv) : optarg;
	bool good;

	ha_parse_reset();
	if (!is_common(value))
		good = p->take(context, value, text);
	else if (value < 256)
		good = letter_take(run, value, text, p->redops);
	else
		good = word_take(run, value, text);
	if (!good)
		return argument_complain(p->name, name_of(t, value), text);
	if (value != OPT_AT)
		return 0;
	/* getopt takes one argument: the command is the word after it */
	if (optind >= argc)
		return ha_complain(p->name, "--at takes a time and a command");
	run->launch.cues[run->launch.cues_count++].command = argv[optind++];
	return 0;
}

static void defaults_set(struct ha_run_options *run, const struct ha_program *program)
{
	*run = (struct ha_run_options){
		.launch = { .program = program->name, .timeout_s = 60, .rank = -1 },
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

int ha_run_options_parse(struct ha_run_options *run, const struct ha_program *program, void *context, int argc,
			 char **argv)
{
	struct option longs[OPTIONS_MOST + 1];
	char shorts[2 * OPTIONS_MOST + 3];
	const char *operation = NULL;
	struct table table;
	int c, err;

	defaults_set(run, program);
	table_fill(&table, program);
	getopt_fill(&table, longs, shorts);
	optind = 1;
	while ((c = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		if (c == 'h') {
			help_print(&table);
			return 1;
		}
		if (c == '?')
			return ha_complain(program->name, "unknown option '%s'", argv[optind - 1]);
		if (c == ':')
			return ha_complain(program->name, "option '%s' needs an argument", argv[optind - 1]);
		if (c != 1) {
			err = option_take(&table, run, context, c, argc, argv);
			if (err)
				return err;
			continue;
		}
		if (operation)
			return ha_complain(program->name, "'%s' after the operation '%s'", optarg, operation);
		operation = optarg;
		if (!program->choose(context, optarg))
			return ha_complain(program->name, "unknown operation '%s'", optarg);
	}
	if (optind < argc)
		return ha_complain(program->name, "'%s' is too much", argv[optind]);
	if (!operation)
		return ha_complain(program->name, "no operation given (%s, %s, ...)", program->names[0],
				   program->names[4]);
	run->launch.interruptible = run->duration_ns != 0;
	if (run->duration_ns)
		run->in_place = false;
	return 0;
}

static int duration_check(const struct ha_run_options *run, bool reduces)
{
	const struct ha_launch_options *l = &run->launch;

	if (run->max_bytes != run->min_bytes || run->types_count > 1 || (reduces && run->redops_count > 1))
		return ha_complain(l->program,
				   "--duration measures one size of one type: give -b and -e the same");
	if (run->check_all)
		return ha_complain(l->program, "--duration does not go with --check-all");
	for (int i = 0; i < l->cues_count; i++)
		if (l->cues[i].at_ns >= run->duration_ns)
			return ha_complain(l->program, "'%s' of --at would come after the end of --duration",
					   l->cues[i].command);
	return 0;
}

int ha_run_options_check(const struct ha_run_options *run, bool reduces)
{
	const struct ha_launch_options *l = &run->launch;

	if (run->max_bytes < run->min_bytes)
		return ha_complain(l->program, "--maxbytes is less than --minbytes");
	if (l->rank >= 0 && (!l->ranks || l->rank >= l->ranks || !l->rendezvous))
		return ha_complain(l->program, "--rank needs --ranks, larger than it, and --rendezvous");
	if (!run->duration_ns && (l->cues_count || run->timeline))
		return ha_complain(l->program, "%s needs --duration", run->timeline ? "--timeline" : "--at");
	if (run->check_all && !run->iters)
		return ha_complain(l->program,
				   "--check-all verifies the measured iterations, of which -n 0 has none");
	return run->duration_ns ? duration_check(run, reduces) : 0;
}

size_t ha_run_size_next(const struct ha_run_options *run, size_t bytes)
{
	size_t next = run->step_bytes ? bytes + run->step_bytes : (size_t)((double)bytes * run->step_factor);

	return next > bytes ? next : bytes + 1;
}
