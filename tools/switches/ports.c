/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/switches/ports.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "rdma/topo/sysfs.h"

#define LINK_UP 5 /* phys_state: "5: LinkUp" (InfiniBand's PortPhysicalState) */

static void add_interface(struct switches_port *port, const char *name)
{
	if (*name && port->interfaces < SWITCHES_INTERFACES)
		snprintf(port->interface[port->interfaces++], IFNAMSIZ, "%s", name);
}

/* LLDP goes over the cables, so of a bond its members count, and of a virtual function the physical
 * one. */
static void find_interfaces(const char *root, struct switches_port *port)
{
	char physical[HA_DEVICE_NAME_MAX], name[IFNAMSIZ], members[256], *at = members, *member;

	ha_sysfs_first(root, physical, sizeof(physical),
		       "/sys/class/infiniband/%s/device/physfn/infiniband", port->line.device);
	ha_sysfs_netdev(root, name, sizeof(name), *physical ? physical : port->line.device,
			port->line.port);
	if (ha_sysfs_read(root, members, sizeof(members), "/sys/class/net/%s/bonding/slaves",
			  name) <= 0) {
		add_interface(port, name);
		return;
	}
	while ((member = strsep(&at, " ")))
		add_interface(port, member);
}

/* False: there is no such port. */
static bool take_port(const char *root, const char *device, int number, struct switches_list *list)
{
	struct switches_port *port = &list->port[list->n];
	char layer[32];

	if (list->n == HA_TOPO_PORTS_MAX ||
	    !ha_sysfs_exists(root, "/sys/class/infiniband/%s/ports/%d", device, number))
		return false;
	*port = (struct switches_port) { .line.port = number };
	ha_switches_word(port->line.device, sizeof(port->line.device), device, strlen(device));
	ha_sysfs_read(root, layer, sizeof(layer), "/sys/class/infiniband/%s/ports/%d/link_layer",
		      device, number);
	port->is_infiniband = !strcmp(layer, "InfiniBand");
	port->link_is_up = ha_sysfs_number(root, 0, "/sys/class/infiniband/%s/ports/%d/phys_state",
					   device, number) == LINK_UP;
	if (!port->is_infiniband)
		find_interfaces(root, port);
	list->n++;
	return true;
}

void switches_list_ports(const char *root, struct switches_list *list)
{
	struct dirent **entries;
	char path[PATH_MAX];
	int n;

	list->n = 0;
	snprintf(path, sizeof(path), "%s/sys/class/infiniband", root);
	n = scandir(path, &entries, NULL, versionsort);
	for (int i = 0; i < n; i++) {
		const char *device = entries[i]->d_name;

		for (int port = 1; *device != '.' && take_port(root, device, port, list); port++)
			;
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
}
