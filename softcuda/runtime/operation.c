/* SPDX-License-Identifier: BSD-3-Clause */
#include "softcuda/runtime/operation.h"

#include <stdlib.h>

void *create_operation(size_t size, enum operation_kind kind,
		       void (*run)(const struct operation *operation))
{
	struct operation *operation = calloc(1, size);
	if (operation == NULL)
		return NULL;
	atomic_store_explicit(&operation->references, 1, memory_order_relaxed);
	operation->kind = kind;
	operation->run = run;
	return operation;
}

static void run_nothing(const struct operation *operation)
{
}

struct operation *create_empty_operation(void)
{
	struct operation *operation =
		create_operation(sizeof(*operation), OPERATION_EMPTY, run_nothing);
	if (operation != NULL)
		operation->brief = true;
	return operation;
}

void release_operation(struct operation *operation)
{
	if (operation == NULL)
		return;
	if (atomic_fetch_sub_explicit(&operation->references, 1, memory_order_acq_rel) != 1)
		return;
	if (operation->clean != NULL)
		operation->clean(operation);
	free(operation);
}
