/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_JOB_FAILURE_H
#define HAWSER_JOB_FAILURE_H

#include "tools/job/launch.h"

struct ha_place;
struct ha_rendezvous;

/*
 * failure - how a rank that cannot go on leaves: it asks whether another rank's end was the cause,
 * informs the others, and says why, in one place only. Returns the exit status of a forked rank.
 * rendezvous may be
 * NULL.
 */
enum ha_exit ha_failure_report(struct ha_rendezvous *rendezvous, const struct ha_place *place,
			       const char *program);

#endif
