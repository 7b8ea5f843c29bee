/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * function_table.h - which function a batch of works asks for
 *
 * A kernel's name says little: the batch carries the number of the device function. NCCL's host
 * table maps a row, which can be computed from (collective, operator, type, algorithm, protocol),
 * to that number; this is its inverse.
 */
#ifndef SOFTCUDA_NCCL_FUNCTION_TABLE_H
#define SOFTCUDA_NCCL_FUNCTION_TABLE_H

#include "softcuda/nccl/layout.h"
#include "softcuda/nccl/reduce.h"

enum collective {
	COLLECTIVE_SEND_RECV,
	COLLECTIVE_ALL_GATHER,
	COLLECTIVE_BROADCAST,
	COLLECTIVE_BROADCASTS, /* AllGatherV */
	COLLECTIVE_ALL_REDUCE,
	COLLECTIVE_REDUCE,
	COLLECTIVE_REDUCE_SCATTER,
};

enum algorithm {
	ALGORITHM_TREE,
	ALGORITHM_RING,
	ALGORITHM_COLLNET_DIRECT,
	ALGORITHM_COLLNET_CHAIN,
	ALGORITHM_NVLS,
	ALGORITHM_NVLS_TREE,
	ALGORITHM_PAT,
};

struct device_function {
	enum collective collective;
	enum algorithm algorithm;
	enum protocol protocol;
	enum reduction_operator operator;
	enum element_type type;
};

/* Read NCCL's table, once per process. False: the NCCL that this is linked into is not the one the
 * layout is for; one line was printed. */
bool load_function_table(void);

/* NULL for a number that the table does not have. */
const struct device_function *find_function(unsigned number);

#endif
