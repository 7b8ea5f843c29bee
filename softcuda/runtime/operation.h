/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * operation.h - what a stream executes and what a node of a graph stands for
 *
 * An operation is made once and not changed afterwards, so that a graph can be launched again and
 * again, also while an earlier launch still runs. Kinds with parts of their own begin with this
 * struct.
 */
#ifndef SOFTCUDA_OPERATION_H
#define SOFTCUDA_OPERATION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum operation_kind {
	OPERATION_KERNEL,
	OPERATION_COPY,
	OPERATION_SET,
	OPERATION_HOST,
	/* writes and waits of 32 or 64 bits in memory, and memory given back in stream order */
	OPERATION_MEMORY,
	OPERATION_EMPTY,
	OPERATION_RECORD, /* of an event: executed by the stream itself, see stream.h */
	OPERATION_WAIT,
};

struct operation {
	_Atomic unsigned references;
	enum operation_kind kind;
	/*
	 * Whether it takes so little time that the thread which asks for it may as well execute it
	 * itself.
	 */
	bool brief;
	void (*run)(const struct operation *operation);
	/* Give back what it owns besides its own memory; may be NULL. */
	void (*clean)(struct operation *operation);
};

/* `size` bytes, zeroed, that begin with an operation of one reference. NULL without memory. */
void *create_operation(size_t size, enum operation_kind kind,
		       void (*run)(const struct operation *operation));
/* One that does nothing: a place in the order. */
struct operation *create_empty_operation(void);

static inline void hold_operation(struct operation *operation)
{
	atomic_fetch_add_explicit(&operation->references, 1, memory_order_relaxed);
}

void release_operation(struct operation *operation);

#endif
