/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lane.h - messages over one connection of the core, in one direction: a ring of registered slots
 * at either end
 *
 * Messages arrive in the order in which they were sent. Nobody waits for anything: a full ring is
 * "no room", an empty one "nothing there".
 */
#ifndef HA_COLLNET_LANE_H
#define HA_COLLNET_LANE_H

#include "plugin/collnet/wire.h"
#include "plugin/core.h"

#define HA_LANE_SLOTS 16

struct ha_lane_slot {
	struct ha_request *req;
	uint32_t bytes;
};

/* The sending end. Slots from `tail` to `posted` are on their way, those up to `head` wait for the
 * peer's receive. */
struct ha_lane_out {
	struct ha_send *comm;
	struct ha_mr *mr;
	uint8_t *memory;
	size_t slot_bytes;
	uint32_t head, posted, tail;
	int error; /* the peer is gone; what is sent goes nowhere */
	struct ha_lane_slot slot[HA_LANE_SLOTS];
};

/* The receiving end. Slots from `tail` to `head` are announced to the peer. */
struct ha_lane_in {
	struct ha_recv *comm;
	struct ha_mr *mr;
	uint8_t *memory;
	size_t slot_bytes;
	uint32_t head, tail;
	int error;
	struct ha_lane_slot slot[HA_LANE_SLOTS];
};

int ha_lane_out_open(struct ha_lane_out *lane, struct ha_send *comm, size_t slot_bytes);
/* Slots for another message, now. */
unsigned ha_lane_room(const struct ha_lane_out *lane);
/* The next slot: header filled in, payload behind it. NULL: no room. */
struct ha_collnet_msg *ha_lane_next(struct ha_lane_out *lane, uint16_t type, uint64_t id);
/* It goes, with `length` bytes of payload. */
void ha_lane_send(struct ha_lane_out *lane, size_t length);
void ha_lane_out_step(struct ha_lane_out *lane);
/* Nothing waits, nothing is on its way. */
bool ha_lane_out_idle(const struct ha_lane_out *lane);
void ha_lane_out_close(struct ha_lane_out *lane);

int ha_lane_in_open(struct ha_lane_in *lane, struct ha_recv *comm, size_t slot_bytes);
/* The oldest message; NULL: none, or the lane has ended (lane->error). It stays until
 * ha_lane_drop(). -EPROTO in lane->error: not a message. */
const struct ha_collnet_msg *ha_lane_peek(struct ha_lane_in *lane);
void ha_lane_drop(struct ha_lane_in *lane);
void ha_lane_in_close(struct ha_lane_in *lane);

#endif
