/* SPDX-License-Identifier: BSD-3-Clause */
/* ha-switch-xdp: options, and then the switch until a signal ends it */
#include "ina/frame/option.h"
#include "ina/switch/xdp/switch_xdp.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int usage(FILE *out)
{
	fprintf(out,
		"usage: ha-switch-xdp --address=IPV4 --port=INTERFACE... [OPTIONS]   a switch that adds, in the kernel; ina/switch/xdp/README.md has more\n"
		"  -a, --address=IPV4      its own: contributions come to it; this machine answers ARP for it\n"
		"  -p, --port=INTERFACE    where ranks are; up to 64 times\n"
		"  -C, --controller=WHERE  host:port or unix:PATH; who has which groups (default NETCCL_CONTROLLER_ADDR)\n"
		"      --cert=FILE --key=FILE --ca=FILE  PEM files, for the controller\n"
		"  -n, --name=NAME         as the controller's settings call this switch (the host's name)\n"
		"      --serves=PREFIX     to register with it: hosts that this switch reaches, 10.0.0.0/24; up to 16 times\n"
		"  -w, --workers=N         of each rank, in groups whose creator did not say (1)\n"
		"  -g, --groups=FILE       groups without a controller\n"
		"  -s, --slots=N           aggregators (65536)\n"
		"  -m, --mode=MODE         native (in the driver), generic (any interface, slower), auto (native where it works; generic on veth)\n"
		"      --mac=ADDRESS       that answers come from (what contributions were sent to)\n"
		"      --fault=loss=P      drops this fraction of sound frames, for tests\n"
		"      --metrics=WHERE     ADDRESS:PORT of the OpenMetrics, or none (127.0.0.1:9844)\n"
		"SIGUSR1 prints ports, groups and counters. Exit status 1: it cannot run here, 2: called wrongly.\n");
	return out == stdout ? 0 : 2;
}

#define OPTION(name_, text_) (&(struct ina_option){ "ha-switch-xdp", name_, text_ })

static bool take_mode(const char *text, enum ina_xdp_mode *mode)
{
	static const char *const names[] = { [INA_XDP_AUTO] = "auto", [INA_XDP_NATIVE] = "native", [INA_XDP_GENERIC] = "generic" };

	for (unsigned i = 0; i < 3; i++)
		if (!strcmp(text, names[i])) {
			*mode = (enum ina_xdp_mode)i;
			return true;
		}
	return ina_option_wrong(OPTION("mode", text), "auto, native or generic");
}

static bool take_fault(const char *text, struct ina_xdp_settings *s)
{
	char *end = NULL;
	double p = strncmp(text, "loss=", 5) ? -1 : strtod(text + 5, &end);

	if (p >= 0 && p < 1 && !*end) {
		s->lose = (uint32_t)(p * 65536 + 0.5);
		return true;
	}
	return ina_option_wrong(OPTION("fault", text), "loss=0.01; duplicates and reordering are ha-switch's");
}

/* 0: go on; else the exit status + 1. */
static int parse(int argc, char **argv, struct switch_xdp_options *o)
{
	enum { CERT = 256, KEY, CA, SERVES, MAC, FAULT, METRICS };
	static const struct option longs[] = {
		{ "address", required_argument, NULL, 'a' }, { "port", required_argument, NULL, 'p' }, { "controller", required_argument, NULL, 'C' },
		{ "cert", required_argument, NULL, CERT },   { "key", required_argument, NULL, KEY },  { "ca", required_argument, NULL, CA },
		{ "name", required_argument, NULL, 'n' },    { "serves", required_argument, NULL, SERVES }, { "workers", required_argument, NULL, 'w' },
		{ "groups", required_argument, NULL, 'g' },  { "slots", required_argument, NULL, 's' }, { "mode", required_argument, NULL, 'm' },
		{ "mac", required_argument, NULL, MAC },     { "fault", required_argument, NULL, FAULT }, { "metrics", required_argument, NULL, METRICS }, { "help", no_argument, NULL, 'h' }, { 0 },
	};
	bool ok = true;
	unsigned v = 0;
	int c;

	while (ok && (c = getopt_long(argc, argv, "a:p:C:n:w:g:s:m:h", longs, NULL)) >= 0) {
		switch (c) {
		case 'a': ok = ina_option_address(OPTION("address", optarg), &o->settings.addr); break;
		case 'p': ok = ina_option_add(OPTION("port", optarg), o->port, &o->nports, SWITCH_XDP_PORTS); break;
		case 'C': o->controller = optarg; break;
		case CERT: o->cert = optarg; break;
		case KEY: o->key = optarg; break;
		case CA: o->ca = optarg; break;
		case 'n': o->name = optarg; break;
		case SERVES: ok = ina_option_add(OPTION("serves", optarg), o->serves, &o->nserves, 16); break;
		case 'w': ok = ina_option_number(OPTION("workers", optarg), 1, INA_WORKERS_MAX, &v); o->workers = (uint8_t)v; break;
		case 'g': o->groups = optarg; break;
		case 's': ok = ina_option_number(OPTION("slots", optarg), 16, 65536, &o->settings.nslots); break;
		case 'm': ok = take_mode(optarg, &o->mode); break;
		case MAC: ok = ina_option_mac(OPTION("mac", optarg), o->settings.mac); o->settings.mac_set = ok; break;
		case METRICS: o->metrics = optarg; break;
		case FAULT: ok = take_fault(optarg, &o->settings); break;
		default: return 1 + usage(c == 'h' ? stdout : stderr);
		}
	}
	if (!ok)
		return 1 + 2;
	if (optind < argc || !o->settings.addr || !o->nports)
		return 1 + usage(stderr);
	if (!o->groups && !o->controller) {
		fprintf(stderr, "ha-switch-xdp: whose groups? --controller=WHERE (or NETCCL_CONTROLLER_ADDR), or --groups=FILE\n");
		return 1 + 2;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static char host[64];
	struct switch_xdp_options o = { .settings.nslots = 65536, .controller = getenv("NETCCL_CONTROLLER_ADDR"), .name = host, .workers = 1,
					.metrics = "127.0.0.1:9844" };
	int rc;

	gethostname(host, sizeof(host) - 1);
	rc = parse(argc, argv, &o);
	return rc ? rc - 1 : switch_xdp_run(&o);
}
