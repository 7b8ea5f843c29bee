/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_JOB_LAYOUT_H
#define HAWSER_JOB_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>

/*
 * layout - how an operation's data lies in the ranks' buffers, and what must come out
 */

/* One run of an operation, as seen by one rank. */
struct ha_extent {
	int rank, ranks, root;
	/*
	 * elements that one rank contributes or gets: all (all-reduce) or a rank's part
	 * (all-gather)
	 */
	size_t block;
};

/*
 * One piece of the expected result: recv[at..at+count) is rank's data from `from` on, or the
 * reduction's (rank -1).
 */
struct ha_segment {
	size_t at, count, from;
	int rank;
};

struct ha_layout {
	bool reduces;  /* takes -o */
	bool rooted;   /* takes -r */
	bool in_place; /* has an in-place form */
	bool splits;   /* the size is divided by the ranks: block = count / ranks */
	/* bus bandwidth / algorithm bandwidth, from nccl-tests' PERFORMANCE.md */
	double (*bus_factor)(int ranks);
	/* blocks in the send and in the receive buffer of a rank */
	int (*send_blocks)(int ranks);
	int (*recv_blocks)(int ranks);
	/*
	 * elements before the send and the receive buffer, in the one buffer that both share when
	 * in place
	 */
	void (*overlap)(const struct ha_extent *extent, size_t *send_at, size_t *recv_at);
	/* k-th segment of the expected result; false when there are no more */
	bool (*segment)(const struct ha_extent *extent, int k, struct ha_segment *segment);
};

extern const struct ha_layout ha_layout_allreduce, ha_layout_allgather, ha_layout_reducescatter,
	ha_layout_broadcast, ha_layout_reduce, ha_layout_alltoall, ha_layout_sendrecv,
	ha_layout_gather, ha_layout_scatter, ha_layout_pingpong;

/*
 * Elements that a request for `bytes` of elements of the size comes down to: a multiple of the
 * ranks where it splits.
 */
size_t ha_layout_count(const struct ha_layout *layout, int ranks, size_t bytes, size_t element);

/* Of them, those of a block. */
size_t ha_layout_block(const struct ha_layout *layout, int ranks, size_t count);

#endif
