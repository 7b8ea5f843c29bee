/* SPDX-License-Identifier: BSD-3-Clause */
/* rig.h - a living ha-switch in a directory of its own, and its other ends in this process: clients
 * of its memifs */
#ifndef HA_TESTS_SWITCHD_RIG_H
#define HA_TESTS_SWITCHD_RIG_H

#include "ina/frame/port/packet.h"
#include "ina/frame/port/tx.h"

#include <sys/types.h>

#define RIG_PORTS 8
#define RIG_ARGS 40

struct switch_rig {
	const char *program;
	char top[64], groups[96], log[96];
	char server[RIG_PORTS][160], client[RIG_PORTS][160];
	unsigned nports, metrics;
	pid_t pid;
	struct rte_mempool *pool;
	struct ina_port port[RIG_PORTS];
	struct ina_tx tx[RIG_PORTS];
};

#define RIG_TIME_LIMIT_MS 60000 /* for anything to come; beside other work */
/* the switch's: 10.0.0.254, 02:00:0a:00:00:fe unless another is asked for */
#define RIG_ADDR 0x0a0000feu

/* Folder and names; nothing runs. */
void switch_rig_make(struct switch_rig *r, const char *program, unsigned nports);
/* What the file of groups says from now on. */
void switch_rig_groups(struct switch_rig *r, const char *text);
/* Runs it with --address, --port..., --groups, --idle-us and these options, NULL at the end; waits
 * until it serves its metrics. */
void switch_rig_start(struct switch_rig *r, const char *const *options);
/* The clients, in this process; once. */
void switch_rig_connect(struct switch_rig *r);
/* All cables are up, at both ends. */
void switch_rig_await_up(struct switch_rig *r);
/* A number of its metrics, by everything before the blank; fails when it is not there. */
uint64_t switch_rig_metric(struct switch_rig *r, const char *name);
/* All of them at one time, until the next call; and a number there. */
const char *switch_rig_page(struct switch_rig *r);
uint64_t switch_rig_number(const char *page, const char *name);
/* Reads the file of groups again, and waits until it has. */
void switch_rig_reload(struct switch_rig *r);
/* What it has said, to standard error. */
void switch_rig_show_log(const struct switch_rig *r);
/* What waitpid says. */
int switch_rig_stop(struct switch_rig *r, int signal);
/* Closes the ports, stops the switch, which must end with 0, removes the folder. */
void switch_rig_end(struct switch_rig *r);

void switch_rig_send(struct switch_rig *r, unsigned port, const void *bytes, size_t len);
/* One packet within ms, or NULL. */
struct rte_mbuf *switch_rig_receive(struct switch_rig *r, unsigned port, unsigned ms);

#endif
