/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tools/job/parse.h"
#include "tools/perf/mesh.h"
#include "tools/perf/operation.h"
#include "tools/perf/options.h"

#define PROGRAM "ha perf"

enum {
	OPT_PLUGIN = HA_OPTION_OWN,
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
	OPT_INPUT,
	OPT_TIME_TEST,
};

static const struct ha_option table[] = {
	{ "plugin", OPT_PLUGIN, "NAME", "path, library, or X for libnccl-net-X.so (libnccl-net-ha.so beside ha)" },
	{ "vs", OPT_VERSUS, "NAME", "take turns with this plugin and print both and their ratios" },
	{ "net-version", OPT_NET_VERSION, "6-12", "version of the interface (the highest the plugin has)" },
	{ "vs-net-version", OPT_VERSUS_VERSION, "6-12", "the same for --vs" },
	{ "dev", OPT_DEV, "N|N+M|all",
	  "device of every rank, one fused of several, or its channels take all in turn (rank modulo devices)" },
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
	{ "time-test", OPT_TIME_TEST, NULL,
	  "how long each call of the plugin's test() takes: p50, p99, p99.9, longest" },
	{ "input", OPT_INPUT, "FILE", "elements of this file (raw, .npy or .safetensors) as data" },
};

static bool dev_parse(struct ha_options *o, const char *text)
{
	char copy[256], *save, *word;
	int n;

	if (!strcmp(text, "all")) {
		o->dev = HA_DEV_ALL;
		return true;
	}
	o->nfused = 0;
	snprintf(copy, sizeof(copy), "%s", text);
	for (word = strtok_r(copy, "+", &save); word; word = strtok_r(NULL, "+", &save)) {
		if (o->nfused == HA_FUSED_MAX || !ha_int_parse(word, 0, 65535, &n))
			return false;
		o->fused[o->nfused++] = n;
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

static void text_take(struct ha_options *o, int value, const char *text)
{
	switch (value) {
	case OPT_PLUGIN:
		o->plugin = text;
		break;
	case OPT_VERSUS:
		o->versus = text;
		break;
	case OPT_INPUT:
		o->input = text;
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
	}
}

static bool option_take(void *context, int value, const char *text)
{
	struct ha_options *o = context;

	switch (value) {
	case OPT_NET_VERSION:
		return ha_int_parse(text, 6, 12, &o->net_version);
	case OPT_VERSUS_VERSION:
		return ha_int_parse(text, 6, 12, &o->versus_version);
	case OPT_DEV:
		return dev_parse(o, text);
	case OPT_CHANNELS:
		return ha_int_parse(text, 1, 64, &o->channels); /* NCCL's MAXCHANNELS */
	case OPT_GROUP:
		return ha_int_parse(text, 1, HA_PLUGIN_MAX_GROUP, &o->group);
	case OPT_STEPS:
		return ha_int_parse(text, 1, HA_MAX_STEPS, &o->steps);
	case OPT_BUFFER:
		return ha_parse_check(ha_size_parse(text, &o->buffer_bytes) && o->buffer_bytes >= 4096,
				      "a number of bytes from 4K to 64T, as in 64K or 4M");
	case OPT_PROTOCOL:
		return protocol_parse(o, text);
	}
	text_take(o, value, text);
	return true;
}

static bool operation_choose(void *context, const char *name)
{
	struct ha_options *o = context;

	o->operation = ha_operation_find(name);
	return o->operation != NULL;
}

/* --- what only makes sense together -------------------------------------------------------------------------------- */

static const char *collnet_unknown(const struct ha_options *o)
{
	if (o->versus)
		return "--vs";
	if (o->run.timeline)
		return "--timeline";
	if (o->run.json)
		return "--json";
	if (o->input)
		return "--input";
	return o->time_test ? "--time-test" : NULL;
}

/* What only the plans of the other operations know. */
static int collnet_check(const struct ha_options *o)
{
	const struct ha_run_options *run = &o->run;

	if (collnet_unknown(o))
		return ha_complain(PROGRAM, "collnet does not know %s", collnet_unknown(o));
	if (run->types_count != 1 || strcmp(run->types[0]->name, "float") || run->redops_count != 1 ||
	    run->redops[0] != HA_SUM)
		return ha_complain(PROGRAM, "collnet is the sum of float, nothing else");
	if (o->dev == HA_DEV_ALL || o->dev == HA_DEV_FUSED)
		return ha_complain(PROGRAM, "collnet takes one device");
	return 0;
}

static int options_check(const struct ha_options *o)
{
	const struct ha_launch_options *l = &o->run.launch;
	int err = ha_run_options_check(&o->run, o->operation->layout->reduces);

	if (err)
		return err;
	if (l->rank < 0 && l->ranks == 1)
		return ha_complain(PROGRAM, "one rank alone has nobody to talk to: --ranks 2 or more");
	if (o->run.root && l->ranks && o->run.root >= l->ranks)
		return ha_complain(PROGRAM, "--root is not one of the ranks");
	if (o->run.duration_ns && o->versus)
		return ha_complain(PROGRAM, "--duration does not go with --vs");
	return o->operation->collnet ? collnet_check(o) : 0;
}

int ha_options_parse(struct ha_options *o, int argc, char **argv)
{
	const char *names[2 * 16 + 1];
	struct ha_program program = {
		.name = PROGRAM,
		.options = table,
		.options_count = sizeof(table) / sizeof(table[0]),
		.redops = HA_MULSUM,
		.names = names,
		.about = "Drives a NCCL net plugin over host memory as NCCL's proxy does, and compares every element of "
			 "the result\nwith an independent computation.",
		.take = option_take,
		.choose = operation_choose,
	};
	int result;

	*o = (struct ha_options){ .dev = HA_DEV_BY_RANK, .channels = 1, .steps = 8 };
	for (size_t i = 0; i < ha_operations_count; i++) {
		names[2 * i] = ha_operations[i].name;
		names[2 * i + 1] = ha_operations[i].help;
	}
	names[2 * ha_operations_count] = NULL;
	result = ha_run_options_parse(&o->run, &program, o, argc, argv);
	return result ? result : options_check(o);
}
