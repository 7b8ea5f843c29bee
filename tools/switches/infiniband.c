/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/switches/infiniband.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "rdma/topo/sysfs.h"
#include "tools/switches/program.h"

#define SOURCE "smpquery"

/* What follows "KEY:....." of a line; its length. NULL: there is no such line. */
static const char *find_value(const char *text, const char *key, size_t *len)
{
	size_t n = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, n) != 0 || line[n] != ':')
			continue;
		line += n + 1;
		line += strspn(line, ".");
		*len = strcspn(line, "\n");
		return line;
	}
	return NULL;
}

static uint64_t find_guid(const char *text, const char *key)
{
	size_t len;
	const char *value = find_value(text, key, &len);

	return value ? strtoull(value, NULL, 16) : 0;
}

static void take_switch(const char *info, const char *description, struct ha_topo_switch *at)
{
	uint64_t guid = find_guid(info, "SystemGuid");
	const char *value;
	size_t len;

	if (!guid)
		guid = find_guid(info, "Guid");
	snprintf(at->id, sizeof(at->id), "guid:%016" PRIx64, guid);
	value = find_value(info, "LocalPort", &len);
	if (value)
		ha_switches_word(at->port, sizeof(at->port), value, len);
	value = description ? find_value(description, "Node Description", &len) : NULL;
	if (value)
		ha_switches_word(at->name, sizeof(at->name), value, len);
}

void switches_take_node(const char *info, const char *description, struct switches_port *port)
{
	size_t len;
	const char *type = find_value(info, "NodeType", &len);

	if (!type || !find_guid(info, "Guid")) {
		snprintf(port->why, sizeof(port->why), SOURCE " printed no NodeInfo");
		return;
	}
	snprintf(port->line.at.source, sizeof(port->line.at.source), SOURCE);
	if (len == strlen("Switch") && !strncmp(type, "Switch", len)) {
		port->answer = SWITCHES_FOUND;
		take_switch(info, description, &port->line.at);
		return;
	}
	port->answer = SWITCHES_NONE;
	snprintf(port->why, sizeof(port->why), "its neighbor is no switch but a %.*s", (int)len,
		 type);
}

/* The first hop of a directed route is the port by which it leaves the host's own node. */
static char *ask_program(const struct switches_port *port, const char *what, char *why, size_t size)
{
	char number[8], route[16];
	const char *const argv[] = { "smpquery", "-C", port->line.device, "-P", number, "-D", what,
				     route,      NULL };

	snprintf(number, sizeof(number), "%d", port->line.port);
	snprintf(route, sizeof(route), "0,%d", port->line.port);
	return switches_run(argv, why, size);
}

void switches_ask_infiniband(const char *root, struct switches_port *port)
{
	char *info, *description, ignored[256];

	if (!port->link_is_up) {
		port->answer = SWITCHES_NONE;
		snprintf(port->why, sizeof(port->why), "its link is down");
		snprintf(port->line.at.source, sizeof(port->line.at.source), "sysfs");
		return;
	}
	if (!ha_sysfs_exists(root, "/sys/class/infiniband_mad")) {
		snprintf(port->why, sizeof(port->why),
			 "the kernel's ib_umad is not there: modprobe ib_umad");
		return;
	}
	info = ask_program(port, "nodeinfo", port->why, sizeof(port->why));
	if (!info)
		return;
	description = ask_program(port, "nodedesc", ignored, sizeof(ignored));
	switches_take_node(info, description, port);
	free(description);
	free(info);
}
