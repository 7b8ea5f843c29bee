/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * messages.h - what carries the messages of all failover agents of a process: one TCP connection to
 * each peer, a lane per connection
 *
 * Threads of several devices use it at once; a peer's socket and lanes are under the peer's lock,
 * and nobody waits while he has it: what the socket does not take stays here, and goes out with the
 * next call about that peer. A peer whose socket is gone is dead for all its lanes, once what it
 * had said has been received; so is one that takes nothing for a minute.
 */
#ifndef HA_GPU_HOST_MESSAGES_H
#define HA_GPU_HOST_MESSAGES_H

#include "gpu/failover/agent.h"
#include "gpu/host/bootstrap.h"

struct ha_gpu_messages;

/* Collective: everybody dials everybody of a lower rank. */
int ha_gpu_messages_open(struct ha_gpu_bootstrap *b, unsigned limit_ms,
			 struct ha_gpu_messages **messages);
void ha_gpu_messages_close(struct ha_gpu_messages *messages);
/* The channel of connection `row` with `peer`; exists as long as these messages. 0 or -ENOMEM. */
int ha_gpu_messages_lane(struct ha_gpu_messages *messages, int peer, uint32_t row,
			 struct ha_gpu_channel *channel);
/*
 * What was received on lanes from `row` on is forgotten: their connections are not made after all.
 */
void ha_gpu_messages_drop(struct ha_gpu_messages *messages, uint32_t row);

#endif
