/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control.h - the socket that `ha agent` connects to
 *
 * One line in: "dump", "set SOURCE DESTINATION SHARE", "unset SOURCE DESTINATION". Out: "ok" or
 * "error: WHY" on a line, what was asked for, and the end. Root and our own user only.
 */
#ifndef HA_AGENT_CONTROL_H
#define HA_AGENT_CONTROL_H

#include "base/loop.h"

#include <stddef.h>
#include <sys/queue.h>

#define HA_CONTROL_MOST 16 /* at once */
#define HA_CONTROL_TIME_LIMIT_NS UINT64_C(5000000000)

struct ha_daemon;
struct ha_call;

struct ha_control {
	struct ha_watch listener; /* fd -1: none */
	struct ha_loop *loop;
	struct ha_daemon *daemon;
	LIST_HEAD(, ha_call) calls;
	unsigned ncalls;
};

/* fd: a listening socket, ours from now on. Negative errno. */
int ha_control_open(struct ha_control *c, struct ha_loop *loop, struct ha_daemon *daemon, int fd);
int ha_control_relisten(struct ha_control *c, int fd);
void ha_control_close(struct ha_control *c);
void ha_control_tick(struct ha_control *c, uint64_t now);

#endif
