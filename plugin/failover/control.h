/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control.h - what the driver knows of a rail beyond its data path: how far its incarnation, or the
 * end of it, has come
 *
 * The state machine is that of docs/protocol.md, which a model checker has explored
 * (docs/model.md); drive.c runs it. All of it is the driver's (ctx->drive, and the bundle taken,
 * guard.h), but for what is marked otherwise.
 */
#ifndef HA_PLUGIN_CONTROL_H
#define HA_PLUGIN_CONTROL_H

#include "plugin/channel/wire.h"
#include "plugin/core.h"
#include "plugin/failover/rto.h"
#include "plugin/failover/spares.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct ha_device;
struct ha_rail;

enum ha_fence_stage {
	HA_FENCE_START, /* not yet begun */
	HA_FENCE_QUIET, /* receiver: until nothing has come for a moment */
	HA_FENCE_DRAIN, /* in error; until everything is accounted for */
	HA_FENCE_CLOSE, /* only destroying the queue pair ends it for certain */
	HA_FENCE_OVER,  /* nothing of it reaches memory any more */
};

#define HA_PONGS 3 /* answers over the rail itself that prove an incarnation */

/* Slow verbs on a rail that carries nothing: the driver runs them while the bundle is not held;
 * CONNECTING waits for a thread that does (hookup.h). */
enum ha_slow {
	HA_SLOW_NONE,
	HA_SLOW_OPEN,
	HA_SLOW_CONNECT,
	HA_SLOW_CONNECTING,
	HA_SLOW_CLOSE,
	HA_SLOW_TIDY,
	HA_SLOW_DONE
};

enum ha_keys_stage { HA_KEYS_IDLE, HA_KEYS_WANTED, HA_KEYS_REGISTERED };

/* Messages due, by type. */
#define HA_SEND(type) (1u << (HA_MSG_##type))

/* fence.c: the end of an incarnation, at this end. Its stages are `stage`; the flags are what is
 * known of the cause, each from another source. */
struct ha_fence {
	uint8_t stage;   /* enum ha_fence_stage */
	bool peer_knows; /* the peer fences too, or was the first to */
	bool peer_port;  /* sender: the peer's port is down, and it will say when it is back */
	/* silence took the rail down: its own time-out's, a sibling's, or what sign.c takes for it,
	 * here or at the peer */
	bool by_timeout;
	atomic_bool last_receive; /* the queue pair takes no receive any more (device event) */
	uint64_t quiet_until, deadline;
	/* when the queue pair, which is in error and drained, is destroyed; 0 = there is none */
	uint64_t tidy_at;
};

/*
 * What this end had of the incarnation, and its way to the peer, in the order of its stages.
 * ha_compare_enter() knows which may follow which.
 *
 *   NONE ──► TAKEN ──► SETTLED
 *     └───────────────────▲     at the launch, a spare: it has had no incarnation
 *
 * Any ──► NONE: the next incarnation begins. TAKEN ──► NONE: the peer names one whose offer was
 * lost here, which it would not do without our state.
 */
enum ha_compare_stage {
	HA_COMPARE_NONE,    /* not over at this end; or over, and nobody will compare */
	HA_COMPARE_TAKEN,   /* it is in `state`; RAIL_FENCED is repeated until the peer has it */
	HA_COMPARE_SETTLED, /* the peer has acted on it, or there was nothing to compare */
};

/*
 * reconcile.c: what either end had of the incarnation, and what was posted again.
 *
 * Independent of `stage`: the peer's state, which may come before ours is taken or after ours is
 * settled; and the report, which is due until what was lost is on its way again, when the next
 * incarnation may have begun, or failed.
 */
struct ha_compare {
	uint8_t stage;       /* enum ha_compare_stage */
	bool has_peer_state; /* the peer's RAIL_FENCED of this epoch is in peer_state */
	bool unreported;     /* that the failure was survived is not reported yet */
	uint8_t cause;       /* why it failed: enum ha_event_cause */
	struct ha_fence_state state, peer_state;
	uint64_t replayed_requests, replayed_bytes;
	uint64_t registration_ns; /* spent for this rail's failure */
};

/* messages.c: messages, by type (HA_SEND). */
struct ha_outgoing {
	uint32_t due;
	uint32_t sent;      /* in this incarnation, at least once */
	uint64_t repeat_at; /* RAIL_FENCED or RAIL_OFFER once more; 0 = nothing to repeat */
	uint32_t repeats;
};

/* incarnation.c: how the next incarnation comes about, and how long the last ones lasted. */
struct ha_join {
	bool has_offer; /* `offer` is that of the next epoch (receiver), of this one (sender) */
	struct ha_wire_rail offer; /* the peer's end of the coming incarnation */
	uint64_t retry_at;         /* sender: not before */
	uint64_t since, deadline;  /* of JOIN and PROBE */
	unsigned attempts;         /* that were offered and did not come up */
	unsigned tried;            /* receiver: devices that did not open for this offer */
	unsigned flaps;            /* short incarnations in a row */
	uint64_t up_since;
	uint32_t pings, pongs;
	uint64_t ping_answered; /* receiver: the last ping that has its pong */
};

/*
 * heartbeat.c: heartbeats.
 *
 * The four flags are no stages of one thing. `idle_seen` is what the last look found. `watched`
 * stands for the rail's state, which an owner that is inside may be changing. `closely` is what the
 * last step decided about the next looks, and still counts at the first one after the rail was
 * down. `doubted` is what other connections have found.
 */
struct ha_heartbeat_watch {
	uint64_t at;           /* the next heartbeat */
	uint64_t sent_at;      /* when the write that is on its way was posted; 0 = none is */
	unsigned misses;       /* heartbeats at which it was missing */
	uint32_t mark;         /* the send queue's count with it */
	uint32_t retired_seen; /* the send queue's count at the last look */
	bool idle_seen;        /* nothing was outstanding at the last look */
	bool watched;          /* it was up when the driver's last step ended: look_at counts */
	bool closely;          /* looks come as often as sign.c wants them */
	/* another connection has proved its path silent, and it has not moved since */
	bool doubted;
	uint64_t looked_at;   /* the last look */
	uint64_t look_at;     /* the next one */
	uint64_t still_since; /* work is outstanding and nothing moves since */
	uint64_t busy_at;     /* more than a heartbeat had moved then */
	/* work was done, or data came, after this look: the one before the last that saw either */
	uint64_t alive_since;
	uint32_t arrived_seen; /* ha_rail.rq_consumed at the last look */
};

/*
 * What was asked about a rail that stands still. sign.c knows which may follow which.
 *
 *   NONE ──► ASKED ──► ANSWERED
 *    ▲       ▲  │ ▲       │ │      ASKED again: all are asked anew
 *    │       └──┘ └───────┘ │
 *    └──────────┴───────────┘      it moves, is not looked at any more, or begins anew
 *
 * A rail that is given up keeps its stage until its next incarnation begins.
 */
enum ha_sign_stage {
	HA_SIGN_NONE,     /* nothing: it moves, or has not stood still for long */
	HA_SIGN_ASKED,    /* it, its witnesses and the peer have been asked, at asked_at */
	HA_SIGN_ANSWERED, /* a witness has answered, at answered_at; this rail has not */
};

/*
 * sign.c: the rail stands still, and it and another have been asked for a sign.
 *
 * The flags are no stages of that. The peer's answer comes before the witness's or after it;
 * `waited` and `soon` are found while the rail is asked, and hold for the rest of the standstill,
 * however often it is asked again; `lent` is another rail's question, and one that is asked about
 * may be a witness too.
 */
struct ha_sign {
	uint8_t stage;        /* enum ha_sign_stage */
	uint64_t asked_at;    /* the last time */
	uint64_t first_at;    /* and the first time in this standstill */
	uint64_t answered_at; /* the witness's sign was seen */
	uint64_t seen_at;     /* the last look while this was so */
	uint64_t still_at;    /* the last time that its queue was asked, and nothing had come */
	uint32_t retired;     /* the send queue's count when a sign was asked of it for another */
	bool lent;            /* its sign was asked for another's sake, and is outstanding */
	uint32_t number;      /* of the question to the peer */
	bool alive;           /* the peer has answered that its own work gets over this rail */
	bool waited;          /* in this standstill the path was sound, and its work waited */
	bool soon;            /* a pair connected for it has come up: half the time is enough */
	uint8_t writes;       /* that this rail was given to answer */
	uint8_t witness;      /* the rail that has answered */
};

/*
 * Who gave the last incarnation up for its silence, until the rail is up again: NONE ──► HERE or
 * PEER ──► NONE. Only a rail that is up is given up, so no alarm follows another.
 */
enum ha_alarm_source {
	HA_ALARM_NONE, /* nobody, or the rail has come up since */
	HA_ALARM_HERE,
	HA_ALARM_PEER,
};

/* sign.c: was it a false one? Outlives the incarnation, and so is no part of ha_sign. */
struct ha_alarm {
	uint8_t source;              /* enum ha_alarm_source */
	uint64_t at;                 /* when it was given up, */
	const struct ha_device *dev; /* on this device */
};

/* answer.c: the peer has asked whether what this end writes on the rail is acknowledged. */
struct ha_answer {
	uint32_t number; /* of its question */
	uint32_t mark;   /* the send queue's count with the first word after it */
	bool due;        /* it is not answered yet */
	uint64_t until;  /* from then on it need not be answered */
	uint64_t next;   /* another word, so that no lost packet decides */
};

/* keys.c: keys of this rail's device for receives that were announced without: [next, end) must be
 * sent. Sender: `next` is what it acknowledges. */
struct ha_late_keys {
	uint8_t stage;      /* enum ha_keys_stage */
	bool lost;          /* the device is gone, or cannot flush: no key of it counts */
	unsigned refused;   /* buffers that the device refused */
	uint32_t forgotten; /* how often this end has given up its buffers' keys on this rail */
	uint64_t next, end;
	/* Receiver: the rails on which clear-to-sends with keys that were given up may be on their
	 * way, and up to which work request (sq_posted at that moment). */
	uint8_t behind;
	uint32_t mark[HA_MAX_RAILS];
};

/* windows.c: how many of the offered windows the peer has keys of, for this rail; how many were
 * sent. */
struct ha_window_counts {
	unsigned known, sent;
};

struct ha_control {
	/* enum ha_event_cause: somebody wants the rail fenced (events, siblings). Under
	 * ctx->drive alone */
	uint8_t fence_wanted;
	/* the port that this rail waits for is back, says its device. Under ctx->drive alone */
	bool port_back;
	uint8_t slow; /* enum ha_slow */
	int slow_result;
	bool working; /* it has been up in this one */
	struct ha_fence fence;
	struct ha_compare compare;
	struct ha_outgoing out;
	struct ha_join join;
	struct ha_heartbeat_watch heartbeat;
	struct ha_sign sign;
	struct ha_alarm alarm;
	struct ha_answer answer;
	struct ha_late_keys keys;
	struct ha_window_counts windows;
};

/* Of a connection. */
struct ha_failover {
	struct ha_control ctl[HA_MAX_RAILS];
	unsigned parked;        /* stripes and clear-to-sends that wait for a rail */
	uint64_t no_path_since; /* no rail is up; 0 = one is */
	uint64_t no_path_seen;  /* the driver's last look at that */
	struct ha_rto rto;
	uint64_t peer_closed_until; /* how long messages that a closed peer had sent may take */
	uint64_t peer_done;         /* with it: how far the peer got */
	struct ha_spares spares;    /* the rails behind the data rails */
};

#endif
