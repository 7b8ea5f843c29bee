/* SPDX-License-Identifier: BSD-3-Clause */
/* sweep_options.h - what sweep_nccl is to do; its first comment says how each option is called */
#ifndef HA_TESTS_SOFTCUDA_NCCL_SWEEP_OPTIONS_H
#define HA_TESTS_SOFTCUDA_NCCL_SWEEP_OPTIONS_H

#include "softcuda/nccl/reduce.h"

#include <stdbool.h>
#include <stddef.h>

#define RANKS_MAX 16
#define GPUS_MAX 8
#define LIST_MAX 16
/* sum product max min average, and a premultiplied sum by value and by pointer */
#define OPERATORS 7
#define OPERATOR_AVERAGE 4
#define OPERATOR_BY_VALUE 5
#define OPERATOR_BY_POINTER 6

enum operation {
	ALL_REDUCE,
	ALL_GATHER,
	REDUCE_SCATTER,
	REDUCE_ROOT,
	BROADCAST,
	ALLTOALL,
	GATHERV,
	OPERATION_COUNT
};

struct sweep_options {
	const char *library;
	int ranks;
	int gpus;
	int hosts;
	int repeat;
	int group;
	bool registered;
	bool operations[OPERATION_COUNT];
	bool types[ELEMENT_TYPE_COUNT];
	bool operators[OPERATORS];
	size_t sizes[LIST_MAX];
	int size_count;
};

extern const char *const sweep_operation_names[OPERATION_COUNT];

/* Exits with status 2, after one line, when it is called wrongly. */
void sweep_parse_options(struct sweep_options *options, int argc, char **argv);

#endif
