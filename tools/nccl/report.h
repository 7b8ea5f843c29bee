/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_TOOL_NCCL_REPORT_H
#define HAWSER_TOOL_NCCL_REPORT_H

#include "tools/nccl/rounds.h"
#include "tools/nccl/witness.h"

struct ha_probe;
struct nccl_bench;
struct nccl_environment;

/* report - the table's head and the JSON object of `ha nccl`; rank 0 only */

#define NCCL_GPUS_SHOWN 4 /* of a process, in the report */

/* Who a process is, gathered by rank 0. */
struct nccl_who {
	int pid, gpus, first_rank;
	int devices[NCCL_GPUS_SHOWN];
	char buses[NCCL_GPUS_SHOWN][24];
	char host[64];
	struct nccl_witness witness;
};

/* Of this process. */
void nccl_who_take(struct nccl_who *who, const struct nccl_bench *bench);

struct nccl_report {
	const struct nccl_bench *bench;
	const struct nccl_environment *environment;
	const struct ha_probe *probe;
	struct nccl_who *who; /* of all processes */
	struct ha_rows rows;
	struct nccl_rounds *rounds; /* of each row, with --vs */
};

void nccl_report_header(const struct nccl_report *report);

/* A row, and with --vs its rounds. 0 or -ENOMEM with the fault recorded. */
int nccl_report_add(struct nccl_report *report, const struct ha_row *row);
void nccl_report_row(const struct nccl_report *report, size_t i);

/*
 * The fields of `ha perf --json` and besides "nccl", "cuda", "networks", "environment". 0 or -EIO.
 */
int nccl_report_json(const struct nccl_report *report);

/* "networks": what is known of each side's; also for the file of --timeline. */
json_t *nccl_report_networks(const struct nccl_report *report);

void nccl_report_release(struct nccl_report *report);

#endif
