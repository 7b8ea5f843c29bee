/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/perf/mesh.h"
#include "tools/perf/operation.h"
#include "tools/perf/options.h"

enum {
	OPT_RANKS = 256,
	OPT_RANK,
	OPT_RENDEZVOUS,
	OPT_PLUGIN,
	OPT_VERSUS,
	OPT_NET_VERSION,
	OPT_VERSUS_VERSION,
	OPT_DEV,
	OPT_CHANNELS,
	OPT_GROUP,
	OPT_STEPS,
	OPT_BUFFER,
	OPT_PROTOCOL,
	OPT_SHUFFLE,
	OPT_FLUSH,
	OPT_IN_PLACE,
	OPT_CHECK_ALL,
	OPT_SEED,
	OPT_INPUT,
	OPT_JSON,
	OPT_DURATION,
	OPT_CHECK_EVERY,
	OPT_AT,
	OPT_TIMELINE,
	OPT_TIMELINE_STEP,
	OPT_TIME_TEST,
};

/* Name, letter or number, argument (NULL: none), help. The first part has nccl-tests' names. */
static const struct {
	const char *name;
	int value;
	const char *argument, *help;
} table[] = {
	{ "minbytes", 'b', "SIZE", "first size (8); K, M, G are powers of 1024" },
	{ "maxbytes", 'e', "SIZE", "last size (64M)" },
	{ "stepbytes", 'i', "SIZE", "add this from size to size" },
	{ "stepfactor", 'f', "FACTOR", "multiply by this from size to size (2)" },
	{ "iters", 'n', "N", "measured iterations (20)" },
	{ "warmup_iters", 'w', "N", "iterations before those (1)" },
	{ "check", 'c', "N", "iterations verified after those, from fresh data and poisoned buffers (1)" },
	{ "datatype", 'd', "TYPE,...",
	  "int8 uint8 int32 uint32 int64 uint64 half float double bfloat16, or all (float)" },
	{ "op", 'o', "OP,...", "sum prod max min avg, or all (sum)" },
	{ "root", 'r', "RANK", "root of broadcast and reduce (0)" },
	{ "average", 'a', "0-3", "time of 0: rank 0, 1: the average, 2: the fastest, 3: the slowest rank (1)" },
	{ "timeout", 'T', "SECONDS", "give up when nothing moves for so long (60)" },
	{ "ranks", OPT_RANKS, "N", "fork N ranks here (2, unless mpirun, torchrun or srun started this)" },
	{ "rank", OPT_RANK, "R", "be rank R of --ranks N, started by hand; needs --rendezvous" },
	{ "rendezvous", OPT_RENDEZVOUS, "HOST:PORT", "where rank 0 is (MASTER_ADDR and MASTER_PORT)" },
	{ "plugin", OPT_PLUGIN, "NAME", "path, library, or X for libnccl-net-X.so (libnccl-net-ha.so beside ha)" },
	{ "vs", OPT_VERSUS, "NAME", "take turns with this plugin and print both and their ratios" },
	{ "net-version", OPT_NET_VERSION, "6-12", "version of the interface (the highest the plugin has)" },
	{ "vs-net-version", OPT_VERSUS_VERSION, "6-12", "the same for --vs" },
	{ "dev", OPT_DEV, "N|N+M|all", "device of every rank, one fused of several, or its channels take all in turn (rank modulo devices)" },
	{ "channels", OPT_CHANNELS, "N", "parallel channels that share the data (1)" },
	{ "group", OPT_GROUP, "N",
	  "channels that share a connection with grouped receives (alltoall, sendrecv: all; else 1)" },
	{ "steps", OPT_STEPS, "N", "messages in flight per channel (8)" },
	{ "buffsize", OPT_BUFFER, "SIZE",
	  "buffer of a channel, a slice is a step's share of it (4M; point to point 1M)" },
	{ "protocol", OPT_PROTOCOL, "NAME",
	  "simple, ll (flags in the data, receive completion optional), auto (auto)" },
	{ "shuffle", OPT_SHUFFLE, NULL, "test requests out of order" },
	{ "flush", OPT_FLUSH, NULL, "flush after every receive, also when the plugin does not ask for it" },
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
	{ "time-test", OPT_TIME_TEST, NULL, "how long each call of the plugin's test() takes: p50, p99, p99.9, longest" },
	{ "seed", OPT_SEED, "N", "of the pseudo-random data (1)" },
	{ "input", OPT_INPUT, "FILE", "elements of this file (raw, .npy or .safetensors) as data" },
	{ "json", OPT_JSON, "[=FILE]", "one JSON object, to FILE, or instead of the table" },
	{ "help", 'h', NULL, "print this" },
};

#define OPTIONS (sizeof(table) / sizeof(table[0]))

static void help_print(void)
{
	printf("usage: ha perf OPERATION [OPTIONS]\n\noperations:\n");
	for (size_t i = 0; i < ha_operations_count; i++)
		printf("  %-14s %s\n", ha_operations[i].name, ha_operations[i].help);
	printf("\noptions:\n");
	for (size_t i = 0; i < OPTIONS; i++) {
		char left[64];
		bool optional = table[i].argument && table[i].argument[0] == '[';

		snprintf(left, sizeof(left), "%c%c%s--%s%s%s", table[i].value < 256 ? '-' : ' ',
			 table[i].value < 256 ? table[i].value : ' ', table[i].value < 256 ? "," : " ", table[i].name,
			 table[i].argument && !optional ? " " : "", table[i].argument ? table[i].argument : "");
		printf("  %-30s %s\n", left, table[i].help);
	}
	printf("\nDrives a NCCL net plugin over host memory as NCCL's proxy does, and compares every element of the "
	       "result\n"
	       "with an independent computation. Exit status: 0 all right, 1 wrong data or failure, 2 called "
	       "wrongly.\n");
}

bool ha_size_parse(const char *text, size_t *bytes)
{
	char *end;
	double value;
	int shift = 0;

	errno = 0;
	value = strtod(text, &end);
	if (end == text || errno || !(value >= 0))
		return false;
	switch (toupper((unsigned char)*end)) {
	case 'K':
		shift = 10;
		break;
	case 'M':
		shift = 20;
		break;
	case 'G':
		shift = 30;
		break;
	case 'T':
		shift = 40;
		break;
	}
	end += shift != 0;
	if (shift && (*end == 'B' || *end == 'b'))
		end++;
	value = ldexp(value, shift);
	if (*end || value > 0x1p46)
		return false;
	*bytes = (size_t)value;
	return true;
}

bool ha_time_parse(const char *text, int64_t *ns)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = { { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 }, { "", 1e9 } };
	char *end;
	double value = strtod(text, &end);

	if (end == text || !(value >= 0))
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(end, units[i].unit) && value * units[i].ns <= 86400e9) {
			*ns = (int64_t)(value * units[i].ns);
			return true;
		}
	return false;
}

static bool int_parse(const char *text, long low, long high, long *value)
{
	char *end;

	errno = 0;
	*value = strtol(text, &end, 10);
	return end != text && !*end && !errno && *value >= low && *value <= high;
}

/* Both lists: a comma-separated choice, or "all". false for a name that does not exist. */
static bool types_parse(struct ha_options *o, const char *text)
{
	char copy[256], *save = NULL, *word;

	o->types_count = 0;
	if (!strcmp(text, "all")) {
		for (size_t i = 0; i < ha_datatypes_count; i++)
			o->types[o->types_count++] = &ha_datatypes[i];
		return true;
	}
	snprintf(copy, sizeof(copy), "%s", text);
	for (word = strtok_r(copy, ",", &save); word && o->types_count < 16; word = strtok_r(NULL, ",", &save)) {
		o->types[o->types_count] = ha_datatype_find(word);
		if (!o->types[o->types_count++])
			return false;
	}
	return o->types_count > 0;
}

static bool redops_parse(struct ha_options *o, const char *text)
{
	char copy[256], *save = NULL, *word;
	int op;

	o->redops_count = 0;
	if (!strcmp(text, "all")) {
		for (op = 0; op < HA_REDOPS; op++)
			o->redops[o->redops_count++] = (enum ha_redop)op;
		return true;
	}
	snprintf(copy, sizeof(copy), "%s", text);
	for (word = strtok_r(copy, ",", &save); word && o->redops_count < HA_REDOPS;
	     word = strtok_r(NULL, ",", &save)) {
		op = ha_redop_find(word);
		if (op < 0)
			return false;
		o->redops[o->redops_count++] = (enum ha_redop)op;
	}
	return o->redops_count > 0;
}

static bool dev_parse(struct ha_options *o, const char *text)
{
	char copy[256], *save, *word;
	long n;

	if (!strcmp(text, "all")) {
		o->dev = HA_DEV_ALL;
		return true;
	}
	o->nfused = 0;
	snprintf(copy, sizeof(copy), "%s", text);
	for (word = strtok_r(copy, "+", &save); word; word = strtok_r(NULL, "+", &save)) {
		if (o->nfused == HA_FUSED_MAX || !int_parse(word, 0, 65535, &n))
			return false;
		o->fused[o->nfused++] = (int)n;
	}
	o->dev = o->nfused > 1 ? HA_DEV_FUSED : o->fused[0];
	return o->nfused > 0;
}

static bool protocol_parse(struct ha_options *o, const char *text)
{
	static const char *const names[] = { "auto", "simple", "ll" };

	for (int i = 0; i < 3; i++) {
		if (!strcmp(text, names[i])) {
			o->protocol = (enum ha_protocol_choice)i;
			return true;
		}
	}
	return false;
}

static bool factor_parse(struct ha_options *o, const char *text)
{
	char *end;

	o->step_factor = strtod(text, &end);
	o->step_bytes = 0;
	return end != text && !*end && o->step_factor > 1 && o->step_factor <= 1e6;
}

static bool int_option(const char *text, long low, long high, int *value)
{
	long n;

	if (!int_parse(text, low, high, &n))
		return false;
	*value = (int)n;
	return true;
}

/* One option's argument into the options; false when it is out of range. */
static bool option_take(struct ha_options *o, int value, const char *text)
{
	long n;

	switch (value) {
	case 'b':
		return ha_size_parse(text, &o->min_bytes);
	case 'e':
		return ha_size_parse(text, &o->max_bytes);
	case 'i':
		return ha_size_parse(text, &o->step_bytes) && o->step_bytes > 0;
	case 'f':
		return factor_parse(o, text);
	case 'n':
		return int_option(text, 0, 100000000, &o->iters);
	case 'w':
		return int_option(text, 0, 100000000, &o->warmup);
	case 'c':
		return int_option(text, 0, 1000000, &o->checks);
	case 'd':
		return types_parse(o, text);
	case 'o':
		return redops_parse(o, text);
	case 'r':
		return int_option(text, 0, 1 << 20, &o->root);
	case 'a':
		return int_option(text, 0, 3, &o->average);
	case 'T':
		return int_option(text, 1, 86400, &o->timeout_s);
	case OPT_RANKS:
		return int_option(text, 1, 4096, &o->ranks);
	case OPT_RANK:
		return int_option(text, 0, 4095, &o->rank);
	case OPT_NET_VERSION:
		return int_option(text, 6, 12, &o->net_version);
	case OPT_VERSUS_VERSION:
		return int_option(text, 6, 12, &o->versus_version);
	case OPT_DEV:
		return dev_parse(o, text);
	case OPT_CHANNELS:
		return int_option(text, 1, 64, &o->channels); /* NCCL's MAXCHANNELS */
	case OPT_GROUP:
		return int_option(text, 1, HA_PLUGIN_MAX_GROUP, &o->group);
	case OPT_STEPS:
		return int_option(text, 1, HA_MAX_STEPS, &o->steps);
	case OPT_BUFFER:
		return ha_size_parse(text, &o->buffer_bytes) && o->buffer_bytes >= 4096;
	case OPT_PROTOCOL:
		return protocol_parse(o, text);
	case OPT_DURATION:
		return ha_time_parse(text, &o->duration_ns) && o->duration_ns >= 1000000;
	case OPT_CHECK_EVERY:
		return int_option(text, 0, 100000000, &o->check_every);
	case OPT_TIMELINE_STEP:
		return ha_time_parse(text, &o->step_ns) && o->step_ns >= 10000;
	case OPT_AT:
		return o->cues_count < HA_CUES && ha_time_parse(text, &o->cues[o->cues_count].at_ns);
	case OPT_SEED:
		if (!int_parse(text, 0, 1L << 40, &n))
			return false;
		o->seed = (uint64_t)n;
		return true;
	}
	return true;
}

static void flag_take(struct ha_options *o, int value, char *text)
{
	switch (value) {
	case OPT_RENDEZVOUS:
		o->rendezvous = text;
		break;
	case OPT_PLUGIN:
		o->plugin = text;
		break;
	case OPT_VERSUS:
		o->versus = text;
		break;
	case OPT_SHUFFLE:
		o->shuffle = true;
		break;
	case OPT_FLUSH:
		o->flush = true;
		break;
	case OPT_TIME_TEST:
		o->time_test = true;
		break;
	case OPT_IN_PLACE:
		o->in_place = false;
		break;
	case OPT_CHECK_ALL:
		o->check_all = true;
		break;
	case OPT_TIMELINE:
		o->timeline = text;
		break;
	case OPT_INPUT:
		o->input = text;
		break;
	case OPT_JSON:
		o->json = true;
		o->json_file = text;
		break;
	}
}

static int complain(const char *format, const char *what, const char *text)
{
	fprintf(stderr, "ha perf: ");
	fprintf(stderr, format, what, text);
	fprintf(stderr, "; `ha perf --help` lists what there is\n");
	return -EINVAL;
}

static const char *name_of(int value)
{
	for (size_t i = 0; i < OPTIONS; i++)
		if (table[i].value == value)
			return table[i].name;
	return "?";
}

static int duration_check(const struct ha_options *o)
{
	if (o->max_bytes != o->min_bytes || o->types_count > 1 || (o->operation->reduces && o->redops_count > 1))
		return complain("--duration measures one size of one type: give -b and -e the same%s%s", "", "");
	if (o->versus || o->check_all)
		return complain("--duration does not go with %s%s", o->versus ? "--vs" : "--check-all", "");
	for (int i = 0; i < o->cues_count; i++)
		if (o->cues[i].at_ns >= o->duration_ns)
			return complain("'%s' of --at would come after the end of --duration%s", o->cues[i].command,
					"");
	return 0;
}

/* What only the plans of the other operations know. */
static int collnet_check(const struct ha_options *o)
{
	const char *unknown = o->versus ? "--vs" : o->timeline ? "--timeline" : o->json ? "--json" : o->input ? "--input" : o->time_test ? "--time-test" : NULL;

	if (unknown)
		return complain("collnet does not know %s%s", unknown, "");
	if (o->types_count != 1 || strcmp(o->types[0]->name, "float") || o->redops_count != 1 || o->redops[0] != HA_SUM)
		return complain("collnet is the sum of float, nothing else%s%s", "", "");
	if (o->dev == HA_DEV_ALL || o->dev == HA_DEV_FUSED)
		return complain("collnet takes one device%s%s", "", "");
	return 0;
}

/* What only makes sense together. */
static int options_check(const struct ha_options *o)
{
	if (!o->operation)
		return complain("no operation given (%s%s)", "pingpong, allreduce, ...", "");
	if (o->max_bytes < o->min_bytes)
		return complain("--maxbytes is less than --minbytes%s%s", "", "");
	if (o->rank >= 0 && (!o->ranks || o->rank >= o->ranks || !o->rendezvous))
		return complain("--rank needs --ranks, larger than it, and --rendezvous%s%s", "", "");
	if (o->rank < 0 && o->ranks == 1)
		return complain("one rank alone has nobody to talk to: --ranks %s%s", "2 or more", "");
	if (o->root && o->ranks && o->root >= o->ranks)
		return complain("--root is not one of the ranks%s%s", "", "");
	if (!o->duration_ns && (o->cues_count || o->timeline))
		return complain("%s needs --duration%s", o->timeline ? "--timeline" : "--at", "");
	if (o->check_all && !o->iters)
		return complain("--check-all verifies the measured iterations, of which -n 0 has none%s%s", "", "");
	if (o->operation->collnet && collnet_check(o))
		return -EINVAL;
	return o->duration_ns ? duration_check(o) : 0;
}

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

/* getopt takes one argument: the command of --at is the word after it. */
static int cue_command(struct ha_options *o, int argc, char **argv)
{
	if (optind >= argc)
		return complain("--at takes a time and a command%s%s", "", "");
	o->cues[o->cues_count++].command = argv[optind++];
	return 0;
}

static void getopt_fill(struct option *longs, char *shorts)
{
	*shorts++ = '-'; /* operands in their place */
	*shorts++ = ':';
	for (size_t i = 0; i < OPTIONS; i++) {
		int argument = !table[i].argument	     ? no_argument
			       : table[i].argument[0] == '[' ? optional_argument
							     : required_argument;

		longs[i] = (struct option){ table[i].name, argument, NULL, table[i].value };
		if (table[i].value < 256) {
			*shorts++ = (char)table[i].value;
			if (argument)
				*shorts++ = ':';
		}
	}
	longs[OPTIONS] = (struct option){ 0 };
	*shorts = 0;
}

int ha_options_parse(struct ha_options *o, int argc, char **argv)
{
	struct option longs[OPTIONS + 1];
	char shorts[2 * OPTIONS + 3];
	int c;

	*o = (struct ha_options){
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
		.timeout_s = 60,
		.rank = -1,
		.dev = HA_DEV_BY_RANK,
		.channels = 1,
		.steps = 8,
		.in_place = true,
		.check_every = 1,
		.step_ns = 1000000,
		.seed = 1,
	};
	getopt_fill(longs, shorts);
	optind = 1;
	while ((c = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		if (c == 'h') {
			help_print();
			return 1;
		}
		if (c == '?')
			return complain("unknown option '%s'%s", argv[optind - 1], "");
		if (c == ':')
			return complain("option '%s' needs an argument%s", argv[optind - 1], "");
		if (c == 1) {
			if (o->operation)
				return complain("'%s' after the operation '%s'", optarg, o->operation->name);
			o->operation = ha_operation_find(optarg);
			if (!o->operation)
				return complain("unknown operation '%s'%s", optarg, "");
			continue;
		}
		if (!option_take(o, c, optarg))
			return complain("--%s does not take '%s'", name_of(c), optarg);
		if (c == OPT_AT && cue_command(o, argc, argv))
			return -EINVAL;
		flag_take(o, c, c == OPT_JSON ? json_file(argc, argv) : optarg);
	}
	if (optind < argc)
		return complain("'%s' is too much%s", argv[optind], "");
	if (o->duration_ns)
		o->in_place = false;
	return options_check(o);
}
