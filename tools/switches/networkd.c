/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * systemd-networkd, by the files that it keeps of neighbors: /run/systemd/netif/lldp/IFINDEX, the
 * frames as they came, each behind its length (64 bits, little-endian). There is a file only where
 * there is a neighbor. The newest versions of systemd keep none.
 */
#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "rdma/topo/sysfs.h"
#include "tools/switches/neighbors.h"

#define FOLDER "/run/systemd/netif/lldp"
#define SIZE_MAX_FILE 65536 /* some 40 frames */

bool switches_take_networkd(const unsigned char *data, size_t size, const char *interface,
			    struct switches_neighbors *all)
{
	bool ok = true;
	uint64_t length;

	while (size) {
		if (size < sizeof(length))
			return false;
		memcpy(&length, data, sizeof(length));
		length = le64toh(length);
		data += sizeof(length);
		size -= sizeof(length);
		if (length > size)
			return false;
		ok &= switches_take_frame(data, (size_t)length, interface, all);
		data += length;
		size -= (size_t)length;
	}
	return ok;
}

static void read_interface(const char *root, const char *interface, struct switches_neighbors *all)
{
	unsigned char data[SIZE_MAX_FILE];
	char path[PATH_MAX];
	size_t size;
	FILE *f;

	snprintf(path, sizeof(path), "%s" FOLDER "/%ld", root,
		 ha_sysfs_number(root, 0, "/sys/class/net/%s/ifindex", interface));
	f = fopen(path, "re");
	if (!f) {
		if (errno != ENOENT)
			snprintf(all->why, sizeof(all->why), "%.200s: %s", path, strerror(errno));
		return;
	}
	switches_add_interface(all, interface);
	size = fread(data, 1, sizeof(data), f);
	fclose(f);
	if (!switches_take_networkd(data, size, interface, all))
		snprintf(all->why, sizeof(all->why), "%.200s holds something else than LLDP frames",
			 path);
}

void switches_ask_networkd(const char *root, const struct switches_list *list,
			   struct switches_neighbors *all)
{
	all->source = "networkd";
	for (int i = 0; i < list->n; i++)
		for (unsigned k = 0; k < list->port[i].interfaces; k++)
			read_interface(root, list->port[i].interface[k], all);
}
