/* SPDX-License-Identifier: BSD-3-Clause */
/* ha-controller: options, and then the daemon. */
#include "base/config.h"
#include "base/log.h"
#include "base/number.h"
#include "ina/controller/daemon.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DATABASE "/var/lib/ha-controller/groups.sqlite"

static int usage(FILE *out)
{
	fprintf(out,
		"usage: ha-controller [OPTIONS]   gives groups of hosts their aggregators in switches\n"
		"  -l, --listen=WHERE      ADDRESS:PORT, [ADDRESS]:PORT or unix:PATH; up to 8 times (default 0.0.0.0:50051)\n"
		"  -s, --settings=FILE     which switches there are, quotas, leases; see ina/controller/README.md\n"
		"  -d, --database=FILE     what outlives a restart (default " DATABASE ")\n"
		"  -m, --metrics=WHERE     ADDRESS:PORT of the OpenMetrics, or none (default 127.0.0.1:9841)\n"
		"      --cert=FILE --key=FILE  PEM files: TLS\n"
		"      --ca=FILE           PEM file: clients need a certificate of this CA (mutual TLS)\n"
		"  -c, --calls=N           in progress at once (1024)\n"
		"      --calls-per-host=N  of one host (128)\n"
		"Exit status 1: it cannot run here, 2: called wrongly, or the settings are wrong.\n");
	return out == stdout ? 0 : 2;
}

static bool calls_take(const char *what, unsigned *value)
{
	return ha_number_take_unsigned("ha-controller", what, optarg, 1, 1000000, value);
}

static bool listen_add(struct ha_server_options *o, const char *where)
{
	if (o->nlisten == HA_SERVER_LISTENS) {
		fprintf(stderr, "ha-controller: --listen: %d times at most\n", HA_SERVER_LISTENS);
		return false;
	}
	o->listen[o->nlisten++] = where;
	return true;
}

/* 0: go on; else the exit status + 1. */
static int parse(int argc, char **argv, struct ha_controller_options *o)
{
	enum { CA = 256, CERT, KEY, PER_HOST };
	static const struct option longs[] = {
		{ "listen", required_argument, NULL, 'l' },   { "settings", required_argument, NULL, 's' },
		{ "database", required_argument, NULL, 'd' }, { "metrics", required_argument, NULL, 'm' },
		{ "ca", required_argument, NULL, CA },	      { "cert", required_argument, NULL, CERT },
		{ "key", required_argument, NULL, KEY },      { "calls", required_argument, NULL, 'c' },
		{ "calls-per-host", required_argument, NULL, PER_HOST },
		{ "help", no_argument, NULL, 'h' },	      { 0 },
	};
	bool ok = true;
	int c;

	while (ok && (c = getopt_long(argc, argv, "l:s:d:m:c:h", longs, NULL)) >= 0) {
		switch (c) {
		case 'l':
			ok = listen_add(&o->server, optarg);
			break;
		case 's':
			o->settings = optarg;
			break;
		case 'd':
			o->database = optarg;
			break;
		case 'm':
			o->metrics = optarg;
			break;
		case CA:
			o->server.tls.ca = optarg;
			break;
		case CERT:
			o->server.tls.cert = optarg;
			break;
		case KEY:
			o->server.tls.key = optarg;
			break;
		case 'c':
			if (!calls_take("--calls", &o->server.calls))
				return 1 + 2;
			break;
		case PER_HOST:
			if (!calls_take("--calls-per-host", &o->server.calls_per_host))
				return 1 + 2;
			break;
		default:
			return 1 + usage(c == 'h' ? stdout : stderr);
		}
	}
	return !ok || optind < argc ? 1 + usage(stderr) : 0;
}

int main(int argc, char **argv)
{
	struct ha_controller_options options = { .server = { .calls = 1024, .calls_per_host = 128 },
						 .database = DATABASE, .metrics = "127.0.0.1:9841" };
	static struct ha_controller controller;
	struct ha_config config;
	int rc;

	ha_config_load_env(&config);
	if (config.debug < 2)
		ha_log_configure(NULL, NULL, 2);
	rc = parse(argc, argv, &options);
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
