/* SPDX-License-Identifier: BSD-3-Clause */
/* ha-agent: options, and then the daemon. */
#include "agent/daemon.h"
#include "base/config.h"
#include "base/log.h"
#include "base/number.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RUN_SOCKET HA_CONFIG_AGENT_FOLDER "/agent.sock"
#define RUN_HINTS HA_CONFIG_AGENT_FOLDER "/hints"
#define ALIAS "/tmp/mpib" /* the directory of MPIB_AGENT_SOCK_PATH */

static int usage(FILE *out)
{
	fprintf(out,
		"usage: ha-agent [OPTIONS]   tells the plugins of this host how to share traffic between SOUT and SUP\n"
		"  -s, --socket=PATH     of registration (HA_NCCL_AGENT_SOCKET; " RUN_SOCKET " as root,\n"
		"                        else " MPIB_AGENT_SOCK_PATH ")\n"
		"  -f, --hints=PATH      the file of hints (HA_NCCL_AGENT_HINTS; " RUN_HINTS " as root,\n"
		"                        else " MPIB_HINT_SHM_PATH ")\n"
		"  -p, --policy=POLICY   manual: what `ha agent set` says (default); static:FILE: rules in a file;\n"
		"                        congestion: by the counters of the ports\n"
		"  -u, --users=LIST      who else may register: names or numbers, * = everybody (default: nobody)\n"
		"  -m, --metrics=WHERE   ADDRESS:PORT of the OpenMetrics, or none (default: 127.0.0.1:9840)\n"
		"  -i, --interval=MS     between two looks at the counters or the file (500; 10 to 60000)\n"
		"  -c, --connections=N   processes' sockets at once (4096)\n"
		"  -a, --alias=PATH      a link to the socket's directory, for programs that look only there; none\n"
		"                        (" ALIAS " while socket and hints are in " HA_CONFIG_AGENT_FOLDER ")\n"
		"      --sysfs=ROOT      stands for / when counters are read\n"
		"Rules set by hand come first whatever the policy. SIGHUP: look now.\n"
		"Exit status 1: it cannot run here, 2: called wrongly.\n");
	return out == stdout ? 0 : 2;
}

static bool path_take(char *to, size_t size, const char *path)
{
	if (*path && snprintf(to, size, "%s", path) < (int)size)
		return true;
	fprintf(stderr, "ha-agent: a path is empty or too long\n");
	return false;
}

/* 0: go on; else the exit status + 1. */
static int parse(int argc, char **argv, struct ha_daemon_options *o)
{
	static const struct option longs[] = {
		{ "socket", required_argument, NULL, 's' },   { "hints", required_argument, NULL, 'f' },
		{ "policy", required_argument, NULL, 'p' },   { "users", required_argument, NULL, 'u' },
		{ "metrics", required_argument, NULL, 'm' },  { "interval", required_argument, NULL, 'i' },
		{ "alias", required_argument, NULL, 'a' },
		{ "connections", required_argument, NULL, 'c' }, { "sysfs", required_argument, NULL, 'r' },
		{ "help", no_argument, NULL, 'h' },	      { 0 },
	};
	bool ok = true;
	int c;

	while (ok && (c = getopt_long(argc, argv, "s:f:p:u:m:i:c:a:h", longs, NULL)) >= 0) {
		switch (c) {
		case 's':
			ok = path_take(o->socket, sizeof(o->socket), optarg);
			break;
		case 'f':
			ok = path_take(o->hints, sizeof(o->hints), optarg);
			break;
		case 'p':
			o->policy = optarg;
			break;
		case 'u':
			o->users = optarg;
			break;
		case 'm':
			o->metrics = optarg;
			break;
		case 'i':
			if (!ha_number_take_unsigned("ha-agent", "--interval", optarg, 10, 60000, &o->look_ms))
				return 1 + 2;
			break;
		case 'c':
			if (!ha_number_take_unsigned("ha-agent", "--connections", optarg, 1, 1000000, &o->most))
				return 1 + 2;
			break;
		case 'a':
			o->alias = optarg;
			break;
		case 'r':
			o->sysfs = optarg;
			break;
		default:
			return 1 + usage(c == 'h' ? stdout : stderr);
		}
	}
	return !ok || optind < argc ? 1 + usage(stderr) : 0;
}

/* Root alone may make a directory in /run; a directory in /tmp, anybody could have made before. */
static bool paths_default(struct ha_daemon_options *o, const struct ha_config *config)
{
	bool run = geteuid() == 0 && !access("/run", W_OK);
	const char *socket = config->agent_socket, *hints = config->agent_hints;

	if (run && !ha_config_is_set(config, HA_CFG_agent_socket))
		socket = RUN_SOCKET;
	if (run && !ha_config_is_set(config, HA_CFG_agent_hints))
		hints = RUN_HINTS;
	return path_take(o->socket, sizeof(o->socket), socket) && path_take(o->hints, sizeof(o->hints), hints);
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
	struct ha_daemon_options options = {
		.policy = "manual", .users = "", .metrics = "127.0.0.1:9840", .sysfs = "", .look_ms = 500, .most = 4096
	};
	static struct ha_daemon daemon;
	struct ha_config config;
	int rc;

	ha_config_load_env(&config);
	ha_log_configure(NULL, NULL, 2);
	if (!paths_default(&options, &config))
		return 2;
	rc = parse(argc, argv, &options);
	if (rc)
		return rc - 1;
	alias_default(&options);
	rc = ha_daemon_open(&daemon, &options);
	if (rc)
		return rc;
	ha_daemon_run(&daemon);
	ha_daemon_close(&daemon);
	return 0;
}
