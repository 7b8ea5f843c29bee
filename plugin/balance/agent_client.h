/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * agent_client.h - registering flows with the agent, and learning their slots
 *
 * The driver's alone (under ctx->drive): add at connect, remove at close, a round now and then. No
 * call waits, whatever the agent does. Readers see one word of a flow, its slot. An agent that dies
 * or hangs is dialled again, with a pause that grows from 0.1 to 5 s, and everything is registered
 * anew; until it says otherwise flows keep the slots they had, so a restarted agent disturbs
 * nobody. Messages: include/mpib_agent_iface.h.
 */
#ifndef HA_PLUGIN_AGENT_CLIENT_H
#define HA_PLUGIN_AGENT_CLIENT_H

#include "include/mpib_agent_iface.h"

#include <stdatomic.h>
#include <stddef.h>
#include <sys/queue.h>

#define HA_AGENT_WINDOW 32 /* questions on their way at once */

TAILQ_HEAD(ha_agent_flows, ha_agent_flow);

/* A connection's flow; it is part of the connection, from add to remove. Addresses in network byte
 * order. */
struct ha_agent_flow {
	/* What ha_hints_read wants; MPIB_NO_SLOT until the agent has given one. Any thread reads
	 * it, relaxed: entries say themselves whose they are. */
	_Atomic uint32_t slot;
	uint32_t sout_src, sout_dst, sup_src, sup_dst;
	uint32_t conn_id;
	uint32_t status; /* enum mpib_status: the last answer */
	/* has its slot; a question is on its way; the agent may know of it */
	bool held, asked, announced;
	struct ha_agent_flows *list;
	TAILQ_ENTRY(ha_agent_flow) entry;
};

struct ha_agent_question {
	/* NULL: a deregistration, or a flow that was removed meanwhile */
	struct ha_agent_flow *flow;
	uint32_t conn_id;
	bool deregisters;
	uint64_t at; /* ns */
};

enum ha_agent_state {
	HA_AGENT_IDLE,   /* there was nothing to say yet */
	HA_AGENT_ABSENT, /* nobody listens */
	/* it runs as a user whom we do not trust, or breaks the protocol, or turns us away */
	HA_AGENT_REFUSED,
	HA_AGENT_HANGS, /* no answer for a second */
	HA_AGENT_ANSWERS,
};

struct ha_agent_client {
	char path[108];
	enum ha_agent_state state;
	int fd;        /* -1: not connected */
	bool answered; /* since it was dialled */
	uint64_t dial_at, pause, refused_at;
	struct ha_agent_flows waiting, held, refused;
	struct ha_agent_question question[HA_AGENT_WINDOW];
	unsigned first, asked;                           /* a ring */
	uint32_t *to_deregister, deregister_count, room; /* connections to deregister */
	uint32_t pid;
	uint32_t counter; /* of connections */
	uint8_t in[16 * HA_AGENT_WINDOW];
	size_t in_len;
};

/* Nothing is dialled yet. -ENAMETOOLONG: no socket can have that path. */
int ha_agent_client_open(struct ha_agent_client *c, const char *path);
/* The agent notices the end of the process; flows need not be removed. */
void ha_agent_client_close(struct ha_agent_client *c);

/* The addresses are the caller's, the rest is filled here. The question goes out with the next
 * round. */
void ha_agent_add(struct ha_agent_client *c, struct ha_agent_flow *flow);
/* Its memory is the caller's again. */
void ha_agent_remove(struct ha_agent_client *c, struct ha_agent_flow *flow);

/* Dial, ask, take answers, give up. now: ns. true: the state has changed: time for an event. */
bool ha_agent_round(struct ha_agent_client *c, uint64_t now);
/* Flows that the agent has given no slot, whose question is not on its way again; *status: why, of
 * the first (enum mpib_status). -1: not known now, some are being asked about. */
int ha_agent_refused(const struct ha_agent_client *c, uint32_t *status);
/* When a round is due without news on c->fd: ns, UINT64_MAX = nothing is planned. */
uint64_t ha_agent_due(const struct ha_agent_client *c);
const char *ha_agent_state_text(enum ha_agent_state state);

#endif
