/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * job.h - operations whose result is known: what each rank brings, and what must come out, to the
 * last bit
 */
#ifndef INA_RANK_JOB_H
#define INA_RANK_JOB_H

#include "ina/host/worker.h"

struct job {
	struct ina_op op;
	uint32_t number; /* of the operation: its words differ from any other's */
	unsigned rank, ranks;
	bool done;
	int err;
	uint64_t wrong; /* words */
};

/* The operation `number`, ready for ina_worker_post(). */
void job_begin(struct job *j, uint32_t number, uint8_t coll, uint8_t root, uint32_t packets,
	       unsigned rank, unsigned ranks);

#endif
