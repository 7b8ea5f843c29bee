/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_JOB_TABLE_H
#define HAWSER_JOB_TABLE_H

#include <stdbool.h>

struct ha_row;
struct ha_rows;
struct ha_run_options;

/*
 * table - the report on standard output, in nccl-tests' columns and some more; rank 0 only. With
 * two sides every row has a line for each, A and B, and one with their ratios.
 */

/*
 * "minBytes 8 maxBytes 64 step: 2(factor) warmup iters: ... validation: ..." without the end of the
 * line.
 */
void ha_table_settings(const struct ha_run_options *run);
void ha_table_columns(int sides);
/* The lines of one side, and of the ratios. */
void ha_table_row(const struct ha_row *row, int side, int sides);
void ha_table_ratios(const struct ha_row *row);
void ha_table_footer(const struct ha_run_options *run, const struct ha_rows *rows, int sides);

#endif
