/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * direct.h - user buffers that peers, or the network, read and write themselves
 *
 * What makes an endpoint direct, and how addresses are exchanged, differs between NCCL versions:
 * one implementation for each, direct_<version>.c.
 */
#ifndef SOFTCUDA_NCCL_DIRECT_H
#define SOFTCUDA_NCCL_DIRECT_H

#include "softcuda/nccl/lane.h"

/*
 * Choose how the endpoints of a collective's lane travel. Call once they are open and input and
 * output are set.
 */
void choose_collective_transfers(struct lane *lane, const struct work_collective *work,
				 unsigned recv_connection, unsigned send_connection);

/* The same for the one endpoint of a send or a receive. */
void choose_p2p_transfer(struct lane *lane, const struct work_p2p *work);

/* For these two: the network moves the data of this endpoint between user buffers. */
void use_network(struct endpoint *endpoint);

/*
 * The peer is to use `own`, whose address it knows as `as_seen_by_peer`. Nothing happens without a
 * slot for addresses.
 */
void offer_buffer(struct endpoint *endpoint, char *own, char *as_seen_by_peer);

/* The peer will say which buffer of its own is to be used; without a slot it is `registered`. */
void expect_buffer(struct endpoint *endpoint, void *registered);

/* Exchange what is left to exchange with peers; true once it is complete. */
bool exchange_addresses(struct lane *lane);

/* Have peers and the network done all that they do with our buffers? */
bool user_buffers_are_free(struct lane *lane);

#endif
