/* SPDX-License-Identifier: BSD-3-Clause */
/* rig.h - a living ha-agent in a directory of its own, and raw clients that say to it whatever they
 * like */
#ifndef HA_TESTS_AGENT_RIG_H
#define HA_TESTS_AGENT_RIG_H

#include "include/mpib_agent_iface.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct rig {
	char top[64];    /* a temporary directory */
	char socket[96]; /* top/mpib/agent.sock */
	char hints[96];
	char log[96];
	pid_t agent;
};

/* The program; the first argument of every test. */
extern const char *rig_program;

void rig_make(struct rig *r);
/* Options besides the paths, up to a NULL; waits until the agent listens. */
void rig_start(struct rig *r, ...);
/* The same, but it must end by itself: its exit status. */
int rig_fail(struct rig *r, ...);
/* With a signal; returns what waitpid says. */
int rig_stop(struct rig *r, int signal);
/* Stops the agent if it runs, removes everything. */
void rig_remove(struct rig *r);

/* A registration socket; each call on it ends after 20 s at most. */
int rig_dial(const struct rig *r);
/* The process at the other end of a new socket. */
void rig_send(int fd, const void *data, size_t size);
/* false: the agent has hung up. */
bool rig_receive(int fd, void *data, size_t size);
uint32_t rig_ip(unsigned a, unsigned b, unsigned c, unsigned d);
/* Register 10.0.x.y to 10.0.x.y + 65536, number `flow`; the status. */
uint32_t rig_register(int fd, uint32_t conn_id, unsigned flow, uint32_t *slot);
uint32_t rig_deregister(int fd, uint32_t conn_id);
uint32_t rig_flow_src(unsigned flow);
uint32_t rig_flow_dst(unsigned flow);

/* A number of the state dump; -1: there is none by this name. */
long rig_number(const struct rig *r, const char *name);
/* Until a number is what is expected, 60 s at most. */
void rig_await(const struct rig *r, const char *name, long expected);
/* The hints, mapped for reading; unmapped by the end of the test. */
const struct mpib_hint_shm *rig_hints(const struct rig *r);
/* Milliseconds. */
void rig_sleep(unsigned ms);

#endif
