/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * operation.h - what an algorithm asks of a protocol: one chunk received, combined, sent, kept
 *
 * An algorithm is a function that gives a lane's operations one after the other. It knows nothing
 * of protocols; a protocol executes an operation slice by slice and can stop between any two.
 */
#ifndef SOFTCUDA_NCCL_OPERATION_H
#define SOFTCUDA_NCCL_OPERATION_H

#include <stddef.h>

enum operation_flags {
	OPERATION_RECV = 1 << 0, /* from all of the lane's receiving endpoints */
	OPERATION_SEND = 1 << 1, /* to all of its sending ones */
	/* the user's input is a source, prepared as the reduction says */
	OPERATION_INPUT = 1 << 2,
	OPERATION_STORED = 1 << 3, /* the user's output is a source: what was stored there before */
	OPERATION_STORE = 1 << 4,  /* the user's output is a destination */
	OPERATION_FINISH = 1 << 5, /* the result is complete: finish it as the reduction says */
	/* The buffers of peers may be used directly where the endpoint is open for that. */
	OPERATION_DIRECT_RECV = 1 << 6,
	OPERATION_DIRECT_SEND = 1 << 7,
	OPERATION_DIRECT = OPERATION_DIRECT_RECV | OPERATION_DIRECT_SEND,
};

struct operation {
	unsigned flags;
	/* Indices of elements in the user's buffers. `source` also in a peer's that is read,
	 * `destination` in a peer's that is written. */
	ptrdiff_t source;
	ptrdiff_t destination;
	ptrdiff_t count; /* elements; may be 0: the counters move all the same */
	ptrdiff_t limit; /* of a scatter or gather: elements of all peers together */
};

/* Where an algorithm stands. Counts and offsets in elements. */
struct cursor {
	ptrdiff_t total;    /* of the whole collective, all channels */
	ptrdiff_t start;    /* first element of this channel */
	ptrdiff_t count;    /* elements of this channel */
	ptrdiff_t chunk;    /* elements of a full chunk */
	ptrdiff_t position; /* of the current round, from `start` */
	int step;           /* within the round */
};

#endif
