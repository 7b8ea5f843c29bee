/* SPDX-License-Identifier: BSD-3-Clause */
/* ha-agent: options, and then the daemon. */
#include "agent/daemon.h"
#include "base/config.h"
#include "base/log.h"
#include "base/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RUN_SOCKET HA_CONFIG_AGENT_FOLDER "/agent.sock"
#define RUN_HINTS HA_CONFIG_AGENT_FOLDER "/hints"
#define ALIAS "/tmp/mpib" /* the directory of MPIB_AGENT_SOCK_PATH */

static bool path_take(char *to, size_t size, const char *path)
{
	if (*path && snprintf(to, size, "%s", path) < (int)size)
		return true;
	fprintf(stderr, "ha-agent: a path is empty or too long\n");
	return false;
}

#define HA_TARGET struct ha_daemon_options

static const struct ha_option options[] = {
	{ "socket", 's', "PATH",
	  "of registration (HA_NCCL_AGENT_SOCKET; " RUN_SOCKET
	  " as root, else " MPIB_AGENT_SOCK_PATH ")",
	  HA_COPY(socket) },
	{ "hints", 'f', "PATH",
	  "the file of hints (HA_NCCL_AGENT_HINTS; " RUN_HINTS " as root, else " MPIB_HINT_SHM_PATH
	  ")",
	  HA_COPY(hints) },
	{ "policy", 'p', "POLICY",
	  "manual: as `ha agent set` has set it (default); static:FILE: rules in a file; "
	  "congestion: by the counters of the ports",
	  HA_TEXT(policy) },
	{ "users", 'u', "LIST", "who else may register: names or numbers, * = everybody (nobody)",
	  HA_TEXT(users) },
	{ "metrics", 'm', "WHERE", "ADDRESS:PORT of the OpenMetrics, or none (127.0.0.1:9840)",
	  HA_TEXT(metrics) },
	{ "interval", 'i', "MS", "between two looks at the counters or the file (500)",
	  HA_NUMBER(look_ms, 10, 60000) },
	{ "connections", 'c', "N", "processes' sockets at once (4096)",
	  HA_NUMBER(most, 1, 1000000) },
	{ "alias", 'a', "PATH",
	  "a link to the socket's directory, for programs that look only there; none (" ALIAS
	  " while socket and hints are in " HA_CONFIG_AGENT_FOLDER ")",
	  HA_TEXT(alias) },
	{ "sysfs", 0, "ROOT", "stands for / when counters are read", HA_TEXT(sysfs) },
	{ 0 },
};

static const struct ha_program program = {
	.name = "ha-agent",
	.about = "Gives the plugins of this host hints on how to share traffic between SOUT and "
		 "SUP.",
	.options = { options },
	.notes = "Rules set by hand come first whatever the policy. SIGHUP: look now.\n"
		 "Exit status: 1 it cannot run here, 2 called wrongly.",
};

/* Root alone may make a directory in /run; a directory in /tmp, anybody could have made before. */
static bool paths_default(struct ha_daemon_options *o, const struct ha_config *config)
{
	bool run = geteuid() == 0 && !access("/run", W_OK);
	const char *socket = config->agent_socket, *hints = config->agent_hints;

	if (run && !ha_config_is_set(config, HA_CFG_agent_socket))
		socket = RUN_SOCKET;
	if (run && !ha_config_is_set(config, HA_CFG_agent_hints))
		hints = RUN_HINTS;
	return path_take(o->socket, sizeof(o->socket), socket) &&
	       path_take(o->hints, sizeof(o->hints), hints);
}

static void alias_default(struct ha_daemon_options *o)
{
	if (!o->alias && !strcmp(o->socket, RUN_SOCKET) && !strcmp(o->hints, RUN_HINTS))
		o->alias = ALIAS;
	if (o->alias && !strcmp(o->alias, "none"))
		o->alias = NULL;
}

int main(int argc, char **argv)
{
	struct ha_daemon_options chosen = { .policy = "manual",
					    .users = "",
					    .metrics = "127.0.0.1:9840",
					    .sysfs = "",
					    .look_ms = 500,
					    .most = 4096 };
	static struct ha_daemon daemon;
	struct ha_config config;
	int rc;

	ha_config_load_env(&config);
	ha_log_configure(NULL, NULL, 2);
	if (!paths_default(&chosen, &config))
		return 2;
	rc = ha_options_parse(&program, argc, argv, &chosen);
	if (rc)
		return rc - 1;
	alias_default(&chosen);
	rc = ha_daemon_open(&daemon, &chosen);
	if (rc)
		return rc;
	ha_daemon_run(&daemon);
	ha_daemon_close(&daemon);
	return 0;
}
