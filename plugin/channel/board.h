/* SPDX-License-Identifier: BSD-3-Clause */
/* board.h - what is written into the peer's memory beside data, and what the peer has written into
 * ours */
#ifndef HA_CHANNEL_BOARD_H
#define HA_CHANNEL_BOARD_H

#include "plugin/channel/wire.h"

#include <stdbool.h>
#include <stdint.h>

struct ha_bundle;
struct ha_rail;
union ha_message;

/* In an end's ring memory: what the peer writes to its driver, and the copy that the end writes to
 * the peer's board from. */
static inline struct ha_board *ha_board_in_ring(void *ring, bool is_send)
{
	return (struct ha_board *)((char *)ring + (is_send ? HA_SENDER_BOARD : HA_RECEIVER_BOARD));
}
static inline struct ha_board *ha_board_staged(void *ring, bool is_send)
{
	return ha_board_in_ring(ring, is_send) + 1;
}

/* Acts on a message of the peer's; the bundle is taken. */
typedef void (*ha_message_taker)(struct ha_bundle *b, const union ha_message *m);

/* All three: 0, -EAGAIN (no room now), or what the device said. */
/* A control message over this rail. */
int ha_board_post(struct ha_bundle *b, struct ha_rail *r, const union ha_message *m);
/* One 8-byte word of our staged board into the peer's; signalled. */
int ha_board_write(struct ha_bundle *b, struct ha_rail *r, uint64_t *word, uint64_t value);
/* Of messages that the NIC is done with: called now and then, at the least once in 2^31 work
 * requests, since counts are compared that wrap. */
void ha_board_settle(struct ha_bundle *b, const struct ha_rail *r);
/* A word that says nothing, for gate.c, which is told of its completion. */
int ha_board_probe(struct ha_bundle *b, struct ha_rail *r);

/* Has the peer written a control message? Owner or driver: only looks. */
bool ha_board_has_message(const struct ha_bundle *b);
/* Takes all that are new and whole. */
void ha_board_read(struct ha_bundle *b, ha_message_taker take);

#endif
