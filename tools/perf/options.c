/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "tools/perf/mesh.h"
#include "tools/perf/operation.h"
#include "tools/perf/options.h"

/* ---- values ---- */

static bool take_devices(void *target, const struct ha_option_text *given)
{
	struct perf_options *o = target;
	char copy[256], *save, *word;
	uint64_t n;

	if (!strcmp(given->text, "all")) {
		o->dev = HA_DEV_ALL;
		return true;
	}
	o->nfused = 0;
	snprintf(copy, sizeof(copy), "%s", given->text);
	for (word = strtok_r(copy, "+", &save); word; word = strtok_r(NULL, "+", &save)) {
		if (o->nfused == HA_FUSED_MAX || !ha_number_parse(word, 0, 65535, &n))
			return false;
		o->fused[o->nfused++] = (int)n;
	}
	o->dev = o->nfused > 1 ? HA_DEV_FUSED : o->fused[0];
	return o->nfused > 0;
}

static bool take_redops(void *target, const struct ha_option_text *given)
{
	struct perf_options *o = target;

	return ha_run_parse_redops(&o->run, given->text, HA_MULSUM);
}

static bool take_operation(void *target, const struct ha_option_text *given)
{
	struct perf_options *o = target;

	o->operation = ha_operation_find(given->text);
	if (!o->operation)
		fprintf(stderr, "ha perf: unknown operation '%s'; `ha perf --help` lists them\n",
			given->text);
	return o->operation != NULL;
}

static void print_operations(FILE *out)
{
	fprintf(out, "\noperations:\n");
	for (size_t i = 0; i < ha_operations_count; i++)
		fprintf(out, "  %-14s %s\n", ha_operations[i].name, ha_operations[i].help);
}

/* ---- the table ---- */

#define HA_TARGET struct perf_options

/* enum ha_protocol_choice */
static const char *const protocols[] = { "auto", "simple", "ll", NULL };

static const struct ha_option rows[] = {
	{ "op", 'o', "OP,...", "sum prod max min avg or all (sum)",
	  HA_CALL(take_redops, "sum, prod, max, min or avg with commas between, or all") },
	{ "plugin", 0, "NAME",
	  "path, library, or X for libnccl-net-X.so (libnccl-net-ha.so beside ha)",
	  HA_TEXT(plugin) },
	{ "vs", 0, "NAME", "take turns with this plugin and print both and their ratios",
	  HA_TEXT(versus) },
	{ "net-version", 0, "6-12", "version of the interface (the highest the plugin has)",
	  HA_NUMBER(net_version, 6, 12) },
	{ "vs-net-version", 0, "6-12", "the same for --vs", HA_NUMBER(versus_version, 6, 12) },
	{ "gin-version", 0, "11-17",
	  "version of the one-sided table: put, putsignal, get, moe (the highest)",
	  HA_NUMBER(gin_version, 11, 17) },
	{ "dev", 0, "N|N+M|all",
	  "device of every rank, one fused of several, or its channels take all in turn (rank "
	  "modulo devices)",
	  HA_CALL(take_devices, "the number of a device, several with + between, or all") },
	{ "channels", 0, "N", "parallel channels that share the data (1)",
	  HA_NUMBER(channels, 1, 64) }, /* NCCL's MAXCHANNELS */
	{ "group", 0, "N",
	  "channels that share a connection with grouped receives (alltoall, sendrecv: all; else "
	  "1)",
	  HA_NUMBER(group, 1, HA_PLUGIN_MAX_GROUP) },
	{ "steps", 0, "N", "messages in flight per channel (8)",
	  HA_NUMBER(steps, 1, HA_MAX_STEPS) },
	{ "buffsize", 0, "SIZE",
	  "buffer of a channel, a slice is a step's share of it (4M; point to point 1M)",
	  HA_SIZE(buffer_bytes, 4096, UINT64_C(1) << 46) },
	{ "protocol", 0, "NAME",
	  "simple, ll (flags in the data, receive completion optional), auto (auto)",
	  HA_CHOICE(protocol, protocols) },
	{ "shuffle", 0, NULL, "test requests out of order", HA_FLAG(shuffle) },
	{ "flush", 0, NULL, "flush after every receive, also when the plugin does not ask for it",
	  HA_FLAG(flush) },
	{ "time-test", 0, NULL,
	  "how long each call of the plugin's test() takes: p50, p99, p99.9, longest",
	  HA_FLAG(time_test) },
	{ "input", 0, "FILE", "elements of this file (raw, .npy or .safetensors) as data",
	  HA_TEXT(input) },
	{ 0 },
};

static const struct ha_option operands[] = {
	{ "OPERATION", 0, NULL, NULL, HA_CALL(take_operation, NULL) },
	{ 0 },
};

static const struct ha_program program = {
	.name = "ha perf",
	.synopsis = "OPERATION [OPTIONS]",
	.about = "Drives a NCCL net plugin over host memory as NCCL's proxy does, and compares "
		 "every element of the result "
		 "with an independent computation.",
	.options = { ha_run_option_rows, rows },
	.operands = operands,
	.needed = 1,
	.notes = "Exit status: 0 all right, 1 wrong data or failure, 2 called wrongly.",
	.print_notes = print_operations,
};

/* ---- what only makes sense together ---- */

static const char *name_unknown_to_tables(const struct perf_options *o)
{
	if (o->versus && o->operation->collnet)
		return "--vs";
	if (o->run.timeline)
		return "--timeline";
	if (o->run.compute_ns)
		return "--compute";
	if (o->run.json)
		return "--json";
	if (o->input)
		return "--input";
	return o->time_test ? "--time-test" : NULL;
}

/* What only the plans of the other operations know. */
static int check_collnet(const struct perf_options *o)
{
	const struct ha_run_options *run = &o->run;

	if (run->types_count != 1 || strcmp(run->types[0]->name, "float") ||
	    run->redops_count != 1 || run->redops[0] != HA_SUM)
		return ha_program_refuse(&program, "collnet is the sum of float, nothing else");
	return 0;
}

/* Of operations that a table of their own does. */
static int check_other_table(const struct perf_options *o)
{
	const char *unknown = name_unknown_to_tables(o);

	if (unknown)
		return ha_program_refuse(&program, "%s does not know %s", o->operation->name,
					 unknown);
	if (o->dev == HA_DEV_ALL || o->dev == HA_DEV_FUSED)
		return ha_program_refuse(&program, "%s takes one device", o->operation->name);
	if (o->operation->one_sided && !o->run.iters && !o->run.duration_ns)
		return ha_program_refuse(&program, "%s measures nothing with -n 0",
					 o->operation->name);
	return o->operation->collnet ? check_collnet(o) : 0;
}

static int check_options(struct perf_options *o)
{
	const struct ha_launch_options *l = &o->run.launch;
	int err = ha_run_options_check(&o->run, &program, o->operation->layout->reduces);

	if (err)
		return err;
	if (l->rank < 0 && l->ranks == 1)
		return ha_program_refuse(&program, "one rank alone has no peer: --ranks 2 or more");
	if (o->run.root && l->ranks && o->run.root >= l->ranks)
		return ha_program_refuse(&program, "--root is not one of the ranks");
	if (o->run.duration_ns && o->versus)
		return ha_program_refuse(&program, "--duration does not go with --vs");
	return o->operation->collnet || o->operation->one_sided ? check_other_table(o) : 0;
}

int perf_options_parse(struct perf_options *o, int argc, char **argv)
{
	int result;

	*o = (struct perf_options) { .dev = HA_DEV_BY_RANK, .channels = 1, .steps = 8 };
	ha_run_options_default(&o->run, program.name);
	result = ha_options_parse(&program, argc, argv, o);
	return result ? result : check_options(o);
}
