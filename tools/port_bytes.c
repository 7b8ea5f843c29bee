/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/port_bytes.h"

#include <stdlib.h>
#include <string.h>

#include "rdma/topo/sysfs.h"
#include "softroce/control.h"

/* "soft0:1" of the pages is the software NIC "soft0". */
static struct ha_port_bytes *find_soft(struct ha_port_bytes *ports, unsigned n,
				       const struct sr_control_page *page)
{
	size_t length = strlen(page->device);

	for (unsigned i = 0; i < n; i++)
		if ((uint32_t)ports[i].pid == page->pid &&
		    !strncmp(ports[i].name, page->device, length) && ports[i].name[length] == ':')
			return &ports[i];
	return NULL;
}

static void read_soft(struct ha_port_bytes *ports, unsigned n)
{
	struct sr_control_entry *list;
	int entries;

	list = sr_control_list(NULL, &entries);
	for (int i = 0; i < entries; i++) {
		struct ha_port_bytes *port = find_soft(ports, n, &list[i].page);

		if (!port)
			continue;
		(void)sr_control_refresh(&list[i]); /* without an answer: as it was */
		port->soft = true;
		port->sent = list[i].page.counters.sent_bytes;
		port->received = list[i].page.counters.rcvd_bytes;
	}
	free(list);
}

/* The kernel counts words of 4 bytes. */
static uint64_t read_counter(const struct ha_port_bytes *port, const char *sysfs,
			     const char *counter)
{
	const char *colon = strchr(port->name, ':');
	int length = (int)strcspn(port->name, ":");

	return (uint64_t)ha_sysfs_number(sysfs, 0,
					 "/sys/class/infiniband/%.*s/ports/%s/counters/%s", length,
					 port->name, colon ? colon + 1 : "1", counter) *
	       4;
}

void ha_port_bytes_read(struct ha_port_bytes *ports, unsigned n, const char *sysfs)
{
	for (unsigned i = 0; i < n; i++) {
		ports[i].soft = ports[i].shared = false;
		ports[i].sent = ports[i].received = 0;
	}
	read_soft(ports, n);
	for (unsigned i = 0; i < n; i++) {
		if (ports[i].soft)
			continue;
		for (unsigned k = 0; k < i && !ports[i].shared; k++)
			ports[i].shared = !ports[k].soft && !strcmp(ports[k].name, ports[i].name);
		ports[i].sent = read_counter(&ports[i], sysfs, "port_xmit_data");
		ports[i].received = read_counter(&ports[i], sysfs, "port_rcv_data");
	}
}
