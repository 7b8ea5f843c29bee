/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/host/backend/options.h"

#include "base/clock.h"
#include "base/config.h"
#include "ina/frame/address.h"
#include "ina/frame/option.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SOCKET "/run/hawser/ina.sock"

/* A number of seconds, not a whole one perhaps, from low to high milliseconds: nanoseconds. */
static bool take_seconds(void *target, const struct ha_option_text *given)
{
	const struct ha_option *o = given->option;
	double low = (double)o->low / 1000, high = (double)o->high / 1000, seconds;
	char *end;

	errno = 0;
	seconds = strtod(given->text, &end);
	if (*given->text < '0' || *given->text > '9' || *end || errno || seconds < low ||
	    seconds > high)
		return ha_option_refuse(given, "a number from %g to %g", low, high);
	*(uint64_t *)((char *)target + o->offset) = (uint64_t)(seconds * HA_NS_PER_S);
	return true;
}

static bool take_octal(void *target, const struct ha_option_text *given)
{
	struct ha_backend_settings *s = target;
	char *end;
	unsigned long v = strtoul(given->text, &end, 8);

	s->backend.server.mode = (unsigned)v;
	return *given->text >= '0' && *given->text <= '7' && !*end && v && v <= 0777;
}

/* DPDK's. */
static bool take_port(void *target, const struct ha_option_text *given)
{
	struct ha_backend_settings *s = target;

	s->net = HA_BACKEND_NET_DPDK;
	s->port = given->text;
	return *given->text;
}

#define HA_TARGET struct ha_backend_settings
#define SECONDS(member, from_ms) HA_CALL(take_seconds, NULL), HA_RANGE_(member, from_ms, 86400000)

static const char *const nets[] = { "packet", "dpdk", "loopback", NULL }; /* enum ha_backend_net */

static const struct ha_option rows[] = {
	{ "bind", 'b', "ADDRESS", "of the card (NETCCL_BIND_ADDR)", INA_ADDRESS(addr) },
	{ "controller", 'c', "WHERE",
	  "HOST:PORT or unix:PATH of ha-controller (NETCCL_CONTROLLER_ADDR)",
	  HA_TEXT(controller.address) },
	{ "socket", 's', "PATH", "where clients attach (NETCCL_BACKEND; " SOCKET ")",
	  HA_TEXT(backend.server.path) },
	{ "mode", 0, "OCTAL", "of the socket: who may attach (0660)",
	  HA_CALL(take_octal, "an octal mode from 1 to 777, as in 0660") },
	{ "workers", 'w', "N",
	  "threads with a queue of the card each: a power of two, at most 64, the same on all "
	  "hosts (2)",
	  INA_POWER_OF_TWO(workers, 1, INA_WORKERS_MAX) },
	{ "net", 'n', "KIND",
	  "packet: the kernel's interface; dpdk: with --port; loopback: none (packet)",
	  HA_CHOICE(net, nets) },
	{ "interface", 'i', "NAME", "of those that have the address", HA_TEXT(interface) },
	{ "port", 'p', "SPEC",
	  "DPDK's: 0000:01:00.0, or net_memif0,role=client,socket=/run/a.sock; implies --net=dpdk",
	  HA_CALL(take_port, "a port of DPDK") },
	{ "cpus", 0, "LIST",
	  "as in 2-5,8: the balancer's, then the workers' (near the card, where there are enough)",
	  HA_TEXT(cpus) },
	{ "shared", 0, NULL,
	  "others need the processors, too: nobody is pinned, and threads without work yield (so "
	  "where there are fewer than threads)",
	  HA_FLAG(backend.limits.shared) },
	{ "switch-mac", 0, "MAC", "of the next hop to switches (ARP finds it)", INA_MAC(switch_mac),
	  HA_GIVEN(has_switch_mac) },
	{ "idle-us", 0, "N",
	  "microseconds without work, after which a thread sleeps instead of polling (1000)",
	  HA_NUMBER(backend.limits.idle_ns, 0, 1000000000), .scale = HA_NS_PER_US },
	{ "slots", 0, "N", "aggregators of a group, a power of two (the controller's default)",
	  INA_POWER_OF_TWO(groups.slots, 16, 32768) },
	{ "lease", 0, "SECONDS", "a rank that is silent for so long ends its group (15)",
	  SECONDS(lease_ns, 100) },
	{ "peer-timeout", 0, "SECONDS", "an operation waits so long for other ranks (60)",
	  SECONDS(backend.limits.peer_ns, 10) },
	{ "switch-timeout", 0, "SECONDS", "and so long for any packet from the switch (2)",
	  SECONDS(backend.limits.switch_ns, 10) },
	{ "old-frames", 0, NULL, "groups use NetCCL's frames: no float32 sums, no aborts",
	  HA_FLAG_OFF(groups.extended) },
	{ "clients", 0, "N", "at most (64)", HA_NUMBER(backend.server.peers, 1, 4096) },
	{ "client-memory", 0, "MB", "at most (1024)", HA_NUMBER(backend.server.bytes, 4, 1u << 20),
	  .scale = 1 << 20 },
	{ "memory", 0, "MB", "DPDK's, for packets (256)", HA_NUMBER(memory_mb, 16, 2048) },
	{ "log", 0, "SECONDS",
	  "a line of figures for each worker, when there was traffic; 0 = none (10)",
	  HA_NUMBER(log_s, 0, 86400) },
	{ "metrics", 'm', "WHERE", "ADDRESS:PORT of the OpenMetrics, or none (127.0.0.1:9843)",
	  HA_TEXT(metrics) },
	{ "cert", 0, "FILE", "PEM file: TLS with the controller (NETCCL_CONTROLLER_CERT)",
	  HA_TEXT(controller.tls.cert) },
	{ "key", 0, "FILE", "PEM file: TLS with the controller (NETCCL_CONTROLLER_KEY)",
	  HA_TEXT(controller.tls.key) },
	{ "ca", 0, "FILE", "PEM file: TLS with the controller (NETCCL_CONTROLLER_CA)",
	  HA_TEXT(controller.tls.ca) },
	{ 0 },
};

static const struct ha_program program = {
	.name = "ha-backend",
	.about = "Makes sums for the processes of this host, in the network.",
	.options = { rows },
	.notes = "NETCCL_PACKET_LOOPBACK, NETCCL_WORKER_LOOPBACK, NETCCL_LB_LOOPBACK (set to "
		 "anything but 0): operations come back from "
		 "there, as if this rank were all.\nExit status: 1 it cannot run here, 2 called "
		 "wrongly.",
};

static int report_error(const char *what)
{
	fprintf(stderr, "ha-backend: %s\n", what);
	return 3;
}

/* Set, to anything but 0. */
static bool is_enabled(const char *name)
{
	const char *set = getenv(name);

	return set && *set && strcmp(set, "0");
}

static const char *text_or_null(const char *set)
{
	return *set ? set : NULL;
}

static int read_environment(struct ha_backend_settings *s, const struct ha_config *config)
{
	const char *bind = getenv("NETCCL_BIND_ADDR"), *socket = getenv("NETCCL_BACKEND");

	if (bind && !ha_address_parse(bind, &s->addr))
		return report_error("NETCCL_BIND_ADDR is no IPv4 address");
	if (ha_config_is_set(config, HA_CFG_controller_addr))
		s->controller.address = config->controller_addr;
	s->controller.tls = (struct ha_tls) { text_or_null(config->controller_ca),
					      text_or_null(config->controller_cert),
					      text_or_null(config->controller_key) };
	s->backend.server.path = socket && *socket ? socket : SOCKET;
	s->backend.limits.loop = is_enabled("NETCCL_WORKER_LOOPBACK");
	s->backend.loop = is_enabled("NETCCL_LB_LOOPBACK");
	if (is_enabled("NETCCL_PACKET_LOOPBACK") || s->backend.limits.loop || s->backend.loop)
		s->net = HA_BACKEND_NET_LOOPBACK;
	return 0;
}

/* What no card is needed for has no controller either: its groups are this host's alone. */
static int check_settings(struct ha_backend_settings *s)
{
	s->groups.workers = s->workers;
	s->groups.lease_ms = (uint32_t)(s->lease_ns / HA_NS_PER_MS);
	if (s->groups.slots && s->groups.slots < 2 * s->workers)
		return report_error("--slots: two for each worker at least");
	if (s->cpus && s->backend.limits.shared)
		return report_error(
			"--cpus and --shared: either processors of its own or shared ones "
			"(taskset says which)");
	if (s->net == HA_BACKEND_NET_LOOPBACK) {
		s->addr = s->addr ? s->addr : 0x7f000001;
		s->controller.address = NULL;
		return 0;
	}
	if (!s->addr)
		return report_error(
			"--bind (NETCCL_BIND_ADDR) is missing: the IPv4 address of the card");
	if (!s->controller.address)
		return report_error(
			"--controller (NETCCL_CONTROLLER_ADDR) is missing: where ha-controller "
			"is, as in 10.0.0.1:50051");
	if (s->net == HA_BACKEND_NET_DPDK && !s->port)
		return report_error("--net=dpdk: --port is missing: the port of DPDK, as in "
				    "net_af_packet0,iface=eth1");
	return 0;
}

int ha_backend_options_parse(int argc, char **argv, const struct ha_config *config,
			     struct ha_backend_settings *s)
{
	int rc;

	*s = (struct ha_backend_settings) {
		.workers = 2,
		.log_s = 10,
		.metrics = "127.0.0.1:9843",
		.lease_ns = 15 * HA_NS_PER_S,
		.groups = { .extended = true },
		.controller = { .deadline_ms = 5000, .retry = true },
		.backend = { .limits = { .peer_ns = 60 * HA_NS_PER_S,
					 .switch_ns = 2 * HA_NS_PER_S,
					 .idle_ns = HA_NS_PER_MS } },
	};
	rc = read_environment(s, config);
	if (!rc)
		rc = ha_options_parse(&program, argc, argv, s);
	return rc ? rc : check_settings(s);
}
