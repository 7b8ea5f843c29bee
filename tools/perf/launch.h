/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_PERF_LAUNCH_H
#define HAWSER_PERF_LAUNCH_H

struct ha_options;
struct ha_place;

/* Exit status of a rank and of the program. */
enum ha_exit {
	HA_EXIT_OK = 0,
	HA_EXIT_WRONG = 1, /* wrong bytes, or a failure */
	HA_EXIT_USAGE = 2,
	HA_EXIT_FAILED = 3, /* of a forked rank: it failed, its last words say why */
	HA_EXIT_FOLLOWED = 4, /* of a forked rank: it left because another one did */
};

/* What one rank does. */
typedef enum ha_exit (*ha_rank_body)(const struct ha_options *options, const struct ha_place *place);

/*
 * Runs the body as N forked ranks (options->ranks), or as the one rank that the environment of mpirun, torchrun or srun
 * says this process is. Forked ranks are watched: when one dies, that is told and the others are ended within seconds.
 * Returns the program's exit status.
 */
int ha_launch(const struct ha_options *options, ha_rank_body body);

#endif
