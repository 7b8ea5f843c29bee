/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_PERF_DATASET_H
#define HAWSER_PERF_DATASET_H

#include <stddef.h>
#include <stdint.h>

#include "tools/job/payload.h"

struct ha_bench;
struct ha_job;

/*
 * dataset - what a rank contributes to an operation, and what must come out
 *
 * A run that verifies every iteration at full speed has several sets of data ready, each with the
 * result that it must give, and takes them in turn. Their number is prime, so that old contents of
 * a slot are never what is expected there:
 * slots come round in powers of two.
 */

#define HA_POISON 0xa5 /* what buffers hold before a verified iteration */

struct ha_payload ha_dataset_payload(const struct ha_bench *bench, const struct ha_job *job,
				     uint64_t seed);

/* Poisons everything, then writes what this rank contributes. */
void ha_dataset_fill(const struct ha_job *job, const struct ha_payload *payload);

/* How many elements of the result are wrong. */
uint64_t ha_dataset_verify(const struct ha_job *job, const struct ha_payload *payload);

struct ha_datasets {
	int count;
	size_t send_bytes, recv_bytes;
	char *memory; /* count times both */
	size_t memory_bytes;
};

/* 0 or -ENOMEM with the fault recorded. */
int ha_datasets_open(struct ha_datasets *sets, const struct ha_job *job);
void ha_datasets_close(struct ha_datasets *sets);

char *ha_datasets_send(const struct ha_datasets *sets, int k);
char *ha_datasets_result(const struct ha_datasets *sets, int k);

#endif
