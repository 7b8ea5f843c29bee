/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lag.h - a path that works and is far too slow becomes the standby while it stays so
 *
 * For connections whose data rails are on one device; what shares over several finds out by itself
 * (adaptive.h). With each heartbeat the owner measures some messages from post to completion, one
 * at a time, of many connections after more messages: the only ones that do not go the short way
 * through send.c. Nothing else of this is on the path of a message.
 *
 * WATCH: the path takes HA_NCCL_SLOW_FACTOR times as long as it used to (past.h): COMPARE.
 *
 * COMPARE: messages go over it and over another path by turns. It takes as many times as long as
 * that one, too: the traffic moves, AWAY. Else the peer, the host or the fabric is slow; what it
 * takes now is what it is compared with from now on.
 *
 * AWAY: the other path carries; now and then a message goes over the slow one. When eight in a row
 * (16, then 32, where it was slow again within ten minutes) are within half of the factor, or when
 * the traffic is as slow on the other path, it carries again.
 *
 * A move is no failover: nothing is fenced or posted again, what is on its way arrives. At most
 * HA_NCCL_SLOW_MOVES a minute; after a comparison without a result none for a minute, then two, up
 * to 16.
 *
 * The sender decides. Its heartbeat on the other path says what it wants there, keys or the
 * clear-to-sends too (wire.h, ha_heartbeat.still), and the receiver follows.
 */
#ifndef HA_BALANCE_LAG_H
#define HA_BALANCE_LAG_H

#include "plugin/balance/past.h"

#include <stdbool.h>
#include <stdint.h>

struct ha_bundle;
struct ha_device;
struct ha_rail;

#define HA_LAG_WINDOW 16 /* messages by which the present duration is judged */
#define HA_LAG_FEW 8     /* fewer, where all of them agree */

/* In the heartbeat's word, above the count of posts. */
#define HA_LAG_WANTS_KEYS (UINT64_C(1) << 32)
#define HA_LAG_CARRIES (UINT64_C(2) << 32)

enum ha_lag_state { HA_LAG_WATCH, HA_LAG_COMPARE, HA_LAG_AWAY };

struct ha_lag {
	/* Owner, inside: */
	bool armed; /* the next message may be measured */
	bool out;   /* a message is being measured */
	bool probe; /* the next goes over the slow path */
	uint8_t rail, entry;
	uint8_t wanted; /* more of them */
	uint64_t at, queued;
	/* Driver, with the bundle taken: */
	bool on;
	bool verified;      /* AWAY: it is better there */
	uint8_t news;       /* mask of the rails whose next heartbeat says it: it goes now */
	uint8_t state;      /* enum ha_lag_state */
	uint8_t home;       /* mask of the rails that carry when all is well */
	uint8_t other;      /* the rail that it is compared with, or that carries instead */
	uint8_t keys;       /* mask of the rails without weight that need keys; at either end */
	uint32_t beside[2]; /* work requests of other connections on either device */
	const struct ha_device *dev; /* whose past it is */
	struct ha_past past;
	struct ha_past_window side[2]; /* home, and the other */
	uint32_t slow;                 /* AWAY: so slow was it; sixteenths */
	uint64_t since, look_at;
	uint64_t asked; /* messages that had been sent when some were last to be measured */
	uint64_t rest_until, rest;
	uint64_t probe_at, pause;
	uint64_t back_at; /* when it carried again; 0: never left */
	uint8_t returns;  /* AWAY: so many quick messages in a row take it back */
	uint32_t judged;  /* of side[0] */
	uint64_t minute;  /* when the minute began */
	unsigned moves;   /* in that minute */
};

/* The connection is launched, with its shares. */
void ha_lag_join(struct ha_bundle *b);
/* policy.c: who carries what has changed. */
void ha_lag_roles(struct ha_bundle *b);
/* policy.c: rails that are to be polled though they have no weight; a mask. */
unsigned ha_lag_polled(const struct ha_bundle *b);
/* Driver: what is to be done with what was measured? */
void ha_lag_step(struct ha_bundle *b, uint64_t now);
/* It has no weight, and what it was given may still stand in front of its heartbeats. */
bool ha_lag_rests(const struct ha_bundle *b, const struct ha_rail *r);

/* Owner: over which rail does a message go that is measured? 0: none; else a mask. */
unsigned ha_lag_choose(const struct ha_bundle *b);
/* It is about to be posted there; its stripe, called after the rail, is complete. */
void ha_lag_begin(struct ha_bundle *b, unsigned rail, unsigned entry, uint64_t bytes);
void ha_lag_done(struct ha_bundle *b, unsigned stripe, unsigned entry);

/* The heartbeat's word on this rail. */
uint64_t ha_lag_heartbeat(const struct ha_bundle *b, const struct ha_rail *r);
/* Receiver: and what the sender's says. */
void ha_lag_read(struct ha_bundle *b, const struct ha_rail *r, uint64_t word);

/* ---- parts ---- */

/* HA_NCCL_SLOW_FACTOR in sixteenths. */
uint32_t ha_lag_factor(const struct ha_bundle *b);
static inline unsigned ha_lag_first(unsigned mask)
{
	return (unsigned)__builtin_ctz(mask);
}
/* The next message may be measured, or not: only what may be is looked at in send.c. */
void ha_lag_arm(struct ha_bundle *b, bool on);
void ha_lag_begin_state(struct ha_lag *g, enum ha_lag_state state, uint64_t now);

#endif
