/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/host/backend/options.h"

#include "base/clock.h"
#include "base/config.h"
#include "ina/frame/address.h"
#include "ina/frame/option.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SOCKET "/run/hawser/ina.sock"

static int usage(FILE *out)
{
	fprintf(out,
		"usage: ha-backend [OPTIONS]   sums for the processes of this host, in the network\n"
		"  -b, --bind=ADDRESS       of the card (NETCCL_BIND_ADDR)\n"
		"  -c, --controller=WHERE   HOST:PORT or unix:PATH of ha-controller (NETCCL_CONTROLLER_ADDR)\n"
		"  -s, --socket=PATH        where clients attach (NETCCL_BACKEND; " SOCKET ")\n"
		"      --mode=OCTAL         of the socket: who may attach (0660)\n"
		"  -w, --workers=N          threads with a queue of the card each: a power of two, at most 64, the same on all hosts (2)\n"
		"  -n, --net=KIND           packet: the kernel's interface (the default); dpdk: with --port; loopback: none\n"
		"  -i, --interface=NAME     of those that have the address\n"
		"  -p, --port=SPEC          DPDK's: 0000:01:00.0, or net_memif0,role=client,socket=/run/a.sock; implies --net=dpdk\n"
		"      --cpus=LIST          as in 2-5,8: the balancer's, then the workers' (near the card, where there are enough)\n"
		"      --shared             others need the processors, too: nobody is pinned, and threads without work yield (so where there are fewer than threads)\n"
		"      --switch-mac=MAC     of the next hop to switches (ARP finds it)\n"
		"      --idle-us=N          microseconds without work, after which a thread sleeps instead of polling (1000)\n"
		"      --slots=N            aggregators of a group, a power of two (the controller's default)\n"
		"      --lease=SECONDS      a rank that is silent for so long ends its group (15)\n"
		"      --peer-timeout=SECONDS    an operation waits so long for other ranks (60)\n"
		"      --switch-timeout=SECONDS  and so long for any word of the switch (2)\n"
		"      --old-frames         groups speak NetCCL's frames: no float32 sums, no aborts\n"
		"      --clients=N --client-memory=MB   at most (64, 1024)\n"
		"      --memory=MB          DPDK's, for packets (256)\n"
		"      --log=SECONDS        a line of figures for each worker, when there was traffic; 0 = none (10)\n"
		"  -m, --metrics=WHERE      ADDRESS:PORT of the OpenMetrics, or none (127.0.0.1:9843)\n"
		"      --cert=FILE --key=FILE --ca=FILE  PEM files: TLS with the controller (NETCCL_CONTROLLER_CERT, _KEY, _CA)\n"
		"NETCCL_PACKET_LOOPBACK, NETCCL_WORKER_LOOPBACK, NETCCL_LB_LOOPBACK (set to anything but 0): operations come back from there, as if this rank were all.\n"
		"Exit status 1: it cannot run here, 2: called wrongly.\n");
	return out == stdout ? 0 : 2;
}

/* Each refusal is one line that says what the option takes. */
#define PROGRAM "ha-backend"

static bool number(const struct ina_option *o, double least, double most, double *value)
{
	char *end, what[64];

	errno = 0;
	*value = strtod(o->text, &end);
	if (*o->text >= '0' && *o->text <= '9' && !*end && !errno && *value >= least && *value <= most)
		return true;
	snprintf(what, sizeof(what), "a number from %g to %g", least, most);
	return ina_option_wrong(o, what);
}

static bool duration(const struct ina_option *o, uint64_t *ns)
{
	double v;

	if (!number(o, 0.01, 86400, &v))
		return false;
	*ns = (uint64_t)(v * HA_NS_PER_S);
	return true;
}

static bool milliseconds(const struct ina_option *o, uint32_t *ms)
{
	double v;

	if (!number(o, 0.1, 86400, &v))
		return false;
	*ms = (uint32_t)(v * 1000);
	return true;
}

static bool microseconds(const struct ina_option *o, uint64_t *ns)
{
	unsigned v;

	if (!ina_option_number(o, 0, 1000000000, &v))
		return false;
	*ns = v * HA_NS_PER_US;
	return true;
}

static bool megabytes(const struct ina_option *o, uint64_t *bytes)
{
	unsigned v;

	if (!ina_option_number(o, 4, 1u << 20, &v))
		return false;
	*bytes = (uint64_t)v << 20;
	return true;
}

static bool kind(const struct ina_option *o, struct ha_backend_settings *s)
{
	static const char *const name[] = { "packet", "dpdk", "loopback" };

	for (unsigned i = 0; i < 3; i++)
		if (!strcmp(o->text, name[i])) {
			s->net = (enum ha_backend_net)i;
			return true;
		}
	return ina_option_wrong(o, "packet, dpdk or loopback");
}

static bool octal(const struct ina_option *o, unsigned *value)
{
	char *end;
	unsigned long v = strtoul(o->text, &end, 8);

	*value = (unsigned)v;
	if (*o->text >= '0' && *o->text <= '7' && !*end && v && v <= 0777)
		return true;
	return ina_option_wrong(o, "an octal mode from 1 to 777, as in 0660");
}

static bool text_take(const struct ina_option *o, const char **to)
{
	*to = o->text;
	return *o->text ? true : ina_option_wrong(o, "a text that is not empty");
}

enum { MODE = 256, CPUS, SHARED, SWITCH_MAC, IDLE, SLOTS, LEASE, PEER, SWITCH, OLD, CLIENTS, CLIENT_MEMORY, MEMORY, LOG, CERT, KEY, CA };

static const struct option longs[] = {
	{ "bind", required_argument, NULL, 'b' },	 { "controller", required_argument, NULL, 'c' },
	{ "socket", required_argument, NULL, 's' },	 { "mode", required_argument, NULL, MODE },
	{ "workers", required_argument, NULL, 'w' },	 { "net", required_argument, NULL, 'n' },
	{ "interface", required_argument, NULL, 'i' },	 { "port", required_argument, NULL, 'p' },
	{ "shared", no_argument, NULL, SHARED },
	{ "cpus", required_argument, NULL, CPUS },	 { "switch-mac", required_argument, NULL, SWITCH_MAC },
	{ "idle-us", required_argument, NULL, IDLE },	 { "slots", required_argument, NULL, SLOTS },
	{ "lease", required_argument, NULL, LEASE },	 { "peer-timeout", required_argument, NULL, PEER },
	{ "switch-timeout", required_argument, NULL, SWITCH }, { "old-frames", no_argument, NULL, OLD },
	{ "clients", required_argument, NULL, CLIENTS }, { "client-memory", required_argument, NULL, CLIENT_MEMORY },
	{ "memory", required_argument, NULL, MEMORY },	 { "log", required_argument, NULL, LOG },
	{ "metrics", required_argument, NULL, 'm' },	 { "cert", required_argument, NULL, CERT },
	{ "key", required_argument, NULL, KEY },	 { "ca", required_argument, NULL, CA },
	{ "help", no_argument, NULL, 'h' },		 { 0 },
};

static const char *name_of(int value)
{
	for (const struct option *o = longs; o->name; o++)
		if (o->val == value)
			return o->name;
	return "?";
}

static bool option(struct ha_backend_settings *s, int c, const char *arg)
{
	const struct ina_option o = { PROGRAM, name_of(c), arg };

	switch (c) {
	case 'b': return ina_option_address(&o, &s->addr);
	case 'c': return text_take(&o, &s->controller.address);
	case 's': return text_take(&o, &s->backend.server.path);
	case MODE: return octal(&o, &s->backend.server.mode);
	case 'w': return ina_option_power_of_two(&o, 1, INA_WORKERS_MAX, &s->workers);
	case 'n': return kind(&o, s);
	case 'i': return text_take(&o, &s->interface);
	case 'p': s->net = HA_BACKEND_NET_DPDK; return text_take(&o, &s->port);
	case CPUS: return text_take(&o, &s->cpus);
	case SHARED: s->backend.limits.shared = true; return true;
	case SWITCH_MAC: s->has_switch_mac = true; return ina_option_mac(&o, s->switch_mac);
	case IDLE: return microseconds(&o, &s->backend.limits.idle_ns);
	case SLOTS: return ina_option_power_of_two(&o, 16, 32768, &s->groups.slots);
	case LEASE: return milliseconds(&o, &s->groups.lease_ms);
	case PEER: return duration(&o, &s->backend.limits.peer_ns);
	case SWITCH: return duration(&o, &s->backend.limits.switch_ns);
	case OLD: s->groups.extended = false; return true;
	case CLIENTS: return ina_option_number(&o, 1, 4096, &s->backend.server.peers);
	case CLIENT_MEMORY: return megabytes(&o, &s->backend.server.bytes);
	case MEMORY: return ina_option_number(&o, 16, 2048, &s->memory_mb);
	case LOG: return ina_option_number(&o, 0, 86400, &s->log_s);
	case 'm': return text_take(&o, &s->metrics);
	case CERT: s->controller.tls.cert = arg; return true;
	case KEY: s->controller.tls.key = arg; return true;
	case CA: s->controller.tls.ca = arg; return true;
	}
	return false;
}

static int wrong(const char *what)
{
	fprintf(stderr, "ha-backend: %s\n", what);
	return 3;
}

/* Set, to anything but 0. */
static bool says_yes(const char *name)
{
	const char *set = getenv(name);

	return set && *set && strcmp(set, "0");
}

static const char *text(const char *set)
{
	return *set ? set : NULL;
}

static int environment(struct ha_backend_settings *s, const struct ha_config *config)
{
	const char *bind = getenv("NETCCL_BIND_ADDR"), *socket = getenv("NETCCL_BACKEND");

	if (bind && !ha_address_parse(bind, &s->addr))
		return wrong("NETCCL_BIND_ADDR is no IPv4 address");
	if (ha_config_is_set(config, HA_CFG_controller_addr))
		s->controller.address = config->controller_addr;
	s->controller.tls = (struct ha_tls){ text(config->controller_ca), text(config->controller_cert), text(config->controller_key) };
	s->backend.server.path = socket && *socket ? socket : SOCKET;
	s->backend.limits.loop = says_yes("NETCCL_WORKER_LOOPBACK");
	s->backend.loop = says_yes("NETCCL_LB_LOOPBACK");
	if (says_yes("NETCCL_PACKET_LOOPBACK") || s->backend.limits.loop || s->backend.loop)
		s->net = HA_BACKEND_NET_LOOPBACK;
	return 0;
}

/* What no card is needed for has no controller either: its groups are this host's alone. */
static int check(struct ha_backend_settings *s)
{
	s->groups.workers = s->workers;
	if (s->groups.slots && s->groups.slots < 2 * s->workers)
		return wrong("--slots: two for each worker at least");
	if (s->cpus && s->backend.limits.shared)
		return wrong("--cpus and --shared: either processors of its own or shared ones (taskset says which)");
	if (s->net == HA_BACKEND_NET_LOOPBACK) {
		s->addr = s->addr ? s->addr : 0x7f000001;
		s->controller.address = NULL;
		return 0;
	}
	if (!s->addr)
		return wrong("--bind (NETCCL_BIND_ADDR): the IPv4 address of the card");
	if (!s->controller.address)
		return wrong("--controller (NETCCL_CONTROLLER_ADDR): where ha-controller is, as in 10.0.0.1:50051");
	if (s->net == HA_BACKEND_NET_DPDK && !s->port)
		return wrong("--net=dpdk: --port says which");
	return 0;
}

int ha_backend_options_parse(int argc, char **argv, const struct ha_config *config, struct ha_backend_settings *s)
{
	int c, rc;

	*s = (struct ha_backend_settings){
		.workers = 2, .log_s = 10, .metrics = "127.0.0.1:9843",
		.groups = { .extended = true, .lease_ms = 15000 },
		.controller = { .deadline_ms = 5000, .patient = true },
		.backend = { .limits = { .peer_ns = 60 * HA_NS_PER_S, .switch_ns = 2 * HA_NS_PER_S, .idle_ns = HA_NS_PER_MS } },
	};
	rc = environment(s, config);
	while (!rc && (c = getopt_long(argc, argv, "b:c:s:w:n:i:p:m:h", longs, NULL)) >= 0) {
		if (c == 'h' || c == '?')
			return 1 + usage(c == 'h' ? stdout : stderr);
		if (!option(s, c, optarg))
			return 3;
	}
	if (!rc && optind < argc)
		return 1 + usage(stderr);
	return rc ? rc : check(s);
}
