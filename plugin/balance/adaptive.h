/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * adaptive.h - HA_NCCL_POLICY=adaptive: messages are cut so that all rails should be done at the
 * same time
 *
 * For each device of a sending connection the owner counts what is posted and not complete, and
 * measures how much completes in how much time in which there was something to do. A message's
 * parts are such that (what is out + the part) / rate is the same for all: a rail that falls behind
 * gets less with the next message, before its rate is known to have changed. One whose part would
 * be less than 1/64 gets nothing, and a small probe now and then, more and more rarely.
 *
 * Rates that were measured together do not say what a rail adds: behind one PCIe port each slows
 * the other. So now and then, for some milliseconds, one of them is left out: each soon after the
 * start, later on all but the one that is missed most. If more arrives without it, it stays out,
 * until a trial with it says otherwise or the others change.
 *
 * Integer arithmetic; the one thing asked of the outside is the clock, for each message that is cut
 * and each part that completes. All of it is the owner's, inside the bundle; a new incarnation is
 * the driver's, with the bundle taken.
 */
#ifndef HA_PLUGIN_ADAPTIVE_H
#define HA_PLUGIN_ADAPTIVE_H

#include "plugin/core.h"

struct ha_bundle;
struct ha_rail;
struct ha_send;

/* How fast something goes. */
struct ha_pace {
	uint64_t bytes, ns; /* completed, and the busy time for it; halved as they grow */
	uint64_t since;     /* the busy time before this is in ns */
	uint64_t out;       /* bytes posted and not complete */
	uint64_t last;      /* bytes that completed last */
	/* Since the last halving, and between it and the one before: */
	/*
	 * the most that was out: fewer bytes than that say nothing, for they may come back in one
	 * burst
	 */
	uint64_t flight[2];
	uint64_t pause[2]; /* the longest in which nothing completed */
	unsigned parts;    /* that bytes and ns are of; halved with them */
	/* parts is never below these: answers that waited in a queue come in bursts */
	unsigned parts_least;
};

/* Bytes have been posted; a part of `bytes` is complete; bytes are lost with their queue pair. */
void ha_pace_posted(struct ha_pace *p, uint64_t bytes, uint64_t now);
void ha_pace_done(struct ha_pace *p, uint64_t bytes, uint64_t now);
void ha_pace_lost(struct ha_pace *p, uint64_t bytes);
/* What was measured does not count any more. */
static inline void ha_pace_forget(struct ha_pace *p)
{
	p->bytes = p->ns = p->parts = 0;
}
/* The most that was out of late. */
static inline uint64_t ha_pace_flight(const struct ha_pace *p)
{
	return p->flight[0] > p->flight[1] ? p->flight[0] : p->flight[1];
}
/* Bytes per 2^20 ns, at least 1. A pause that is twice as long as the longest of late counts
 * already. */
uint64_t ha_pace_rate(const struct ha_pace *p, uint64_t now);

/* The parts of `size` bytes for n paces, of the mask; they add up to size, but for rounding. */
void ha_pace_parts(const uint64_t *rate, const uint64_t *out, unsigned mask, unsigned n,
		   uint64_t size, uint64_t *part);

/* What completed: whether it is enough to compare with. */
struct ha_seen {
	unsigned parts;
	uint64_t bytes;
};

enum ha_trial_stage { HA_TRIAL_NONE, HA_TRIAL_SETTLE, HA_TRIAL_MEASURE };

struct ha_adaptive {
	bool on;
	uint8_t active;                    /* b->active at the last message */
	uint8_t left_out;                  /* devices that trials have shown to be of no use */
	struct ha_pace pace[HA_MAX_RAILS]; /* by the device's first rail, as all masks here */
	uint64_t out[HA_MAX_RAILS];        /* by rail */
	struct {
		uint64_t at, pause; /* the next probe of a device that rests */
	} probe[HA_MAX_RAILS];
	struct ha_pace all;  /* of the connection, outside trials */
	struct ha_seen seen; /* since the last */
	struct {
		uint8_t stage;      /* enum ha_trial_stage */
		uint8_t device;     /* it is left out, or taken in */
		uint64_t at, pause; /* of the next, or of the next stage */
		uint64_t before;    /* rate of all of them */
		uint64_t begun;
		struct ha_seen seen;
		struct ha_pace pace;
	} trial;
	/* rate without this device, as the last trial showed; 0 = not tried */
	uint64_t without[HA_MAX_RAILS];
	uint64_t kept; /* rate of all when something was left out last */
};

/* The connection is launched with its shares. */
void ha_adaptive_join(struct ha_bundle *b);
/* Owner: weights for the next message, of `size` bytes in all. */
void ha_adaptive_cut(struct ha_send *s, uint64_t size);
/* Owner: its stripes have been posted, stripe i of the mask with bytes[i]; one is complete. */
void ha_adaptive_posted(struct ha_bundle *b, unsigned mask, const uint64_t *bytes);
void ha_adaptive_done(struct ha_bundle *b, unsigned stripe, uint64_t bytes);
/* Driver: the rail begins a new incarnation. */
void ha_adaptive_new_incarnation(struct ha_bundle *b, const struct ha_rail *r);

#endif
