/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_JOB_ROW_JSON_H
#define HAWSER_JOB_ROW_JSON_H

#include <jansson.h>

struct ha_rows;
struct ha_run_options;

/*
 * row_json - the fields of --json that all programs give. Times are microseconds, bandwidths GB/s
 * (10^9 bytes).
 */

/* "results", "wrong", "avg_busbw" and, with two sides, "ratio" into the object. */
void ha_rows_put(json_t *object, const struct ha_rows *rows, int sides);

/* "iters", "duration_s", ... */
void ha_run_options_put(json_t *object, const struct ha_run_options *run);

/* To run->json_file or standard output; takes the object. 0 or -EIO with the fault recorded. */
int ha_json_write(json_t *object, const struct ha_run_options *run);

#endif
