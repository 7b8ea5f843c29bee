/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * advice.h - HA_NCCL_POLICY=agent, and MPIB_MODE=1: how much of each message goes over SUP is what
 * an agent says
 *
 * The driver registers with the agent each sending connection with data rails on two devices,
 * SOUT's first, and watches the agent's heartbeat. Each isend reads the connection's hint: some
 * loads from memory. While there is no hint to follow, whatever the reason, the connection has the
 * shares that it would have without an agent; one event says so, and one that it is over: of the
 * agent as a whole (the journal names no connection), or of this connection's hint.
 */
#ifndef HA_PLUGIN_ADVICE_H
#define HA_PLUGIN_ADVICE_H

#include "plugin/balance/agent_client.h"
#include "plugin/balance/hints.h"
#include "plugin/core.h"

struct ha_bundle;
struct ha_ctx;
struct ha_send;

/* Of a context; the driver's, but for `hints.shm`. */
struct ha_advice {
	bool open;
	bool borrowed; /* the hints are somebody's memory, and no agent is asked (the simulator) */
	struct ha_hints hints;
	struct ha_agent_client client;
	unsigned flows;        /* connections that follow hints */
	uint64_t look_at;      /* the next look at the agent's heartbeat */
	uint8_t reported;      /* enum: what the last event said */
	bool reported_refused; /* and that the agent gives some connections no slot */
};

/* Of a connection. */
struct ha_advised {
	bool on;
	/* MPIB: the peer is in another island; set before the connection is launched */
	bool across;
	bool gated;       /* messages below the gate go over SOUT, whatever the hint is */
	uint8_t hint;     /* enum ha_hint: of the last look */
	uint8_t reported; /* and of the last that was reported */
	uint32_t sup_bw;  /* the share followed, when hint is HA_HINT_OK */
	uint8_t sup;      /* mask of the data rails on SUP */
	struct ha_agent_flow flow;
	uint16_t without[HA_MAX_RAILS]; /* shares while there is no hint */
};

/* The hint counts for messages of every size. */
static inline bool ha_advice_rules(const struct ha_advised *d)
{
	return d->on && d->hint == HA_HINT_OK && !d->gated;
}

/* What cannot be had is a line, and no hint is followed. hints: memory instead of the file;
 * NULL. */
void ha_advice_open(struct ha_ctx *ctx, const struct mpib_hint_shm *hints);
void ha_advice_close(struct ha_ctx *ctx);

/* A connection is launched, with its shares, or retired. Driver. */
void ha_advice_join(struct ha_bundle *b);
void ha_advice_leave(struct ha_bundle *b);
/* Part of a round. Returns when the next is due, ns; UINT64_MAX: never. */
uint64_t ha_advice_round(struct ha_ctx *ctx, uint64_t now);

/* Owner: the hint has changed, or what it is worth. */
void ha_advice_follow(struct ha_send *s, enum ha_hint hint, uint32_t sup_bw);

#endif
