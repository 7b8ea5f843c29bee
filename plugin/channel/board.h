/* SPDX-License-Identifier: BSD-3-Clause */
/* board.h - what is written into the peer's memory beside data, and what the peer has written into
 * ours */
#ifndef HA_CHANNEL_BOARD_H
#define HA_CHANNEL_BOARD_H

#include "plugin/bundle.h"
#include "plugin/channel/wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

union ha_message;

/* What the peer writes to the driver here, and the copy that we write to the peer's board from. */
static inline struct ha_board *ha_bundle_board(const struct ha_bundle *b)
{
	size_t at = b->is_send ? HA_SENDER_BOARD : HA_RECEIVER_BOARD;

	return (struct ha_board *)((char *)b->ring + at);
}
static inline struct ha_board *ha_bundle_staged_board(const struct ha_bundle *b)
{
	return ha_bundle_board(b) + 1;
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
/* A write without a message, for gate.c, which measures its completion. */
int ha_board_probe(struct ha_bundle *b, struct ha_rail *r);

/* Has the peer written a control message? Owner or driver: only looks. */
bool ha_board_has_message(const struct ha_bundle *b);
/* Takes all that are new and whole. */
void ha_board_read(struct ha_bundle *b, ha_message_taker take);

#endif
