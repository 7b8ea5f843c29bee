/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/switches/neighbors.h"

#include <string.h>

static bool has_interface(const struct switches_neighbors *all, const char *interface)
{
	for (unsigned i = 0; i < all->interfaces; i++)
		if (!strcmp(all->interface[i], interface))
			return true;
	return false;
}

void switches_add_interface(struct switches_neighbors *all, const char *interface)
{
	if (all->interfaces < SWITCHES_NEIGHBORS && !has_interface(all, interface))
		snprintf(all->interface[all->interfaces++], IFNAMSIZ, "%s", interface);
}

struct switches_neighbor *switches_add_neighbor(struct switches_neighbors *all,
						const char *interface)
{
	struct switches_neighbor *new;

	if (all->n == SWITCHES_NEIGHBORS)
		return NULL;
	switches_add_interface(all, interface);
	new = &all->neighbor[all->n++];
	*new = (struct switches_neighbor) { .forwards = true };
	snprintf(new->interface, sizeof(new->interface), "%s", interface);
	return new;
}

void switches_set_id(struct ha_topo_switch *at, const char *kind, const char *value, size_t len)
{
	size_t used = (size_t)snprintf(at->id, sizeof(at->id), "%s:", kind);

	ha_switches_word(at->id + used, sizeof(at->id) - used, value, len);
}

static bool is_at_port(const struct switches_neighbor *neighbor, const struct switches_port *port)
{
	for (unsigned i = 0; i < port->interfaces; i++)
		if (!strcmp(port->interface[i], neighbor->interface))
			return true;
	return false;
}

/* A switch beside the one that was found: which it is, for the operator. */
static void take_another(struct switches_port *port, const struct ha_topo_switch *at)
{
	char one[160], other[160];

	if (port->answer == SWITCHES_FOUND)
		snprintf(port->why, sizeof(port->why), "several switches: %.100s, %.100s",
			 ha_leaf_switch_text(&port->line.at, one, sizeof(one)),
			 ha_leaf_switch_text(at, other, sizeof(other)));
	port->answer = SWITCHES_SEVERAL;
}

static void take_neighbor(struct switches_port *port, const struct switches_neighbor *neighbor)
{
	char text[160];

	if (!neighbor->forwards) {
		if (port->answer == SWITCHES_NONE)
			snprintf(port->why, sizeof(port->why), "its neighbor %s is no switch",
				 ha_leaf_switch_text(&neighbor->at, text, sizeof(text)));
		return;
	}
	if (port->answer == SWITCHES_NONE) {
		port->answer = SWITCHES_FOUND;
		port->line.at = neighbor->at;
		return;
	}
	if (strcmp(port->line.at.id, neighbor->at.id) != 0)
		take_another(port, &neighbor->at);
}

/* The interface on which the daemon does not listen; NULL: there is none. */
static const char *find_missing(const struct switches_port *port,
				const struct switches_neighbors *all)
{
	for (unsigned i = 0; i < port->interfaces; i++)
		if (!has_interface(all, port->interface[i]))
			return port->interface[i];
	return NULL;
}

/* One daemon's answer. */
static void take_answer(struct switches_port *port, const struct switches_neighbors *all)
{
	port->answer = SWITCHES_NONE;
	snprintf(port->why, sizeof(port->why), "no neighbor");
	for (unsigned i = 0; i < all->n; i++)
		if (is_at_port(&all->neighbor[i], port))
			take_neighbor(port, &all->neighbor[i]);
	if (port->answer != SWITCHES_FOUND)
		port->line.at = (struct ha_topo_switch) { .id = "" };
	snprintf(port->line.at.source, sizeof(port->line.at.source), "%s", all->source);
}

void switches_choose(struct switches_port *port, const struct switches_neighbors *daemon,
		     unsigned n)
{
	if (!port->interfaces)
		snprintf(port->why, sizeof(port->why), "it has no network interface");
	for (unsigned i = 0; port->interfaces && i < n; i++) {
		const char *missing = find_missing(port, &daemon[i]);
		struct switches_port found = *port;

		if (missing) {
			if (port->answer == SWITCHES_NOT_ASKED && !*port->why)
				snprintf(port->why, sizeof(port->why), "%s",
					 *daemon[i].why ? daemon[i].why : "");
			continue;
		}
		take_answer(&found, &daemon[i]);
		if (port->answer < SWITCHES_SEVERAL && found.answer > port->answer)
			*port = found;
	}
	if (port->interfaces && port->answer == SWITCHES_NOT_ASKED && !*port->why)
		snprintf(port->why, sizeof(port->why), "neither lldpd nor networkd listens on %s",
			 port->interface[0]);
}
