/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_JOB_OUTPUT_H
#define HAWSER_JOB_OUTPUT_H

struct ha_run_options;

/* output - the files that a run writes at its end, looked at before anything is measured */

/*
 * The file of that option can be written; NULL: none is asked for. 0, or a negative errno with the
 * fault recorded.
 */
int ha_output_check(const char *option, const char *path);

/* The same for a file that is written beside its old self and renamed. */
int ha_replaced_check(const char *option, const char *path);

/* The same for a picture, which gnuplot draws. */
int ha_picture_check(const char *option, const char *path);

/*
 * The files of --json and --timeline can be written. 0, or a negative errno with the fault
 * recorded.
 */
int ha_outputs_check(const struct ha_run_options *run);

#endif
