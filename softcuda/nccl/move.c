/* SPDX-License-Identifier: BSD-3-Clause */
#include "softcuda/nccl/move.h"

#include <string.h>

/*
 * Data is combined in blocks that stay in the first-level cache between the sources and the
 * destinations.
 */
#define BLOCK_BYTES 4096

static void copy_to_destinations(const struct movement *movement, const char *from, unsigned first,
				 size_t offset, size_t bytes)
{
	for (unsigned i = first; i < movement->destination_count; i++) {
		char *to = movement->destinations[i] + offset;

		if (to != from)
			memmove(to, from, bytes);
	}
}

/* Combine the sources of one block into the first destination. */
static void combine_block(const struct reduction *reduction, const struct movement *movement,
			  size_t offset, size_t count, bool prepare, bool finish)
{
	const struct reduction_functions *functions = reduction->functions;
	char accumulated[BLOCK_BYTES] __attribute__((aligned(64)));
	char *destination = movement->destinations[0] + offset;
	const char *result = movement->sources[0] + offset;

	if (prepare) {
		functions->prepare(accumulated, result, count, reduction->argument);
		result = accumulated;
	}
	for (unsigned i = 1; i < movement->source_count; i++) {
		bool last = i == movement->source_count - 1;
		char *to = last && !finish ? destination : accumulated;

		functions->combine(to, result, movement->sources[i] + offset, count,
				   reduction->argument);
		result = to;
	}
	if (finish)
		functions->finish(destination, result, count, reduction->argument);
	else if (result != destination)
		memmove(destination, result, count * reduction->element_bytes);
}

void move_elements(const struct reduction *reduction, const struct movement *movement, size_t count)
{
	bool prepare = movement->prepare && reduction->functions->prepare;
	bool finish = movement->finish && reduction->functions->finish;
	size_t bytes = count * reduction->element_bytes;
	size_t block = BLOCK_BYTES / reduction->element_bytes;

	if (!movement->source_count || !movement->destination_count)
		return;
	if (movement->source_count == 1 && !prepare && !finish) {
		copy_to_destinations(movement, movement->sources[0], 0, 0, bytes);
		return;
	}
	for (size_t done = 0; done < count; done += block) {
		size_t now = count - done < block ? count - done : block;
		size_t offset = done * reduction->element_bytes;

		combine_block(reduction, movement, offset, now, prepare, finish);
		copy_to_destinations(movement, movement->destinations[0] + offset, 1, offset,
				     now * reduction->element_bytes);
	}
}
