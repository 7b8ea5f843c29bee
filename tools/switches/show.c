/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/switches/show.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/newfile.h"

/* ---- for people ---- */

struct row {
	char port[HA_DEVICE_NAME_MAX + 8], interface[160], at[288], its_port[64], source[16];
};

static void print_interfaces(const struct switches_port *port, char *buf, size_t len)
{
	size_t used = (size_t)snprintf(buf, len, "%s", port->interfaces ? port->interface[0] : "-");

	for (unsigned i = 1; i < port->interfaces && used < len; i++)
		used += (size_t)snprintf(buf + used, len - used, ",%s", port->interface[i]);
}

static void row_make(const struct switches_port *port, struct row *row)
{
	const struct ha_topo_switch *at = &port->line.at;

	snprintf(row->port, sizeof(row->port), "%s:%d", port->line.device, port->line.port);
	print_interfaces(port, row->interface, sizeof(row->interface));
	if (port->answer == SWITCHES_FOUND)
		ha_leaf_switch_text(at, row->at, sizeof(row->at));
	else
		snprintf(row->at, sizeof(row->at), "%s%s",
			 port->answer == SWITCHES_NOT_ASKED ? "not asked: " : "", port->why);
	snprintf(row->its_port, sizeof(row->its_port), "%s", *at->port ? at->port : "-");
	snprintf(row->source, sizeof(row->source), "%s", *at->source ? at->source : "-");
}

static int width_of(int width, const char *text)
{
	return (int)strlen(text) > width ? (int)strlen(text) : width;
}

void switches_show_table(const struct switches_list *list, FILE *out)
{
	struct row *rows = calloc((size_t)list->n + 1, sizeof(*rows));
	int port = 0, interface = 0, at = 0, its_port = 0;

	if (!rows)
		return;
	rows[0] = (struct row) { "PORT", "INTERFACE", "SWITCH", "ITS PORT", "SOURCE" };
	for (int i = 0; i < list->n; i++)
		row_make(&list->port[i], &rows[1 + i]);
	for (int i = 0; i <= list->n; i++) {
		port = width_of(port, rows[i].port);
		interface = width_of(interface, rows[i].interface);
		at = width_of(at, rows[i].at);
		its_port = width_of(its_port, rows[i].its_port);
	}
	for (int i = 0; i <= list->n; i++)
		fprintf(out, "%-*s  %-*s  %-*s  %-*s  %s\n", port, rows[i].port, interface,
			rows[i].interface, at, rows[i].at, its_port, rows[i].its_port,
			rows[i].source);
	free(rows);
}

/* ---- for programs ---- */

static void text_put(json_t *object, const char *key, const char *text)
{
	json_object_set_new(object, key, *text ? json_string(text) : json_null());
}

static json_t *port_object(const struct switches_port *port)
{
	static const char *const answers[] = {
		[SWITCHES_NOT_ASKED] = "not_asked",
		[SWITCHES_NONE] = "none",
		[SWITCHES_SEVERAL] = "several",
		[SWITCHES_FOUND] = "found",
	};
	const struct ha_topo_switch *at = &port->line.at;
	json_t *o = json_object(), *interfaces = json_array();
	char label[HA_DEVICE_NAME_MAX + 8];

	for (unsigned i = 0; i < port->interfaces; i++)
		json_array_append_new(interfaces, json_string(port->interface[i]));
	snprintf(label, sizeof(label), "%s:%d", port->line.device, port->line.port);
	json_object_set_new(o, "device", json_string(label));
	json_object_set_new(o, "link_layer",
			    json_string(port->is_infiniband ? "InfiniBand" : "RoCE"));
	json_object_set_new(o, "interfaces", interfaces);
	json_object_set_new(o, "answer", json_string(answers[port->answer]));
	text_put(o, "switch", at->id);
	text_put(o, "switch_name", at->name);
	text_put(o, "switch_port", at->port);
	text_put(o, "source", at->source);
	text_put(o, "why", port->answer == SWITCHES_FOUND ? "" : port->why);
	return o;
}

int switches_show_json(const struct switches_list *list, FILE *out)
{
	json_t *root = json_object(), *ports = json_array();
	int rc;

	for (int i = 0; i < list->n; i++)
		json_array_append_new(ports, port_object(&list->port[i]));
	json_object_set_new(root, "ports", ports);
	rc = json_dumpf(root, out, JSON_INDENT(2)) ? -EIO : 0;
	json_decref(root);
	fputc('\n', out);
	return rc || ferror(out) ? -EIO : 0;
}

/* ---- for the jobs ---- */

static void write_lines(const struct switches_list *list, FILE *f)
{
	fprintf(f,
		HA_SWITCHES_HEAD "\n# Written by `ha switches --write`: port, the switch that it "
				 "hangs on, the switch's port, source, the switch's name.\n");
	for (int i = 0; i < list->n; i++)
		if (list->port[i].answer != SWITCHES_NOT_ASKED)
			ha_switches_print(&list->port[i].line, f);
}

int switches_write_file(const struct switches_list *list, const char *path)
{
	struct ha_new_file file;
	int err;

	if (!strcmp(path, HA_SWITCHES_FILE))
		mkdir("/run/hawser", 0755); /* else the next call says what is wrong */
	err = ha_new_file_open(&file, path);
	if (err)
		return err;
	fchmod(fileno(file.out), 0644);
	write_lines(list, file.out);
	return ha_new_file_close(&file);
}
