/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control.h - what the driver knows of a rail beyond its data path: how far its life, or the end of it, has come
 *
 * The state machine is model/README.md's, which a model checker has seen through; drive.c runs it. All of it is the
 * driver's (ctx->drive, and the bundle taken, guard.h), but for what is marked otherwise.
 */
#ifndef HA_CORE_CONTROL_H
#define HA_CORE_CONTROL_H

#include "plugin/channel/wire.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct ha_device;

enum ha_rail_state {
	HA_RAIL_NONE,	 /* not there */
	HA_RAIL_INIT,	 /* queue pair made, peer unknown */
	HA_RAIL_UP,	 /* carries data */
	HA_RAIL_DOWN,	 /* this epoch is closed here */
	HA_RAIL_FENCING, /* nothing new is posted; what was posted is accounted for */
	HA_RAIL_FENCED,	 /* our memory is safe from this life; what the peer has is awaited */
	HA_RAIL_JOIN,	 /* sender: offered; receiver: answered, its queue pair takes data */
	HA_RAIL_PROBE,	 /* sender: pings are out */
};

enum ha_fence_stage {
	HA_FENCE_START, /* suspected; not yet begun */
	HA_FENCE_QUIET, /* receiver: until nothing has come for a moment */
	HA_FENCE_DRAIN, /* in error; until everything is accounted for */
	HA_FENCE_CLOSE, /* only destroying the queue pair ends it for certain */
	HA_FENCE_OVER,	/* nothing of it reaches memory any more */
};

#define HA_PONGS 3 /* answers over the rail itself that prove a life */

/* Slow verbs on a rail that carries nothing: the driver runs them while the bundle is not held; CONNECTING waits for a thread
 * that does (hookup.h). */
enum ha_slow { HA_SLOW_NONE, HA_SLOW_OPEN, HA_SLOW_CONNECT, HA_SLOW_CONNECTING, HA_SLOW_CLOSE, HA_SLOW_TIDY, HA_SLOW_DONE };

enum ha_keys_stage { HA_KEYS_IDLE, HA_KEYS_WANTED, HA_KEYS_REGISTERED };

/* Messages due, by type. */
#define HA_SAY(type) (1u << (HA_MSG_##type))

#define HA_MEETINGS 8 /* the sender's devices that are remembered */

struct ha_meeting {
	uint64_t sender; /* a device of the peer's, as a number; 0 = none */
	struct ha_device *ours; /* the last of ours that was tried with it */
};

struct ha_control {
	uint8_t cause; /* enum ha_event_cause: why this life ends */
	uint8_t stage; /* enum ha_fence_stage */
	uint8_t slow;  /* enum ha_slow */
	uint8_t wish;  /* enum ha_event_cause: somebody wants the rail fenced (events, siblings). Under ctx->drive alone */
	int slow_result;
	bool told;	  /* the peer fences too, or was the first to */
	bool marked;	  /* the drain's marker is posted */
	bool drained;	  /* and has come back */
	bool fenced;	  /* our state of this epoch is in `state` */
	bool local;	  /* the fault is at our own NIC */
	bool acked;	  /* the peer has acted on our RAIL_FENCED of this epoch */
	bool peer_fenced; /* its RAIL_FENCED of this epoch is in peer_state */
	bool by_timeout;  /* silence took it down, its own time-out's or a sibling's */
	bool proven;	  /* it has been up in some life */
	bool working;	  /* up once in this life */
	bool owed;	  /* its failure is not told as survived yet */
	atomic_bool last_receive; /* the queue pair takes no receive any more (device event) */

	uint32_t say;	    /* messages due now, HA_SAY() */
	uint32_t said;	    /* of this life, at least once */
	uint64_t repeat_at; /* RAIL_FENCED or RAIL_OFFER once more; 0 = nothing to repeat */
	uint32_t repeats;
	uint32_t mails_out; /* mails posted on this rail in this life */
	uint32_t mail_mark[HA_MAILS]; /* the send queue's count with the last one of each slot */
	uint32_t mails_in;  /* number of the last mail read from it */

	uint64_t suspected_at;
	uint64_t quiet_until, fence_until;
	struct ha_fence_state state, peer_state;
	uint64_t replayed_requests, replayed_bytes;
	uint64_t registration_ns; /* spent for this rail's failure */

	uint64_t tidy_at; /* its queue pair, in error and drained, is still there; destroyed then. 0 = there is none */
	uint64_t retry_at; /* sender: not before */
	unsigned attempts; /* lives that were offered and did not come up */
	unsigned flaps;	   /* short lives in a row */
	uint64_t up_since;
	uint64_t lost_at; /* when it was up for the last time */
	struct ha_meeting met[HA_MEETINGS]; /* receiver: of a standby since it was up */
	unsigned meetings;		    /* entries made in it */
	uint64_t limit;	   /* of JOIN and PROBE */
	uint32_t pings, pongs;
	struct ha_wire_rail offered; /* the peer's end of the coming life */
	bool has_offer;	   /* it is that of the next epoch (receiver), of this one (sender) */
	uint64_t ping_answered; /* receiver: the last ping that has its pong */

	/* Heartbeat. */
	uint64_t beat_at;	/* the next beat */
	uint64_t beat_sent_at;	/* when the word that is on its way was written; 0 = none is */
	unsigned misses;	/* beats at which it was missing */
	uint32_t beat_mark;	/* the send queue's count with it */
	uint32_t retired_seen;	/* at the last look, */
	bool idle_seen;		/* and that nothing was outstanding, */
	bool doubted;		/* another connection has proved its path silent, and it has not moved since */
	uint64_t looked_at;	/* the last look was then; */
	uint64_t look_at;	/* the next one */
	uint64_t still_since;	/* work is outstanding and nothing moves since */

	/* Keys of this rail's device for receives that were announced without: [keys_next, keys_end) must be told. Sender:
	 * keys_next is what it acknowledges. */
	uint32_t forgotten; /* how often this end has given up its buffers' keys on this rail */
	uint8_t keys; /* enum ha_keys_stage */
	unsigned keyless; /* buffers that the device refused */
	bool keys_lost;	  /* it is gone: none of its answers count */
	uint64_t keys_next, keys_end;
};

#endif
