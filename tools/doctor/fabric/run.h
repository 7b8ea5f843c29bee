/* SPDX-License-Identifier: BSD-3-Clause */
/* run.h - `ha doctor --fabric`: what each rank does */
#ifndef HAWSER_FABRIC_RUN_H
#define HAWSER_FABRIC_RUN_H

#include "tools/doctor/fabric/probe.h"
#include "tools/job/launch.h"

enum fabric_pairs { FABRIC_PAIRS_AUTO, FABRIC_PAIRS_RAIL, FABRIC_PAIRS_ALL };

struct fabric_options {
	struct ha_launch_options launch;
	struct fabric_probe_options probe;
	int pairs; /* enum fabric_pairs */
	int slow_percent;
	bool failover, json, verbose, strict;
	const char *png; /* NULL: none */
};

void fabric_options_default(struct fabric_options *options);
/* The program's exit status. */
int fabric_run(const struct fabric_options *options);

#endif
