/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * registrar.h - the registration socket and everybody who is connected to it
 *
 * A peer that leaves a message half said, or does not take its answers, for
 * HA_REGISTRAR_TIME_LIMIT_NS is hung up on; so is one that we do not know, and one more than we
 * have room for. What it had registered stays until its process ends.
 */
#ifndef HA_AGENT_REGISTRAR_H
#define HA_AGENT_REGISTRAR_H

#include "agent/session.h"
#include "agent/users.h"
#include "base/loop.h"

#include <sys/queue.h>

#define HA_REGISTRAR_TIME_LIMIT_NS UINT64_C(5000000000)
#define HA_REGISTRAR_PER_PROCESS 64 /* sockets */

struct ha_conn;

struct ha_registrar {
	struct ha_watch listener; /* fd -1: none */
	struct ha_loop *loop;
	struct ha_slots *slots;
	const struct ha_users *users;
	LIST_HEAD(, ha_conn) conns;
	unsigned nconns, most;
	bool resting; /* no descriptor was left: accepting goes on with the next tick */
	struct ha_session_counts counts;
	/* sockets: all, refused users, no room, hung up on */
	uint64_t accepted, unauthorized, crowded, dropped;
};

/* fd: a listening socket, ours from now on. most: sockets at once. */
int ha_registrar_open(struct ha_registrar *r, struct ha_loop *loop, struct ha_slots *slots,
		      const struct ha_users *users, int fd, unsigned most);
/* Another listening socket in place of the first. */
int ha_registrar_relisten(struct ha_registrar *r, int fd);
void ha_registrar_close(struct ha_registrar *r);
/* Ten times a second. now: ns. */
void ha_registrar_tick(struct ha_registrar *r, uint64_t now);

#endif
