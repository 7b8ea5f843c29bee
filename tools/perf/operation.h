/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_PERF_OPERATION_H
#define HAWSER_PERF_OPERATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/job/datatype.h"
#include "tools/job/layout.h"

/*
 * operation - the collectives, as sequences of steps between neighbours
 *
 * An operation gives every channel one or more plans. A plan is what one thread block of NCCL does:
 * a sequence of actions, each of which takes data (from the user's buffer, from the network, or the
 * reduction of both) and puts it (into the user's buffer, into the network, or both).
 */

#define HA_LINK_SEND 1u
#define HA_LINK_RECEIVE 2u

/* One run of an operation, as seen by one rank. Elements, unless bytes are named. */
struct ha_shape {
	int rank, ranks, root, channels;
	const struct ha_datatype *type;
	enum ha_redop redop;
	/*
	 * what one rank contributes or gets: all of it (all-reduce) or a rank's part (all-gather)
	 */
	size_t block;
	size_t slot_bytes; /* payload of one step */
	int steps;         /* steps in flight */
	const char *send;
	char *recv;
};

struct ha_action {
	bool receive, send;
	bool reduce; /* what is received is reduced with src */
	bool finish; /* the reduction is complete here (avg divides) */
	const char *src;
	char *dst; /* NULL: the data only passes through */
	size_t bytes;
};

struct ha_plan {
	int from, to;        /* peers, -1: none */
	size_t first, count; /* the channel's part of the block */
	uint64_t actions;
	void (*action)(const struct ha_shape *shape, const struct ha_plan *plan, uint64_t k,
		       struct ha_action *action);
};

/* Operations of NCCL's one-sided tables (onesided.c). */
enum ha_one_sided {
	HA_TWO_SIDED,
	HA_ONE_SIDED_PUT,
	HA_ONE_SIDED_PUTSIGNAL,
	HA_ONE_SIDED_GET,
	HA_ONE_SIDED_MOE,
};

struct ha_operation {
	const char *name, *help;
	const struct ha_layout *layout;
	bool point_to_point; /* small slices; channels to one peer share a connection */
	bool half_trip; /* an iteration is two messages one after the other: times are halved */
	bool raw;       /* always the simple protocol: the size is what travels */
	/* the plugin's collnet table does it (collnet.c); nothing below is looked at */
	bool collnet;
	/* its one-sided table does it; nothing below is looked at */
	enum ha_one_sided one_sided;
	/* HA_LINK_* of this rank towards a peer */
	unsigned (*links)(int rank, int ranks, int root, int peer);
	/*
	 * plans of one channel (at most 2 * ranks), given its part of the block; returns how many
	 */
	int (*plans)(const struct ha_shape *shape, size_t first, size_t count,
		     struct ha_plan *plans);
	/* what a rank does for itself before the first step (all-to-all's own part); may be NULL */
	void (*prologue)(const struct ha_shape *shape);
};

extern const struct ha_operation ha_operations[];
extern const size_t ha_operations_count;

const struct ha_operation *ha_operation_find(const char *name);

struct ha_extent ha_shape_extent(const struct ha_shape *shape);

/* Largest number of bytes an action of this shape moves. Decides between the protocols. */
size_t ha_operation_action_bytes(const struct ha_operation *operation,
				 const struct ha_shape *shape);

#endif
