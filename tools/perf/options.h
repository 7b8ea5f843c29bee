/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_PERF_OPTIONS_H
#define HAWSER_PERF_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/perf/datatype.h"

struct ha_operation;

#define HA_DEV_BY_RANK -1 /* local rank modulo number of devices */
#define HA_DEV_FUSED   -3 /* one device that the plugin makes of several */
#define HA_FUSED_MAX   8
#define HA_DEV_ALL     -2 /* the channels of a rank take the devices in turn */

#define HA_CUES 64 /* most commands of --at */

/* A shell command at a moment of the measurement. */
struct ha_cue {
	int64_t at_ns;
	const char *command;
};

enum ha_protocol_choice { HA_PROTOCOL_AUTO, HA_PROTOCOL_SIMPLE, HA_PROTOCOL_LL };

/* What `ha perf` was asked to do. Sizes are bytes. */
struct ha_options {
	const struct ha_operation *operation;
	size_t min_bytes, max_bytes;
	size_t step_bytes; /* 0: multiply by step_factor instead */
	double step_factor;
	int iters, warmup, checks;
	bool check_all; /* verify every timed iteration too */
	int64_t duration_ns; /* 0: measure iters iterations */
	int check_every; /* of a run by duration: every how many iterations one is verified; 0: none */
	const char *timeline; /* file, or NULL */
	int64_t step_ns; /* of the timeline's buckets */
	struct ha_cue cues[HA_CUES];
	int cues_count;
	const struct ha_datatype *types[16];
	int types_count;
	enum ha_redop redops[HA_REDOPS];
	int redops_count;
	int root;
	int average; /* nccl-tests' -a: time of 0 rank 0, 1 the average, 2 the fastest, 3 the slowest rank */
	int timeout_s;

	int ranks; /* 0: by the launcher's environment, else forked here */
	int rank; /* -1: by the environment */
	const char *rendezvous; /* host:port or NULL */

	const char *plugin, *versus;
	int net_version, versus_version;
	int dev; /* or HA_DEV_... */
	int fused[HA_FUSED_MAX], nfused; /* HA_DEV_FUSED: of these */
	int channels;
	int group; /* channels that share a connection; 0: the operation's default */
	int steps; /* in flight per channel */
	size_t buffer_bytes; /* of a channel, all steps together; 0: the operation's default */
	enum ha_protocol_choice protocol;
	bool shuffle, flush;
	bool in_place;
	bool time_test; /* measure every call of test() */

	uint64_t seed;
	const char *input;
	bool json;
	const char *json_file; /* NULL: standard output instead of the table */
};

/*
 * Parses the arguments after `ha perf`. 0: go; 1: help was printed, done; -EINVAL: a line saying what is wrong was
 * printed.
 */
int ha_options_parse(struct ha_options *options, int argc, char **argv);

/* "10s", "1.5ms" or, in seconds, "2" to nanoseconds; false when it is no time. */
bool ha_time_parse(const char *text, int64_t *ns);

/* "64M" to bytes; false when it is no size. */
bool ha_size_parse(const char *text, size_t *bytes);

#endif
