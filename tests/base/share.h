/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * share.h - a time limit that tells a defect from a machine that was busy with something else
 *
 * Only for what must come soon and cannot be told from what comes late by anything but time. The
 * measure is what everybody else used of the processors meanwhile: a test that turns in circles by
 * itself does not excuse itself.
 */
#ifndef HA_TESTS_BASE_SHARE_H
#define HA_TESTS_BASE_SHARE_H

/* of a test that could not decide; scripts/run-tests runs it again, alone */
#define SHARE_BUSY_STATUS 75
/* more than this part of all processors' time for others: the limit says nothing */
#define SHARE_OTHERS_MAX 0.5

struct share {
	double all_s;  /* time that all processors had, idle or not, */
	double idle_s; /* of it idle */
	double own_s;  /* this process, its threads, and processes that descend from it */
};

struct share share_read(void);
/* What others used since `before`, of all that the processors had: 0 to 1. */
double share_of_others(const struct share *before);
/*
 * Returns when `took_s` is within the limit. Otherwise ends the program: with "machine too busy:
 * ..." and SHARE_BUSY_STATUS when others had more than SHARE_OTHERS_MAX, else with a line that says
 * what came late, and 1.
 */
void share_check_limit(const struct share *before, const char *what, double took_s, double limit_s);

#endif
