/* SPDX-License-Identifier: BSD-3-Clause */
/* move.h - one piece of data from its sources, combined, to its destinations */
#ifndef SOFTCUDA_NCCL_MOVE_H
#define SOFTCUDA_NCCL_MOVE_H

#include "softcuda/nccl/layout.h"
#include "softcuda/nccl/reduce.h"

#define MOVE_MAX (DIRECT_ARITY + 1)

/* An address that is NULL counts for nothing; a destination may be one of the sources. */
struct movement {
	const char *sources[MOVE_MAX];
	char *destinations[MOVE_MAX];
	unsigned source_count;
	unsigned destination_count;
	bool prepare; /* the first source is the user's input */
	bool finish;  /* the result is complete */
};

static inline void add_source(struct movement *movement, const char *address)
{
	if (address)
		movement->sources[movement->source_count++] = address;
}

static inline void add_destination(struct movement *movement, char *address)
{
	if (address)
		movement->destinations[movement->destination_count++] = address;
}

/* Nothing happens where there is no source or no destination. */
void move_elements(const struct reduction *reduction, const struct movement *movement,
		   size_t count);

#endif
