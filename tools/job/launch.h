/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_JOB_LAUNCH_H
#define HAWSER_JOB_LAUNCH_H

#include <stdbool.h>

#include "tools/job/cues.h"

struct ha_place;

/* Which ranks there are and what goes on beside them. */
struct ha_launch_options {
	const char *program;    /* "ha perf": the first words of every line */
	int ranks;              /* 0: by the launcher's environment, else forked here */
	int rank;               /* -1: by the environment */
	const char *rendezvous; /* host:port or NULL */
	int timeout_s;          /* for the ranks to meet, and for what does not move */
	struct ha_cue cues[HA_CUES];
	int cues_count;
	bool interruptible; /* ^C reaches rank 0, which ends the measurement in order */
};

/* Exit status of a rank and of the program. */
enum ha_exit {
	HA_EXIT_OK = 0,
	HA_EXIT_WRONG = 1, /* wrong bytes, or a failure */
	HA_EXIT_USAGE = 2,
	HA_EXIT_FAILED = 3,   /* of a forked rank: it failed, its last words say why */
	HA_EXIT_FOLLOWED = 4, /* of a forked rank: it left because another one did */
};

/* What one rank does; context is the caller's. */
typedef enum ha_exit (*ha_rank_body)(const void *context, const struct ha_place *place);

/*
 * Runs the body as N forked ranks (options->ranks), or as the one rank that the environment of
 * mpirun, torchrun or srun says this process is. Forked ranks are watched: when one dies, that is
 * reported and the others are ended within seconds.
 * Returns the program's exit status.
 */
int ha_launch(const struct ha_launch_options *options, ha_rank_body body, const void *context);

#endif
