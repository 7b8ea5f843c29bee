/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * one_sided.h - what a one-sided connection has beside a bundle: windows instead of clear-to-sends
 *
 * A put is a message like any other: a slot, an immediate that identifies it, stripes over rails,
 * the fence's account of what arrived. Two things differ. Its address comes from a window that the
 * receiver has offered, not from a clear-to-send; so all slots of the receiver are open from the
 * start, and a count of those it has taken says how far the sender may run ahead. And where a
 * message has its sizes, a put has a record, which the receiver takes in the order of the slots,
 * each once.
 */
#ifndef HA_TRANSFER_ONE_SIDED_H
#define HA_TRANSFER_ONE_SIDED_H

#include "plugin/bundle.h"

/* So many messages are taken before the sender is notified. */
#define HA_ROOM_STEP (HA_SLOTS / 4)

/* A window of the peer's, as the sender knows it. size 0: it does not. */
struct ha_peer_window {
	uint64_t addr, size;
	uint32_t rkey[HA_MAX_RAILS]; /* by rail; 0 = not yet, or not on that rail's device */
};

/* Where a slot's data goes, for as long as it may be posted again. */
struct ha_put_slot {
	uint32_t window;
	uint64_t offset;
	uint8_t record[HA_RECORD_SIZE]; /* first byte 0: none */
};

/* Sender's. Windows are written by the driver with the bundle taken. */
struct ha_puts {
	uint64_t room; /* messages below this absolute index may be sent, as far as is known */
	unsigned nwindows;
	struct ha_peer_window *window; /* by number */
	struct ha_put_slot slot[HA_SLOTS];
};

struct ha_offered {
	uint32_t window;
	struct ha_mr *mr; /* NULL: withdrawn */
};

/* Receiver's. `offered` under registered.list_lock. */
struct ha_takes {
	uint64_t taken; /* every message below has been handed out */
	unsigned noffered, room;
	struct ha_offered *offered; /* in the order in which they were offered */
};

/* A connection of this kind gets its part of the memory; gives it back, if it has any. */
int ha_one_sided_new(struct ha_bundle *b);
void ha_one_sided_free(struct ha_bundle *b);

/* take.c: every slot is open; before the first message. */
void ha_takes_prepare(struct ha_recv *c);
/* put.c: room for a window of this number. -ENOMEM. */
int ha_puts_grow(struct ha_puts *p, uint32_t window);

/* send.c: post a put whose slot is filled; with_record: its record goes with it. -EAGAIN: not now.
 */
int ha_send_post_put(struct ha_send *s, struct ha_send_slot *slot, bool with_record);
/* send.c: no room, no rail or no keys: the driver is asked to look now and then. Returns 0. */
int ha_send_not_now(struct ha_send *s);
/* send.c: nothing can be sent; without a service thread somebody must look why. */
void ha_send_not_yet(struct ha_send *s);
/* delivery.c: the largest count that the receiver has written. */
uint64_t ha_delivery_count(const struct ha_send *s);

#endif
