/* SPDX-License-Identifier: BSD-3-Clause */
/* ha-controller: options, and then the daemon. */
#include "base/config.h"
#include "base/log.h"
#include "base/options.h"
#include "ina/controller/daemon.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DATABASE "/var/lib/ha-controller/groups.sqlite"

#define HA_TARGET struct ha_controller_options

static const struct ha_option rows[] = {
	{ "listen", 'l', "WHERE",
	  "ADDRESS:PORT, [ADDRESS]:PORT or unix:PATH; up to 8 times (0.0.0.0:50051)",
	  HA_LIST(server.listen, server.nlisten, HA_SERVER_LISTENS) },
	{ "settings", 's', "FILE",
	  "which switches there are, quotas, leases; see ina/controller/README.md",
	  HA_TEXT(settings) },
	{ "database", 'd', "FILE", "what outlives a restart (" DATABASE ")", HA_TEXT(database) },
	{ "metrics", 'm', "WHERE", "ADDRESS:PORT of the OpenMetrics, or none (127.0.0.1:9841)",
	  HA_TEXT(metrics) },
	{ "cert", 0, "FILE", "PEM file: TLS, with --key", HA_TEXT(server.tls.cert) },
	{ "key", 0, "FILE", "PEM file: TLS, with --cert", HA_TEXT(server.tls.key) },
	{ "ca", 0, "FILE", "PEM file: clients need a certificate of this CA (mutual TLS)",
	  HA_TEXT(server.tls.ca) },
	{ "calls", 'c', "N", "in progress at once (1024)", HA_NUMBER(server.calls, 1, 1000000) },
	{ "calls-per-host", 0, "N", "of one host (128)",
	  HA_NUMBER(server.calls_per_host, 1, 1000000) },
	{ 0 },
};

static const struct ha_program program = {
	.name = "ha-controller",
	.about = "Gives groups of hosts their aggregators in switches.",
	.options = { rows },
	.notes = "Exit status: 1 it cannot run here, 2 called wrongly, or the settings are wrong.",
};

int main(int argc, char **argv)
{
	struct ha_controller_options options = { .server = { .calls = 1024, .calls_per_host = 128 },
						 .database = DATABASE,
						 .metrics = "127.0.0.1:9841" };
	static struct ha_controller controller;
	struct ha_config config;
	int rc;

	ha_config_load_env(&config);
	if (config.debug < 2)
		ha_log_configure(NULL, NULL, 2);
	rc = ha_options_parse(&program, argc, argv, &options);
	if (rc)
		return rc - 1;
	if (!options.server.nlisten)
		options.server.listen[options.server.nlisten++] = "0.0.0.0:50051";
	umask(0077); /* the database and a Unix socket are ours alone */
	rc = ha_controller_open(&controller, &options);
	if (rc)
		return rc;
	rc = ha_controller_run(&controller);
	ha_controller_close(&controller);
	return rc;
}
