/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lane.h - one of the activities of a channel that run side by side: what a group of warps is on a
 * GPU
 *
 * A ring has one lane, a tree one up and one down, each send and each receive has its own. A lane
 * never waits: it is advanced until it cannot move, and again later. So one thread carries all
 * lanes of all channels of a launch.
 */
#ifndef SOFTCUDA_NCCL_LANE_H
#define SOFTCUDA_NCCL_LANE_H

#include "softcuda/nccl/endpoint.h"
#include "softcuda/nccl/operation.h"
#include "softcuda/nccl/reduce.h"

struct lane;
struct protocol_functions;
struct pat;

/* What became of an attempt to advance. */
enum progress {
	PROGRESS_NONE,  /* waits for a peer */
	PROGRESS_MOVED, /* did something */
	PROGRESS_DONE,  /* nothing is left to do */
};

/*
 * The states of a lane, in order. OPENING: addresses of user buffers are exchanged with peers.
 * RUNNING: operations are executed. CLOSING: waits until peers, or the network, are done with user
 * buffers of ours. DONE:
 * never advanced again.
 */
enum lane_state { LANE_OPENING, LANE_RUNNING, LANE_CLOSING, LANE_DONE };

/* The next operation of a lane; false: there is none. */
typedef bool next_operation_fn(struct lane *lane, struct operation *operation);

/* Moves the data of the current operation where it is cut into pieces; the peers are ready. */
typedef void move_pieces_fn(struct lane *lane);

/* What a channel's lanes share. */
struct lane_context {
	const struct kernel_comm *comm;
	const struct channel *channel;
	int channel_id;
};

/* How far the current operation has come. */
struct slice {
	bool active;      /* there is a current operation */
	unsigned index;   /* slice within the chunk (Simple) */
	ptrdiff_t offset; /* elements done, or lines (LL, LL128) */
	ptrdiff_t size;   /* elements of a slice */
};

struct lane {
	enum lane_state state;
	const struct lane_context *context;
	const struct protocol_functions *protocol;
	next_operation_fn *next;
	move_pieces_fn *move_pieces;
	const void *work; /* the work_collective or work_p2p that the lane belongs to */
	struct work_broadcast *broadcasts;
	struct pat *pat;
	struct reduction reduction;
	char *input;
	char *output;
	ptrdiff_t step_elements;  /* Simple: elements of one step */
	uint8_t slices_per_chunk; /* Simple */
	uint8_t steps_per_slice;  /* Simple */
	bool is_p2p;              /* a send or a receive, no collective */
	/* the network moves all data itself; sizes and counters are all that is left */
	bool offloaded;
	uint8_t recv_count;
	uint8_t send_count;
	struct operation operation;
	struct slice slice;
	struct cursor cursor;
	struct endpoint recv[DIRECT_ARITY];
	struct endpoint send[DIRECT_ARITY];
};

struct protocol_functions {
	enum protocol id;
	/* Try to move a part of the current operation; PROGRESS_DONE: the operation is finished. */
	enum progress (*advance)(struct lane *lane);
	/* Start the operation that was just put into the lane. */
	void (*begin)(struct lane *lane);
};

extern const struct protocol_functions protocol_simple, protocol_ll, protocol_ll128;
/* Slices of the Simple protocol that the lane's move_pieces fills. */
extern const struct protocol_functions protocol_pieces;
/* No data: the operation's count is the number of steps by which the network may go on. */
extern const struct protocol_functions protocol_notify;

/* Peers of a lane: `count` at most; -1 ends the list. */
void open_lane_receivers(struct lane *lane, const int32_t *peers, unsigned count,
			 unsigned connection);
void open_lane_senders(struct lane *lane, const int32_t *peers, unsigned count,
		       unsigned connection);

/* A lane without endpoints, in the state in which they can be opened. */
void init_lane(struct lane *lane, const struct lane_context *context, enum protocol protocol,
	       next_operation_fn *next);

/* Move on as far as one operation or slice. */
enum progress advance_lane(struct lane *lane);

/* Slices of a chunk and steps of a slice in the Simple protocol. */
void set_lane_slices(struct lane *lane, unsigned slices_per_chunk, unsigned steps_per_slice);

#endif
