/* SPDX-License-Identifier: BSD-3-Clause */
/* interrupt.h - ^C ends a measurement of --duration early, and in order */
#ifndef HAWSER_JOB_INTERRUPT_H
#define HAWSER_JOB_INTERRUPT_H

#include <stdbool.h>

struct ha_place;

/*
 * The terminal sends SIGINT to all forked ranks: rank 0 acts on it. A second one ends rank 0. Other
 * ranks that were started from elsewhere end by it, as their launcher expects.
 */
void ha_interrupt_take(const struct ha_place *place);
/* In rank 0: it has come. */
bool ha_interrupted(void);

#endif
