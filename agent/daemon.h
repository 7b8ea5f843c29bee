/* SPDX-License-Identifier: BSD-3-Clause */
/* daemon.h - the agent as a whole: its parts, the order in which they start, its ticks */
#ifndef HA_AGENT_DAEMON_H
#define HA_AGENT_DAEMON_H

#include "agent/advisor.h"
#include "agent/control.h"
#include "agent/folder.h"
#include "agent/page.h"
#include "agent/registrar.h"
#include "base/http.h"
#include "base/signals.h"

struct ha_daemon_options {
	/* of registration; the control socket and the rules set by hand lie beside it */
	char socket[256];
	char hints[256];
	const char *policy;  /* ha_advisor_open */
	const char *users;   /* ha_users_parse */
	const char *metrics; /* ADDRESS:PORT, or "none" */
	const char *alias;   /* a link to the socket's directory (alias.h); NULL = none */
	const char *sysfs;   /* root; "" = the live system */
	unsigned look_ms;    /* between two looks at counters or the file */
	unsigned most;       /* registration sockets at once */
};

struct ha_daemon {
	struct ha_daemon_options options;
	struct ha_loop loop;
	/* the second is open only when the hints lie elsewhere */
	struct ha_folder folder, hints_folder;
	const char *socket_name;
	ino_t socket_inode, control_inode;
	struct ha_page page;
	struct ha_users users;
	struct ha_slots slots;
	struct ha_advisor advisor;
	struct ha_registrar registrar;
	struct ha_control control;
	struct ha_http http;
	struct ha_signals signals;
	uint64_t started, next_look, next_sweep; /* ns of CLOCK_MONOTONIC */
	uint64_t restored;                       /* how often removed files were made again */
	int stop;
	bool alias_refused; /* said once */
	bool rules_unread;  /* the file of rules is one that could not be read */
};

#define HA_AGENT_CONTROL "control" /* beside the registration socket */
#define HA_AGENT_RULES "rules"
#define HA_AGENT_RULES_BAD "rules.bad" /* could not be read, and was replaced */

/* 0, or an exit status after one line on stderr. */
int ha_daemon_open(struct ha_daemon *d, const struct ha_daemon_options *options);
/* Until a signal says stop. */
void ha_daemon_run(struct ha_daemon *d);
void ha_daemon_close(struct ha_daemon *d);

#endif
