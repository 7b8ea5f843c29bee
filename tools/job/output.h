/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_JOB_OUTPUT_H
#define HAWSER_JOB_OUTPUT_H

struct ha_run_options;

/* output - the files that a run writes at its end, looked at before anything is measured */

/*
 * The files of --json and --timeline can be written. 0, or a negative errno with the fault
 * recorded.
 */
int ha_outputs_check(const struct ha_run_options *run);

#endif
