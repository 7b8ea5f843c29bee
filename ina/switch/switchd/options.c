/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/switch/switchd/options.h"

#include "ina/frame/option.h"
#include "ina/frame/port/port.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool take_mark(void *target, const struct ha_option_text *given)
{
	struct ina_mark_config *m = &((struct ina_switch_options *)target)->mark;
	const char *text = given->text;
	char rest;

	m->off = !strcmp(text, "none");
	if (m->off)
		return true;
	return sscanf(text, "%u,%u,%lf%c", &m->min, &m->max, &m->probability, &rest) == 3 &&
	       m->min < m->max && m->max <= 1 << 20 && m->probability >= 0 && m->probability <= 1;
}

/* One of --fault's. */
static bool parse_fault_part(const char *key, const char *value, struct ina_faults_config *t)
{
	double *probability = NULL;
	char *end;
	double v = strtod(value, &end);

	if (!strcmp(key, "loss"))
		probability = &t->loss;
	else if (!strcmp(key, "duplicate"))
		probability = &t->duplicate;
	else if (!strcmp(key, "reorder"))
		probability = &t->reorder;
	if (end == value || *end || !(v >= 0))
		return false;
	if (probability) {
		*probability = v;
		return v <= 1;
	}
	if (!strcmp(key, "delay")) {
		t->delay_ns = (uint64_t)(v * 1000);
		return v >= 1 && v <= 1e6;
	}
	t->seed = (uint64_t)v;
	return !strcmp(key, "seed");
}

static bool take_fault(void *target, const struct ha_option_text *given)
{
	struct ina_faults_config *t = &((struct ina_switch_options *)target)->faults;
	char all[128], *rest, *part;

	snprintf(all, sizeof(all), "%s", given->text);
	*t = (struct ina_faults_config) { .on = true, .delay_ns = 500000, .seed = 1 };
	for (part = strtok_r(all, ",", &rest); part; part = strtok_r(NULL, ",", &rest)) {
		char *value = strchr(part, '=');

		if (value)
			*value++ = 0;
		if (!value || !parse_fault_part(part, value, t))
			return false;
	}
	return true;
}

#define HA_TARGET struct ina_switch_options

static const struct ha_option rows[] = {
	{ "address", 'a', "IPV4", "its own: contributions come to it", INA_ADDRESS(addr) },
	{ "mac", 0, "ADDRESS", "its own (02:00 and the four bytes of --address)", INA_MAC(mac),
	  HA_GIVEN(has_mac) },
	{ "port", 'p', "PORT",
	  "0000:01:00.0, or net_memif0,role=server,socket=PATH, net_af_packet0,iface=NAME, "
	  "net_af_xdp0,iface=NAME; up to 40 times",
	  HA_LIST(eal.port, eal.nports, INA_PORTS_MAX) },
	{ "controller", 'C', "WHERE",
	  "host:port or unix:PATH; who has which groups (NETCCL_CONTROLLER_ADDR, or none)",
	  HA_TEXT(follow.client.address) },
	{ "cert", 0, "FILE", "PEM file, for the controller", HA_TEXT(follow.client.tls.cert) },
	{ "key", 0, "FILE", "PEM file, for the controller", HA_TEXT(follow.client.tls.key) },
	{ "ca", 0, "FILE", "PEM file, for the controller", HA_TEXT(follow.client.tls.ca) },
	{ "name", 'n', "NAME", "as the controller's settings call this switch (the host's name)",
	  HA_COPY(name) },
	{ "serves", 0, "PREFIX",
	  "to register with it: hosts that this switch reaches, 10.0.0.0/24; up to 16 times",
	  HA_LIST(serves, nserves, INA_SERVES_MAX) },
	{ "groups", 'g', "FILE", "groups without a controller; SIGHUP reads it again",
	  HA_TEXT(groups) },
	{ "slots", 's', "N", "aggregators (65536)", HA_NUMBER(slots, 2, 65536) },
	{ "cores", 'c', "N", "that poll (1)", HA_NUMBER(cores, 1, INA_THREADS_MAX - 1) },
	{ "cpus", 0, "LIST", "where they poll, 2-5,8 (as the process may)", HA_TEXT(eal.cpus) },
	{ "queues", 0, "N", "of each port (1)", HA_NUMBER(queues, 1, INA_PORT_QUEUES) },
	{ "memory", 0, "MIB", "for packets (256)", HA_NUMBER(eal.memory_mb, 32, 1 << 20) },
	{ "packets", 0, "N", "at once (as many as fit into the memory)",
	  HA_NUMBER(packets, 1024, 1 << 24) },
	{ "shared", 0, NULL,
	  "others need these processors, too: no core has one to itself, and cores without work "
	  "yield",
	  HA_FLAG(eal.shared) },
	{ "idle-us", 'i', "N",
	  "sleep so long when there was nothing to do for a while; 0 = never (0)",
	  HA_NUMBER(idle_us, 0, 999999) },
	{ "mark", 0, "MIN,MAX,P",
	  "marks CE from a queue of MIN packets on, with probability P before MAX, always from "
	  "there on; or none (64,256,0.1)",
	  HA_CALL(take_mark, "none, or two depths and a probability, as in 64,256,0.1") },
	{ "queue", 0, "N", "packets that may wait for a port, a power of two (512)",
	  INA_POWER_OF_TWO(queue, INA_BURST, 1 << 16) },
	{ "fault", 0, "WHAT",
	  "loss=P,duplicate=P,reorder=P,delay=US,seed=N: a bad network, for tests",
	  HA_CALL(take_fault,
		  "what is as in loss=0.01,duplicate=0.01,reorder=0.01,delay=500,seed=1 "
		  "(probabilities; microseconds)") },
	{ "reflect", 0, NULL, "add nothing, send contributions back as they are: to compare with",
	  HA_FLAG(reflect) },
	{ "metrics", 'm', "WHERE", "ADDRESS:PORT of the OpenMetrics, or none (127.0.0.1:9842)",
	  HA_TEXT(metrics) },
	{ "dpdk", 0, "ARGUMENT", "for DPDK as it is; up to 16 times",
	  HA_LIST(dpdk, ndpdk, INA_DPDK_MAX) },
	{ 0 },
};

static const struct ha_program program = {
	.name = "ha-switch",
	.synopsis = "--address=IPV4 --port=PORT... [OPTIONS]",
	.about = "A switch that adds; ina/switch/switchd/README.md has more.",
	.options = { rows },
	.notes = "SIGUSR1 prints ports, groups and addresses.\nExit status: 1 it cannot run here, "
		 "2 called wrongly.",
};

static void set_defaults(struct ina_switch_options *o)
{
	const char *controller = getenv("NETCCL_CONTROLLER_ADDR");

	memset(o, 0, sizeof(*o));
	o->eal.program = "ha-switch";
	o->cores = o->queues = 1;
	o->slots = 65536;
	o->queue = 512;
	o->mark = (struct ina_mark_config) { .min = 64, .max = 256, .probability = 0.1 };
	o->metrics = "127.0.0.1:9842";
	if (controller && *controller)
		o->follow.client.address = controller;
	gethostname(o->name, sizeof(o->name) - 1);
}

/* What depends on several options. 0: go on; else the exit status + 1. */
static int finish_options(struct ina_switch_options *o)
{
	if (!o->addr || !o->eal.nports)
		return ha_program_refuse(&program, "give --address and at least one --port");
	if (!o->has_mac) {
		o->mac[0] = 2; /* given by nobody */
		o->mac[1] = 0;
		for (unsigned i = 2; i < 6; i++)
			o->mac[i] = (uint8_t)(o->addr >> (8 * (5 - i)));
	}
	o->eal.threads = o->cores + 1; /* the first one is for signals and numbers */
	o->eal.first_waits = true;
	o->eal.more = o->dpdk;
	o->follow.name = o->name;
	o->follow.addr = o->addr;
	o->follow.slots = o->slots;
	o->follow.serves = o->serves;
	o->follow.nserves = o->nserves;
	return 0;
}

int ina_options_parse(struct ina_switch_options *o, int argc, char **argv)
{
	int result;

	set_defaults(o);
	result = ha_options_parse(&program, argc, argv, o);
	return result ? result : finish_options(o);
}
