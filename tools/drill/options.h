/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_DRILL_OPTIONS_H
#define HAWSER_DRILL_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#define DRILL_NAMES 16 /* most devices of --nics */

enum drill_program { DRILL_PERF, DRILL_NCCL };

struct drill_options {
	bool software;        /* a job of our own on software NICs */
	bool watch;           /* a job that runs */
	uint64_t job;         /* its number; 0: the newest */
	bool take_ports;      /* real ports may be taken down */
	bool default_route;   /* also the one that the default route leads over */
	bool cut, drop, rate; /* the faults of software NICs that were asked for; none: all */
	const char *nics[DRILL_NAMES];
	unsigned nics_count; /* 0: all of the job's first process */
	bool rails;
	/* the job of our own */
	int program; /* enum drill_program */
	int ranks;
	const char *size; /* of its messages */
	uint32_t drop_percent;
	uint64_t rate_mbs; /* 0: a tenth of what the NIC carried before */
	int64_t before_ns, hold_ns, recovery_ns;
	const char *json, *png;
};

/* As ha_options_parse(). */
int drill_options_parse(struct drill_options *o, int argc, char **argv);

#endif
