/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * endpoint.h - one end of a connection while an operation uses it
 *
 * A connection is a ring of eight steps and two counters that only grow: the sender's `tail` (steps
 * written) and the receiver's `head` (steps read). Where a proxy thread stands in between, `fifo`
 * gives it the bytes of each step.
 */
#ifndef SOFTCUDA_NCCL_ENDPOINT_H
#define SOFTCUDA_NCCL_ENDPOINT_H

#include "softcuda/nccl/layout.h"

#include <stdbool.h>
#include <stddef.h>

/* How the data of an operation that allows it travels. */
enum transfer {
	TRANSFER_BUFFER, /* through the connection's buffer */
	TRANSFER_WRITE,  /* the sender writes into the receiver's user buffer */
	TRANSFER_READ,   /* the receiver reads from the sender's user buffer */
	/* the network reads and writes user buffers: only counters and sizes move */
	TRANSFER_NET,
};

/* Opening a direct endpoint takes an exchange of addresses: OFFER (or EXPECT), then OPEN. */
enum exchange {
	EXCHANGE_NONE,
	EXCHANGE_OFFER,  /* put our address into the slot once it is empty */
	EXCHANGE_EXPECT, /* take the peer's address out of the slot once it is there */
};

struct endpoint {
	struct connection_info *info;
	struct fifo_slot *fifo;
	uint64_t *waited; /* the peer's counter */
	uint64_t *posted; /* our counter */
	uint64_t seen;    /* last value read of the peer's counter */
	uint64_t step;    /* our own position */
	/* the user buffer at the connection's far end, or ours, as `transfer` says */
	char *direct;
	char *offered; /* the address that the peer is to use */
	uint32_t step_bytes;
	int32_t peer;
	enum transfer transfer;
	enum exchange exchange;
	bool sends;
};

/* Open for a protocol; the position is rounded up to a multiple of `round` steps. */
void open_receiver(struct endpoint *endpoint, struct connection_info *info, int peer,
		   unsigned round);
void open_sender(struct endpoint *endpoint, struct connection_info *info, int peer, unsigned round);

/* Write the position back for the next operation. */
void close_endpoint(struct endpoint *endpoint);

/* Can `steps` more steps be read, or written? */
bool endpoint_is_ready(struct endpoint *endpoint, unsigned steps);

/* The slot of the current step. */
static inline struct fifo_slot *endpoint_slot(const struct endpoint *endpoint)
{
	return &endpoint->fifo[endpoint->step % FIFO_STEPS];
}

/* Give the proxy, where there is one, the number of bytes that the current step carries. */
void announce_size(struct endpoint *endpoint, size_t bytes);

/* `steps` steps were read, or written. */
void post_steps(struct endpoint *endpoint, unsigned steps);

#endif
