/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_TOOL_NCCL_OPERATION_H
#define HAWSER_TOOL_NCCL_OPERATION_H

#include <stdbool.h>

#include "tools/job/datatype.h"
#include "tools/job/layout.h"
#include "tools/nccl/abi.h"

/* operation - the collectives of `ha nccl`, as calls of NCCL */

/* One call by one GPU. */
struct nccl_call {
	const struct nccl_api *nccl;
	struct ha_extent extent;
	const struct ha_datatype *type;
	int nccl_type, nccl_op;
	const char *send;
	char *recv;
	nccl_comm comm;
	cuda_stream stream;
};

struct nccl_operation {
	const char *name, *help;
	const struct ha_layout *layout;
	const char *function; /* of NCCL, for messages */
	int (*call)(const struct nccl_call *call);
};

extern const struct nccl_operation nccl_operations[];
extern const int nccl_operations_count;

/*
 * By name, underscores aside and with "_perf" behind it or not, as nccl-tests' programs are called;
 * NULL: there is none.
 */
const struct nccl_operation *nccl_operation_find(const char *name);

/* NCCL's number of an element type. */
int nccl_type_of(const struct ha_datatype *type);

#endif
