/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pat_schedule.h - which step follows which in PAT, the all-gather and reduce-scatter on binomial
 * trees
 *
 * A rank exchanges data only with ranks at distances that are powers of two, its dimensions. Data
 * that one rank has for all, or all have for one, travel between ranks at distance s along the bits
 * of s. Trees of the upper bits are handled together: `aggregation` of them share the messages of
 * the lower bits, as long as they fit into a message and into the steps of a connection.
 *
 * The order and the offsets are those of the release that the layout is for: NCCL's host side
 * computes from the same schedule how many messages its proxy threads move.
 */
#ifndef SOFTCUDA_NCCL_PAT_SCHEDULE_H
#define SOFTCUDA_NCCL_PAT_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * One piece of data: received, or taken from the user's input; sent, or left in the user's output.
 */
struct pat_step {
	int recv_dimension;    /* -1: nothing is received */
	int send_dimension;    /* -1: nothing is sent */
	ptrdiff_t recv_offset; /* elements from the start of the slot */
	ptrdiff_t send_offset;
	/*
	 * slots ahead of the connection's position: of the receiver (gather), the sender (reduce)
	 */
	unsigned step_offset;
	bool post_recv;  /* the slot has been read completely */
	bool post_send;  /* the slot has been written completely */
	bool final;      /* reduce-scatter: the result is complete */
	ptrdiff_t input; /* index in the user's buffers */
	ptrdiff_t output;
	ptrdiff_t count;
};

/*
 * A phase visits ranks at a number of distances; which, and what comes next, is explained in
 * pat_schedule.c.
 */
enum pat_phase { PAT_LEAVES, PAT_RELAYS, PAT_TOPS_ODD, PAT_TOPS, PAT_RESULT, PAT_DONE };

struct pat_schedule {
	bool gathers;
	int rank;
	int ranks;
	int pairs;       /* ranks rounded up to a power of two */
	int aggregation; /* distances that are visited together */
	int distance;    /* pairs / aggregation: between two of them */
	int per_message; /* of them share a message */
	ptrdiff_t total; /* elements of one rank */
	ptrdiff_t offset;
	ptrdiff_t end;
	ptrdiff_t chunk;
	/* Where it stands. */
	enum pat_phase phase;
	int lower;       /* lower bits of the distances of this phase */
	int scale;       /* of the tops */
	int visit;       /* number within the phase */
	int first_visit; /* of those to the current peer */
	unsigned ahead;  /* complete messages to the current peer */
};

/*
 * bytes_of_message: of a full chunk. offset, end: this channel's elements of each rank's `total`;
 * they are handled in chunks of `chunk`.
 */
void start_pat(struct pat_schedule *schedule, bool gathers, int rank, int ranks,
	       size_t element_bytes, ptrdiff_t total, ptrdiff_t offset, ptrdiff_t end,
	       ptrdiff_t chunk);

/* False: all is done. */
bool next_pat_step(struct pat_schedule *schedule, struct pat_step *step);

#endif
