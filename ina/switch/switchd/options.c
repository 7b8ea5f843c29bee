/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/switch/switchd/options.h"

#include "ina/frame/option.h"
#include "ina/frame/port/port.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int usage(FILE *out)
{
	fprintf(out,
		"usage: ha-switch --address=IPV4 --port=PORT... [OPTIONS]   a switch that adds; ina/switch/switchd/README.md has more\n"
		"  -a, --address=IPV4      its own: contributions come to it\n"
		"      --mac=ADDRESS       its own (default 02:00 and the four bytes of --address)\n"
		"  -p, --port=PORT         0000:01:00.0, or net_memif0,role=server,socket=PATH, net_af_packet0,iface=NAME, net_af_xdp0,iface=NAME; up to 40 times\n"
		"  -C, --controller=WHERE  host:port or unix:PATH; who has which groups (default NETCCL_CONTROLLER_ADDR, or none)\n"
		"      --cert=FILE --key=FILE --ca=FILE  PEM files, for the controller\n"
		"  -n, --name=NAME         as the controller's settings call this switch (the host's name)\n"
		"      --serves=PREFIX     to register with it: hosts that this switch reaches, 10.0.0.0/24; up to 16 times\n"
		"  -g, --groups=FILE       groups without a controller; SIGHUP reads it again\n"
		"  -s, --slots=N           aggregators (65536)\n"
		"  -c, --cores=N           that poll (1);  --cpus=LIST  where, 2-5,8 (as the process may);  --queues=N of each port (1)\n"
		"      --memory=MIB --packets=N  for packets (256 MiB, as many as fit)\n"
		"      --shared            others need these processors, too: no core has one to itself, and cores without work yield\n"
		"  -i, --idle-us=N         sleep so long when there was nothing to do for a while; 0 = never (0)\n"
		"      --mark=MIN,MAX,P    marks CE from a queue of MIN packets on, with probability P before MAX, always from there on; or none (64,256,0.1)\n"
		"      --queue=N           packets that may wait for a port, a power of two (512)\n"
		"      --fault=WHAT        loss=P,duplicate=P,reorder=P,delay=US,seed=N: a bad network, for tests\n"
		"      --reflect           add nothing, send contributions back as they are: to compare with\n"
		"  -m, --metrics=WHERE     ADDRESS:PORT of the OpenMetrics, or none (127.0.0.1:9842)\n"
		"      --dpdk=ARGUMENT     for DPDK as it is; up to 16 times\n"
		"SIGUSR1 prints ports, groups and addresses. Exit status 1: it cannot run here, 2: called wrongly.\n");
	return out == stdout ? 0 : 2;
}

#define OPTION(name_, text_) (&(struct ina_option){ "ha-switch", name_, text_ })

static bool parse_mark(const char *text, struct ina_mark_config *m)
{
	char rest;

	m->off = !strcmp(text, "none");
	if (m->off)
		return true;
	if (sscanf(text, "%u,%u,%lf%c", &m->min, &m->max, &m->probability, &rest) != 3 || m->min >= m->max || m->max > 1 << 20 || !(m->probability >= 0) ||
	    m->probability > 1)
		return ina_option_wrong(OPTION("mark", text), "none, or two depths and a probability, as in 64,256,0.1");
	return true;
}

/* One of --fault's. */
static bool parse_fault_part(const char *key, const char *value, struct ina_trouble_config *t)
{
	double *probability = !strcmp(key, "loss") ? &t->loss : !strcmp(key, "duplicate") ? &t->duplicate : !strcmp(key, "reorder") ? &t->reorder : NULL;
	char *end;
	double v = strtod(value, &end);

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

static bool parse_fault(char *text, struct ina_trouble_config *t)
{
	char all[128], *rest, *part;

	snprintf(all, sizeof(all), "%s", text);
	*t = (struct ina_trouble_config){ .on = true, .delay_ns = 500000, .seed = 1 };
	for (part = strtok_r(text, ",", &rest); part; part = strtok_r(NULL, ",", &rest)) {
		char *value = strchr(part, '=');

		if (value)
			*value++ = 0;
		if (!value || !parse_fault_part(part, value, t))
			return ina_option_wrong(OPTION("fault", all), "as in loss=0.01,duplicate=0.01,reorder=0.01,delay=500,seed=1 (probabilities; microseconds)");
	}
	return true;
}

enum { MAC = 256, CA, CERT, KEY, SERVES, CPUS, SHARED, QUEUES, MEMORY, PACKETS, MARK, QUEUE, FAULT, REFLECT, DPDK };

static bool parse_path(int c, struct ina_switch_options *o)
{
	switch (c) {
	case 'C':
		o->follow.client.address = optarg;
		return true;
	case CA:
		o->follow.client.tls.ca = optarg;
		return true;
	case CERT:
		o->follow.client.tls.cert = optarg;
		return true;
	case KEY:
		o->follow.client.tls.key = optarg;
		return true;
	case 'g':
		o->groups = optarg;
		return true;
	case 'm':
		o->metrics = optarg;
		return true;
	case CPUS:
		o->eal.cpus = optarg;
		return true;
	case 'n':
		snprintf(o->name, sizeof(o->name), "%s", optarg);
		return true;
	}
	return false;
}

static bool parse_one(int c, struct ina_switch_options *o)
{
	unsigned n = (unsigned)o->follow.nserves;

	switch (c) {
	case 'a':
		return ina_option_address(OPTION("address", optarg), &o->addr);
	case MAC:
		return o->has_mac = ina_option_mac(OPTION("mac", optarg), o->mac);
	case 'p':
		return ina_option_add(OPTION("port", optarg), o->eal.port, &o->eal.nports, INA_PORTS_MAX);
	case SERVES:
		return ina_option_add(OPTION("serves", optarg), o->serves, &n, INA_SERVES_MAX) && (o->follow.nserves = n);
	case DPDK:
		return ina_option_add(OPTION("dpdk", optarg), o->dpdk, &o->ndpdk, INA_DPDK_MAX);
	case 's':
		return ina_option_number(OPTION("slots", optarg), 2, 65536, &o->slots);
	case 'c':
		return ina_option_number(OPTION("cores", optarg), 1, INA_THREADS_MAX - 1, &o->cores);
	case QUEUES:
		return ina_option_number(OPTION("queues", optarg), 1, INA_PORT_QUEUES, &o->queues);
	case MEMORY:
		return ina_option_number(OPTION("memory", optarg), 32, 1 << 20, &o->eal.memory_mb);
	case PACKETS:
		return ina_option_number(OPTION("packets", optarg), 1024, 1 << 24, &o->packets);
	case 'i':
		return ina_option_number(OPTION("idle-us", optarg), 0, 999999, &o->idle_us);
	case MARK:
		return parse_mark(optarg, &o->mark);
	case QUEUE:
		return ina_option_power_of_two(OPTION("queue", optarg), INA_BURST, 1 << 16, &o->queue);
	case FAULT:
		return parse_fault(optarg, &o->trouble);
	case SHARED:
		return o->eal.shared = true;
	case REFLECT:
		return o->reflect = true;
	}
	return parse_path(c, o);
}

static void set_defaults(struct ina_switch_options *o)
{
	const char *controller = getenv("NETCCL_CONTROLLER_ADDR");

	memset(o, 0, sizeof(*o));
	o->eal.program = "ha-switch";
	o->cores = o->queues = 1;
	o->slots = 65536;
	o->queue = 512;
	o->mark = (struct ina_mark_config){ .min = 64, .max = 256, .probability = 0.1 };
	o->metrics = "127.0.0.1:9842";
	if (controller && *controller)
		o->follow.client.address = controller;
	gethostname(o->name, sizeof(o->name) - 1);
}

/* What depends on several options. */
static bool finish(struct ina_switch_options *o)
{
	if (!o->addr || !o->eal.nports) {
		fprintf(stderr, "ha-switch: give --address and at least one --port (--help says how)\n");
		return false;
	}
	if (!o->has_mac)
		for (unsigned i = 0; i < 6; i++)
			o->mac[i] = i < 2 ? (i ? 0 : 2) : (uint8_t)(o->addr >> (8 * (5 - i)));
	o->eal.threads = o->cores + 1; /* the first one is for signals and numbers */
	o->eal.first_waits = true;
	o->eal.more = o->dpdk;
	o->follow.name = o->name;
	o->follow.addr = o->addr;
	o->follow.slots = o->slots;
	o->follow.serves = o->serves;
	return true;
}

int ina_options_parse(struct ina_switch_options *o, int argc, char **argv)
{
	static const struct option longs[] = {
		{ "address", required_argument, NULL, 'a' }, { "mac", required_argument, NULL, MAC },
		{ "port", required_argument, NULL, 'p' },    { "controller", required_argument, NULL, 'C' },
		{ "ca", required_argument, NULL, CA },	     { "cert", required_argument, NULL, CERT },
		{ "key", required_argument, NULL, KEY },     { "name", required_argument, NULL, 'n' },
		{ "serves", required_argument, NULL, SERVES }, { "groups", required_argument, NULL, 'g' },
		{ "slots", required_argument, NULL, 's' },   { "cores", required_argument, NULL, 'c' },
		{ "cpus", required_argument, NULL, CPUS },   { "shared", no_argument, NULL, SHARED },
		{ "queues", required_argument, NULL, QUEUES },
		{ "memory", required_argument, NULL, MEMORY }, { "packets", required_argument, NULL, PACKETS },
		{ "idle-us", required_argument, NULL, 'i' }, { "mark", required_argument, NULL, MARK },
		{ "queue", required_argument, NULL, QUEUE }, { "fault", required_argument, NULL, FAULT },
		{ "reflect", no_argument, NULL, REFLECT },   { "metrics", required_argument, NULL, 'm' },
		{ "dpdk", required_argument, NULL, DPDK },   { "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int c;

	set_defaults(o);
	while ((c = getopt_long(argc, argv, "a:p:C:n:g:s:c:i:m:h", longs, NULL)) >= 0) {
		if (c == 'h' || c == '?')
			return 1 + usage(c == 'h' ? stdout : stderr);
		if (!parse_one(c, o))
			return 3;
	}
	if (optind < argc) {
		fprintf(stderr, "ha-switch: %s: not understood; options begin with --\n", argv[optind]);
		return 3;
	}
	return finish(o) ? 0 : 3;
}
