/* SPDX-License-Identifier: BSD-3-Clause */
/* lldpd, by its program lldpcli, whose JSON ("json0") is meant for programs: arrays everywhere,
 * however many there are (lldpcli(8)). */
#include "tools/switches/neighbors.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "tools/switches/program.h"

#define PROGRAM "lldpcli"

/* "value" of the first of an object's `key`; NULL: there is none. */
static const char *first_value(const json_t *object, const char *key)
{
	return json_string_value(
		json_object_get(json_array_get(json_object_get(object, key), 0), "value"));
}

/* Bridge or router. An LLDP neighbor need not say what it can do. */
static bool chassis_forwards(const json_t *chassis)
{
	const json_t *list = json_object_get(chassis, "capability"), *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		const char *type = json_string_value(json_object_get(one, "type"));

		if (type && (!strcmp(type, "Bridge") || !strcmp(type, "Router")) &&
		    json_is_true(json_object_get(one, "enabled")))
			return true;
	}
	return !json_array_size(list);
}

static void take_id(struct ha_topo_switch *at, const json_t *chassis)
{
	const json_t *id = json_array_get(json_object_get(chassis, "id"), 0);
	const char *kind = json_string_value(json_object_get(id, "type"));
	const char *value = json_string_value(json_object_get(id, "value"));

	if (kind && value && strlen(kind) < 16)
		switches_set_id(at, kind, value, strlen(value));
}

/* A port's MAC address says little to people; its description does. */
static void take_port(struct ha_topo_switch *at, const json_t *port)
{
	const json_t *id = json_array_get(json_object_get(port, "id"), 0);
	const char *kind = json_string_value(json_object_get(id, "type"));
	const char *value = json_string_value(json_object_get(id, "value"));
	const char *about = first_value(port, "descr");

	if (about && (!value || (kind && !strcmp(kind, "mac"))))
		value = about;
	if (value)
		ha_switches_word(at->port, sizeof(at->port), value, strlen(value));
}

static void take_neighbor(const json_t *one, const char *interface, struct switches_neighbors *all)
{
	const json_t *chassis = json_array_get(json_object_get(one, "chassis"), 0);
	const char *via = json_string_value(json_object_get(one, "via"));
	const char *name = first_value(chassis, "name");
	struct switches_neighbor *new;

	if (!via || strcmp(via, "LLDP") != 0) /* other protocols name a switch otherwise */
		return;
	new = switches_add_neighbor(all, interface);
	if (!new)
		return;
	new->forwards = chassis_forwards(chassis);
	take_id(&new->at, chassis);
	take_port(&new->at, json_array_get(json_object_get(one, "port"), 0));
	if (name)
		ha_switches_word(new->at.name, sizeof(new->at.name), name, strlen(name));
	if (!*new->at.id)
		all->n--;
}

/* Whether it receives there: "RX and TX", "TX only", "disabled". */
static void take_interface(const json_t *one, const char *interface, struct switches_neighbors *all)
{
	const char *status = first_value(one, "status");

	if (!status || strstr(status, "RX"))
		switches_add_interface(all, interface);
}

static bool take_list(const char *text, struct switches_neighbors *all,
		      void (*take)(const json_t *one, const char *interface,
				   struct switches_neighbors *all))
{
	json_t *root = json_loads(text, 0, NULL), *part, *one;
	size_t i, k;
	bool ok = json_is_array(json_object_get(root, "lldp"));

	json_array_foreach(json_object_get(root, "lldp"), i, part)
	{
		json_array_foreach(json_object_get(part, "interface"), k, one)
		{
			const char *name = json_string_value(json_object_get(one, "name"));

			if (name && strlen(name) < IFNAMSIZ)
				take(one, name, all);
		}
	}
	json_decref(root);
	return ok;
}

bool switches_take_lldpd(const char *neighbors, const char *interfaces,
			 struct switches_neighbors *all)
{
	return take_list(interfaces, all, take_interface) &&
	       take_list(neighbors, all, take_neighbor);
}

static char *ask_program(const char *socket, const char *what, const char *how, char *why,
			 size_t size)
{
	const char *const usual[] = { PROGRAM, "-f", "json0", "show", what, how, NULL };
	const char *const other[] = {
		PROGRAM, "-u", socket, "-f", "json0", "show", what, how, NULL
	};

	return switches_run(socket ? other : usual, why, size);
}

void switches_ask_lldpd(const char *socket, struct switches_neighbors *all)
{
	char *interfaces, *neighbors = NULL;

	all->source = "lldpd";
	interfaces = ask_program(socket, "interfaces", NULL, all->why, sizeof(all->why));
	if (interfaces)
		neighbors = ask_program(socket, "neighbors", "details", all->why, sizeof(all->why));
	if (neighbors && !switches_take_lldpd(neighbors, interfaces, all))
		snprintf(all->why, sizeof(all->why), PROGRAM " printed no JSON of lldpd's");
	free(neighbors);
	free(interfaces);
}
