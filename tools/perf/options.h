/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_PERF_OPTIONS_H
#define HAWSER_PERF_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/job/options.h"

struct ha_operation;

#define HA_DEV_BY_RANK -1 /* local rank modulo number of devices */
#define HA_DEV_ALL -2     /* the channels of a rank take the devices in turn */
#define HA_DEV_FUSED -3   /* one device that the plugin makes of several */
#define HA_FUSED_MAX 8

enum ha_protocol_choice { HA_PROTOCOL_AUTO, HA_PROTOCOL_SIMPLE, HA_PROTOCOL_LL };

/* What `ha perf` was asked to do. Sizes are bytes. */
struct perf_options {
	struct ha_run_options run; /* first: its rows are a table of ours */
	const struct ha_operation *operation;

	const char *plugin, *versus;
	int net_version, versus_version;
	int gin_version;                 /* of the one-sided table, of both; 0: the highest */
	int dev;                         /* or HA_DEV_... */
	int fused[HA_FUSED_MAX], nfused; /* HA_DEV_FUSED: of these */
	int channels;
	int group;           /* channels that share a connection; 0: the operation's default */
	int steps;           /* in flight per channel */
	size_t buffer_bytes; /* of a channel, all steps together; 0: the operation's default */
	enum ha_protocol_choice protocol;
	bool shuffle, flush;
	bool time_test; /* measure every call of test() */
	const char *input;
};

/*
 * Parses the arguments after `ha perf`: 0, or as ha_options_parse().
 */
int perf_options_parse(struct perf_options *options, int argc, char **argv);

#endif
