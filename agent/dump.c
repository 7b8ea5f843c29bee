/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/dump.h"

#include "agent/daemon.h"
#include "base/clock.h"

#include <arpa/inet.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static json_t *address_json(uint32_t ip)
{
	char text[INET_ADDRSTRLEN] = "";

	if (!ip)
		return json_null();
	inet_ntop(AF_INET, &ip, text, sizeof(text));
	return json_string(text);
}

static json_t *slot_json(const struct ha_daemon *d, unsigned at)
{
	const struct ha_slot *slot = &d->slots.slot[at];

	return json_pack("{si, so, so, so, so, si, si, ss}", "slot", (int)at, "sout_source",
			 address_json(slot->src), "sout_destination", address_json(slot->dst),
			 "sup_source", address_json(slot->sup_src), "sup_destination",
			 address_json(slot->sup_dst), "connections", (int)slot->refs, "share",
			 (int)slot->value, "from", ha_advisor_source(&d->advisor, at));
}

static json_t *slots_json(const struct ha_daemon *d)
{
	json_t *all = json_array();

	for (unsigned i = 0; i < MPIB_HINT_MAX_ENTRIES; i++)
		if (ha_slot_used(&d->slots.slot[i]))
			json_array_append_new(all, slot_json(d, i));
	return all;
}

static json_t *ports_json(const struct ha_daemon *d)
{
	json_t *all = json_array();

	for (unsigned i = 0; i < d->advisor.ports.n; i++) {
		const struct ha_port *p = &d->advisor.ports.port[i];
		const struct ha_congestion *t = &d->advisor.congestion[i];
		json_t *one = json_pack("{ss, si, ss, sb, sI, sI, sb}", "device", p->device, "port",
					p->number, "interface", p->interface, "up", p->up, "mbps",
					(json_int_t)p->mbps, "troubles_per_second",
					(json_int_t)t->per_second, "congested", t->congested);

		for (int c = 0; c < HA_PORT_COUNTERS; c++)
			json_object_set_new(one, ha_port_counter_names[c],
					    json_integer((json_int_t)p->count[c]));
		json_array_append_new(all, one);
	}
	return all;
}

static json_t *rules_json(const struct ha_rules *rules)
{
	json_t *all = json_array();
	char *text = NULL, *state = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return all;
	ha_rules_print(rules, out);
	fclose(out);
	for (char *line = strtok_r(text, "\n", &state); line; line = strtok_r(NULL, "\n", &state))
		json_array_append_new(all, json_string(line));
	free(text);
	return all;
}

/* ---- numbers: once for both formats ---- */

struct number {
	const char *name, *help;
	bool counter;
	uint64_t value;
};

#define NUMBERS 18

static void collect_numbers(const struct ha_daemon *d, struct number n[NUMBERS])
{
	const struct ha_registrar *r = &d->registrar;
	uint64_t up = (ha_clock_now(&ha_clock_live) - d->started) / HA_NS_PER_S;
	const struct number all[NUMBERS] = {
		{ "slots_used", "Slots of the hints file that have a flow.", false, d->slots.used },
		{ "slots", "Slots of the hints file.", false, MPIB_HINT_MAX_ENTRIES },
		{ "registered_connections", "Connections that are registered.", false,
		  d->slots.nregistrations },
		{ "processes", "Processes that have a socket or a registration.", false,
		  d->slots.nowners },
		{ "sockets", "Registration sockets that are open.", false, r->nconns },
		{ "rules", "Rules set by hand.", false, d->advisor.manual.n },
		{ "uptime_seconds", "Seconds since the agent started.", false, up },
		{ "registrations", "Registrations that were accepted.", true,
		  r->counts.registered },
		{ "deregistrations", "Deregistrations that were accepted.", true,
		  r->counts.deregistered },
		{ "refused_no_slot", "Registrations refused because no slot was free.", true,
		  r->counts.no_slot },
		{ "refused_invalid", "Messages refused because they were invalid.", true,
		  r->counts.invalid },
		{ "accepted", "Sockets that connected.", true, r->accepted },
		{ "unauthorized", "Sockets of users who may not register.", true, r->unauthorized },
		{ "crowded", "Sockets refused because too many were open.", true, r->crowded },
		{ "dropped", "Sockets hung up on: not the protocol, or stuck.", true, r->dropped },
		{ "reclaimed", "Registrations of processes that ended and had not released them.",
		  true, d->slots.reclaimed },
		{ "hint_writes", "Writes to entries of the hints file.", true, d->slots.writes },
		{ "restored", "Times that removed files were made again.", true, d->restored },
	};

	memcpy(n, all, sizeof(all));
}

void ha_dump(const struct ha_daemon *d, FILE *out)
{
	struct number n[NUMBERS];
	json_t *all = json_pack("{ss, si, ss, ss, ss, ss, si}", "version", HAWSER_VERSION, "pid",
				(int)getpid(), "policy", ha_advisor_policy_text(d->advisor.policy),
				"socket", d->options.socket, "hints", d->options.hints, "metrics",
				d->options.metrics, "metrics_port", (int)d->http.port);
	json_t *counts = json_object();

	collect_numbers(d, n);
	for (int i = 0; i < NUMBERS; i++)
		json_object_set_new(counts, n[i].name, json_integer((json_int_t)n[i].value));
	json_object_set_new(all, "numbers", counts);
	json_object_set_new(all, "rules", rules_json(&d->advisor.manual));
	json_object_set_new(all, "ports", ports_json(d));
	json_object_set_new(all, "slots", slots_json(d));
	json_dumpf(all, out, JSON_INDENT(2));
	fputc('\n', out);
	json_decref(all);
}

/* ---- OpenMetrics ---- */

static void print_head(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# TYPE hawser_agent_%s %s\n# HELP hawser_agent_%s %s\n", name, type, name,
		help);
}

static void ports_print(const struct ha_daemon *d, FILE *out)
{
	const struct ha_ports *ports = &d->advisor.ports;

	for (int c = 0; c < HA_PORT_COUNTERS; c++) {
		char name[64];

		/* A counter's: it may go back to 0 with its driver. */
		snprintf(name, sizeof(name), "port_%s", ha_port_counter_names[c]);
		print_head(out, name, "counter",
			   "Summed over the sources of the port; see docs/operations.md.");
		for (unsigned i = 0; i < ports->n; i++)
			fprintf(out,
				"hawser_agent_%s_total{device=\"%s\",port=\"%d\",interface=\"%s\"} "
				"%llu\n",
				name, ports->port[i].device, ports->port[i].number,
				ports->port[i].interface,
				(unsigned long long)ports->port[i].count[c]);
	}
	print_head(out, "port_up", "gauge", "The port has a link.");
	for (unsigned i = 0; i < ports->n; i++)
		fprintf(out,
			"hawser_agent_port_up{device=\"%s\",port=\"%d\",interface=\"%s\"} %d\n",
			ports->port[i].device, ports->port[i].number, ports->port[i].interface,
			ports->port[i].up);
	print_head(out, "port_congested", "gauge", "The port counts as congested.");
	for (unsigned i = 0; i < ports->n; i++)
		fprintf(out,
			"hawser_agent_port_congested{device=\"%s\",port=\"%d\",interface=\"%s\"} "
			"%d\n",
			ports->port[i].device, ports->port[i].number, ports->port[i].interface,
			d->advisor.congestion[i].congested);
}

static void slots_print(const struct ha_daemon *d, FILE *out)
{
	print_head(out, "share", "gauge", "SUP's share of a flow, parts per 1024.");
	for (unsigned i = 0; i < MPIB_HINT_MAX_ENTRIES; i++) {
		const struct ha_slot *slot = &d->slots.slot[i];
		char src[INET_ADDRSTRLEN], dst[INET_ADDRSTRLEN];

		if (!ha_slot_used(slot))
			continue;
		inet_ntop(AF_INET, &slot->src, src, sizeof(src));
		inet_ntop(AF_INET, &slot->dst, dst, sizeof(dst));
		fprintf(out,
			"hawser_agent_share{slot=\"%u\",source=\"%s\",destination=\"%s\",from=\"%"
			"s\"} %u\n",
			i, src, dst, ha_advisor_source(&d->advisor, i), slot->value);
	}
}

void ha_dump_metrics(const struct ha_daemon *d, FILE *out)
{
	struct number n[NUMBERS];

	collect_numbers(d, n);
	for (int i = 0; i < NUMBERS; i++) {
		print_head(out, n[i].name, n[i].counter ? "counter" : "gauge", n[i].help);
		fprintf(out, "hawser_agent_%s%s %llu\n", n[i].name, n[i].counter ? "_total" : "",
			(unsigned long long)n[i].value);
	}
	ports_print(d, out);
	slots_print(d, out);
	fputs("# EOF\n", out);
}
