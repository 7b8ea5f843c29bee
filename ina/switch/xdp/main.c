/* SPDX-License-Identifier: BSD-3-Clause */
/* ha-switch-xdp: options, and then the switch until a signal ends it */
#include "ina/frame/option.h"
#include "ina/switch/xdp/switch_xdp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool take_fault(void *target, const struct ha_option_text *given)
{
	struct switch_xdp_options *o = target;
	char *end = NULL;
	double p = strncmp(given->text, "loss=", 5) ? -1 : strtod(given->text + 5, &end);

	if (!(p >= 0 && p < 1) || *end)
		return false;
	o->settings.lose = (uint32_t)(p * 65536 + 0.5);
	return true;
}

#define HA_TARGET struct switch_xdp_options

static const char *const modes[] = { "auto", "native", "generic", NULL }; /* enum ina_xdp_mode */

static const struct ha_option rows[] = {
	{ "address", 'a', "IPV4",
	  "its own: contributions come to it; this machine answers ARP for it",
	  INA_ADDRESS(settings.addr) },
	{ "port", 'p', "INTERFACE", "where ranks are; up to 64 times",
	  HA_LIST(port, nports, SWITCH_XDP_PORTS) },
	{ "controller", 'C', "WHERE",
	  "host:port or unix:PATH; who has which groups (NETCCL_CONTROLLER_ADDR)",
	  HA_TEXT(controller) },
	{ "cert", 0, "FILE", "PEM file, for the controller", HA_TEXT(cert) },
	{ "key", 0, "FILE", "PEM file, for the controller", HA_TEXT(key) },
	{ "ca", 0, "FILE", "PEM file, for the controller", HA_TEXT(ca) },
	{ "name", 'n', "NAME", "as the controller's settings call this switch (the host's name)",
	  HA_TEXT(name) },
	{ "serves", 0, "PREFIX",
	  "to register with it: hosts that this switch reaches, 10.0.0.0/24; up to 16 times",
	  HA_LIST(serves, nserves, 16) },
	{ "workers", 'w', "N", "of each rank, in groups whose creator did not say (1)",
	  HA_NUMBER(workers, 1, INA_WORKERS_MAX) },
	{ "groups", 'g', "FILE", "groups without a controller", HA_TEXT(groups) },
	{ "slots", 's', "N", "aggregators (65536)", HA_NUMBER(settings.nslots, 16, 65536) },
	{ "mode", 'm', "MODE",
	  "native (in the driver), generic (any interface, slower), auto (native where it works; "
	  "generic on veth) (auto)",
	  HA_CHOICE(mode, modes) },
	{ "mac", 0, "ADDRESS", "that answers come from (what contributions were sent to)",
	  INA_MAC(settings.mac), HA_GIVEN(settings.mac_set) },
	{ "fault", 0, "loss=P", "drops this fraction of sound frames, for tests",
	  HA_CALL(take_fault, "loss=0.01; duplicates and reordering are ha-switch's") },
	{ "metrics", 0, "WHERE", "ADDRESS:PORT of the OpenMetrics, or none (127.0.0.1:9844)",
	  HA_TEXT(metrics) },
	{ 0 },
};

static const struct ha_program program = {
	.name = "ha-switch-xdp",
	.synopsis = "--address=IPV4 --port=INTERFACE... [OPTIONS]",
	.about = "A switch that adds, in the kernel; ina/switch/xdp/README.md has more.",
	.options = { rows },
	.notes = "SIGUSR1 prints ports, groups and counters.\nExit status: 1 it cannot run here, 2 "
		 "called wrongly.",
};

/* 0: go on; else the exit status + 1. */
static int parse_options(int argc, char **argv, struct switch_xdp_options *o)
{
	int result = ha_options_parse(&program, argc, argv, o);

	if (result)
		return result;
	if (!o->settings.addr || !o->nports)
		return ha_program_refuse(&program, "give --address and at least one --port");
	if (!o->groups && !o->controller)
		return ha_program_refuse(&program, "whose groups? --controller=WHERE (or "
						   "NETCCL_CONTROLLER_ADDR), or --groups=FILE");
	return 0;
}

int main(int argc, char **argv)
{
	static char host[64];
	struct switch_xdp_options o = { .settings.nslots = 65536,
					.controller = getenv("NETCCL_CONTROLLER_ADDR"),
					.name = host,
					.workers = 1,
					.metrics = "127.0.0.1:9844" };
	int rc;

	gethostname(host, sizeof(host) - 1);
	rc = parse_options(argc, argv, &o);
	return rc ? rc - 1 : switch_xdp_run(&o);
}
