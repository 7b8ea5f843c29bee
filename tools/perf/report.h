/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_PERF_REPORT_H
#define HAWSER_PERF_REPORT_H

#include <stddef.h>
#include <stdint.h>

struct ha_bench;
struct ha_row;
struct ha_rows;

/* Who a rank is, for the header. Gathered by rank 0. */
struct ha_rank_info {
	int32_t pid, dev, speed; /* Mbit/s */
	char host[64];
	char device[64];
};

/*
 * report - the table on standard output, in nccl-tests' columns, and the JSON object; rank 0 only
 */
void ha_report_header(const struct ha_bench *bench, const struct ha_rank_info *ranks);
void ha_report_row(const struct ha_bench *bench, const struct ha_row *row);

/*
 * Writes the object to options->json_file or standard output. 0 or a negative errno, with the fault
 * recorded.
 * Times are microseconds, bandwidths GB/s (10^9 bytes).
 */
int ha_report_json(const struct ha_bench *bench, const struct ha_rank_info *ranks,
		   const struct ha_rows *rows);

#endif
