/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/ports.h"

#include "agent/ethtool.h"
#include "rdma/topo/sysfs.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GIDS_MAX 256 /* entries of a GID table that are looked at */

const char *const ha_port_counter_names[HA_PORT_COUNTERS] = {
	[HA_PORT_TX_BYTES] = "tx_bytes",
	[HA_PORT_RX_BYTES] = "rx_bytes",
	[HA_PORT_ECN] = "ecn",
	[HA_PORT_CNP] = "cnp",
	[HA_PORT_PAUSES] = "pauses",
	[HA_PORT_DISCARDS] = "discards",
	[HA_PORT_RETRANSMITS] = "retransmits",
};

struct source {
	const char *name; /* file below the folder; of ethtool: a pattern */
	enum ha_port_counter counter;
	unsigned unit; /* bytes per count */
};

/* counters/: IBTA's, alike for all drivers. Data counts are in words of 4 bytes (IBTA vol. 1,
 * 16.1.3.5). */
static const struct source in_port[] = {
	{ "port_xmit_data", HA_PORT_TX_BYTES, 4 },
	{ "port_rcv_data", HA_PORT_RX_BYTES, 4 },
	{ "port_xmit_discards", HA_PORT_DISCARDS, 1 },
};

/* hw_counters/: each driver's own. */
static const struct source in_hardware[] = {
	/* mlx5, mlx4 */
	{ "np_ecn_marked_roce_packets", HA_PORT_ECN, 1 },
	{ "np_cnp_sent", HA_PORT_CNP, 1 },
	{ "rp_cnp_handled", HA_PORT_CNP, 1 },
	{ "packet_seq_err", HA_PORT_RETRANSMITS, 1 },
	{ "out_of_sequence", HA_PORT_RETRANSMITS, 1 },
	{ "local_ack_timeout_err", HA_PORT_RETRANSMITS, 1 },
	{ "implied_nak_seq_err", HA_PORT_RETRANSMITS, 1 },
	{ "roce_adp_retrans", HA_PORT_RETRANSMITS, 1 },
	/* bnxt_re */
	{ "rx_ecn_marked_pkts", HA_PORT_ECN, 1 },
	{ "rx_cnp_pkts", HA_PORT_CNP, 1 },
	{ "tx_cnp_pkts", HA_PORT_CNP, 1 },
	{ "to_retransmits", HA_PORT_RETRANSMITS, 1 },
	{ "seq_err_naks_rcvd", HA_PORT_RETRANSMITS, 1 },
	{ "tx_roce_discards", HA_PORT_DISCARDS, 1 },
	{ "rx_roce_discards", HA_PORT_DISCARDS, 1 },
	/* irdma */
	{ "RxECNMrkd", HA_PORT_ECN, 1 },
	{ "cnpHandled", HA_PORT_CNP, 1 },
	{ "cnpSent", HA_PORT_CNP, 1 },
	{ "RetransSegs", HA_PORT_RETRANSMITS, 1 },
	/* rxe */
	{ "rcvd_seq_err", HA_PORT_RETRANSMITS, 1 },
	{ "out_of_seq_request", HA_PORT_RETRANSMITS, 1 },
	{ "completer_retry_err", HA_PORT_RETRANSMITS, 1 },
	{ "retry_exceeded_err", HA_PORT_RETRANSMITS, 1 },
};

/* statistics/ of the interface; bytes only where the RDMA port does not count them. */
static const struct source in_interface[] = {
	{ "tx_dropped", HA_PORT_DISCARDS, 1 },
	{ "rx_missed_errors", HA_PORT_DISCARDS, 1 },
};
static const struct source in_interface_bytes[] = {
	{ "tx_bytes", HA_PORT_TX_BYTES, 1 },
	{ "rx_bytes", HA_PORT_RX_BYTES, 1 },
};

static const struct source in_ethtool[] = {
	/* mlx5 */
	{ "rx_prio[0-7]_pause", HA_PORT_PAUSES, 1 },
	{ "rx_global_pause", HA_PORT_PAUSES, 1 },
	{ "tx_discards_phy", HA_PORT_DISCARDS, 1 },
	{ "rx_discards_phy", HA_PORT_DISCARDS, 1 },
	{ "rx_ecn_mark", HA_PORT_ECN, 1 },
	/* bnxt */
	{ "rx_pause_frames", HA_PORT_PAUSES, 1 },
	{ "rx_pfc_ena_frames_pri[0-7]", HA_PORT_PAUSES, 1 },
	/* ice */
	{ "link_xoff_rx.nic", HA_PORT_PAUSES, 1 },
	{ "rx_priority_[0-7]_xoff.nic", HA_PORT_PAUSES, 1 },
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* ---- counting ---- */

/* A counter that is there: its number. Drivers print -1 or text for what they do not have. */
static bool parse_number(const char *text, uint64_t *value)
{
	char *end;

	*value = strtoull(text, &end, 0);
	return end != text && *text != '-';
}

static bool read_sources(const struct ha_ports *ports, const char *folder,
			 const struct source *sources, size_t n, uint64_t count[HA_PORT_COUNTERS])
{
	bool found = false;

	for (size_t i = 0; i < n; i++) {
		uint64_t value;
		char text[64];

		if (ha_sysfs_read(ports->root, text, sizeof(text), "%s/%s", folder,
				  sources[i].name) <= 0 ||
		    !parse_number(text, &value))
			continue;
		count[sources[i].counter] += value * sources[i].unit;
		found = true;
	}
	return found;
}

static void take_ethtool(void *user, const char *name, uint64_t value)
{
	uint64_t *count = user;

	for (size_t i = 0; i < COUNT(in_ethtool); i++)
		if (!fnmatch(in_ethtool[i].name, name, 0))
			count[in_ethtool[i].counter] += value;
}

static void read_counts(const struct ha_ports *ports, const struct ha_port *p,
			uint64_t count[HA_PORT_COUNTERS])
{
	char folder[256];
	bool bytes = false;

	if (*p->device) {
		snprintf(folder, sizeof(folder), "/sys/class/infiniband/%s/ports/%d/counters",
			 p->device, p->number);
		bytes = read_sources(ports, folder, in_port, COUNT(in_port), count);
		snprintf(folder, sizeof(folder), "/sys/class/infiniband/%s/ports/%d/hw_counters",
			 p->device, p->number);
		read_sources(ports, folder, in_hardware, COUNT(in_hardware), count);
	}
	if (!*p->interface)
		return;
	snprintf(folder, sizeof(folder), "/sys/class/net/%s/statistics", p->interface);
	read_sources(ports, folder, in_interface, COUNT(in_interface), count);
	if (!bytes)
		read_sources(ports, folder, in_interface_bytes, COUNT(in_interface_bytes), count);
	ha_ethtool_each(ports->root, p->interface, take_ethtool, count);
}

static bool read_link(const struct ha_ports *ports, const struct ha_port *p)
{
	char text[64];

	if (*p->device &&
	    ha_sysfs_read(ports->root, text, sizeof(text),
			  "/sys/class/infiniband/%s/ports/%d/state", p->device, p->number) > 0)
		return strstr(text, "ACTIVE") != NULL;
	if (*p->interface && ha_sysfs_read(ports->root, text, sizeof(text),
					   "/sys/class/net/%s/operstate", p->interface) > 0)
		return !strcmp(text, "up") || !strcmp(text, "unknown"); /* loopback does not know */
	return false;
}

static uint64_t read_speed(const struct ha_ports *ports, const struct ha_port *p)
{
	char text[64];
	double gbps;
	long mbps;

	/* "100 Gb/sec (4X EDR)" */
	if (*p->device &&
	    ha_sysfs_read(ports->root, text, sizeof(text), "/sys/class/infiniband/%s/ports/%d/rate",
			  p->device, p->number) > 0) {
		gbps = strtod(text, NULL);
		if (gbps > 0 && gbps < 1e6)
			return (uint64_t)(gbps * 1000);
	}
	mbps = *p->interface ? ha_sysfs_number(ports->root, 0, "/sys/class/net/%s/speed",
					       p->interface)
			     : 0;
	return mbps > 0 ? (uint64_t)mbps : 0;
}

static void read_port(const struct ha_ports *ports, struct ha_port *p, uint64_t now)
{
	uint64_t count[HA_PORT_COUNTERS] = { 0 };

	read_counts(ports, p, count);
	p->span = p->looks ? now - p->at : 0;
	for (int i = 0; i < HA_PORT_COUNTERS; i++) {
		/* A counter that goes back was reset, with its driver. A source that was unreadable
		 * once makes one wild step; nobody acts on a single one (congestion.h). */
		p->delta[i] = p->looks && count[i] >= p->count[i] ? count[i] - p->count[i] : 0;
		p->count[i] = count[i];
	}
	p->up = read_link(ports, p);
	p->mbps = read_speed(ports, p);
	p->at = now;
	p->looks++;
}

void ha_ports_look(struct ha_ports *ports, uint64_t now)
{
	for (unsigned i = 0; i < ports->n; i++)
		read_port(ports, &ports->port[i], now);
}

/* ---- finding ---- */

typedef bool (*entry_fn)(struct ha_ports *ports, const char *name, struct ha_port *found,
			 const char *wanted);

/* Calls fn for the entries of a folder of sysfs until one is what is wanted. */
static bool find_entry(struct ha_ports *ports, const char *folder, entry_fn fn,
		       struct ha_port *found, const char *wanted)
{
	char path[512];
	struct dirent *entry;
	bool done = false;
	DIR *list;

	snprintf(path, sizeof(path), "%s%s", ports->root, folder);
	list = opendir(path);
	while (list && !done && (entry = readdir(list)) != NULL)
		if (entry->d_name[0] != '.' && strlen(entry->d_name) < sizeof(found->device))
			done = fn(ports, entry->d_name, found, wanted);
	if (list)
		closedir(list);
	return done;
}

/* A port of found->device: does its GID table have the address? */
static bool port_has(struct ha_ports *ports, const char *name, struct ha_port *found,
		     const char *wanted)
{
	char text[64];

	found->number = atoi(name);
	for (int i = 0; i < GIDS_MAX; i++) {
		int len = ha_sysfs_read(ports->root, text, sizeof(text),
					"/sys/class/infiniband/%s/ports/%d/gids/%d", found->device,
					found->number, i);

		if (len == -ENOENT)
			break;
		if (len <= 0 || strcmp(text, wanted))
			continue;
		ha_sysfs_read(ports->root, found->interface, sizeof(found->interface),
			      "/sys/class/infiniband/%s/ports/%d/gid_attrs/ndevs/%d", found->device,
			      found->number, i);
		return true;
	}
	return false;
}

static bool device_has(struct ha_ports *ports, const char *name, struct ha_port *found,
		       const char *wanted)
{
	char folder[128];

	snprintf(found->device, sizeof(found->device), "%.63s", name);
	snprintf(folder, sizeof(folder), "/sys/class/infiniband/%s/ports", name);
	return find_entry(ports, folder, port_has, found, wanted);
}

static bool first_device(struct ha_ports *ports, const char *name, struct ha_port *found,
			 const char *wanted)
{
	snprintf(found->device, sizeof(found->device), "%.63s", name);
	found->number = (int)ha_sysfs_number(ports->root, 0, "/sys/class/net/%s/dev_port",
					     found->interface) +
			1;
	return true;
}

/* An interface of this host (IP over InfiniBand, or no RDMA at all). */
static bool find_interface(struct ha_ports *ports, uint32_t ip, struct ha_port *found)
{
	struct ifaddrs *all, *at;
	char folder[128];

	if (*ports->root || getifaddrs(&all))
		return false;
	for (at = all; at; at = at->ifa_next) {
		const struct sockaddr_in *in =
			(const struct sockaddr_in *)(const void *)at->ifa_addr;

		if (in && in->sin_family == AF_INET && in->sin_addr.s_addr == ip)
			break;
	}
	if (at)
		snprintf(found->interface, sizeof(found->interface), "%s", at->ifa_name);
	freeifaddrs(all);
	if (!*found->interface)
		return false;
	snprintf(folder, sizeof(folder), "/sys/class/net/%s/device/infiniband", found->interface);
	find_entry(ports, folder, first_device, found, "");
	return true;
}

/* Names go into JSON and metrics, and back into paths: what is neither letter, digit nor one of
 * these is not used. */
static bool is_plain_name(const char *name)
{
	return !name[strspn(name,
			    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.:@")];
}

static int find_or_add_port(struct ha_ports *ports, const struct ha_port *found)
{
	if (!is_plain_name(found->device) || !is_plain_name(found->interface))
		return -1;
	for (unsigned i = 0; i < ports->n; i++) {
		const struct ha_port *p = &ports->port[i];

		if (!strcmp(p->device, found->device) && p->number == found->number &&
		    !strcmp(p->interface, found->interface))
			return (int)i;
	}
	if (ports->n == HA_PORTS_MAX)
		return -1;
	ports->port[ports->n] = *found;
	return (int)ports->n++;
}

static int search_port(struct ha_ports *ports, uint32_t ip, uint64_t now)
{
	struct ha_port found = { 0 };
	uint32_t host = ntohl(ip);
	char gid[64];
	int at;

	snprintf(gid, sizeof(gid), "0000:0000:0000:0000:0000:ffff:%04x:%04x", host >> 16,
		 host & 0xffff);
	if (!find_entry(ports, "/sys/class/infiniband", device_has, &found, gid)) {
		memset(&found, 0, sizeof(found));
		if (!find_interface(ports, ip, &found))
			return -1;
	}
	at = find_or_add_port(ports, &found);
	if (at >= 0 && !ports->port[at].looks)
		read_port(ports, &ports->port[at], now);
	return at;
}

int ha_ports_find(struct ha_ports *ports, uint32_t ip, uint64_t now)
{
	struct ha_port_address *a = NULL;

	for (unsigned i = 0; i < ports->naddresses && !a; i++)
		if (ports->address[i].ip == ip)
			a = &ports->address[i];
	if (!ip || (a && (a->port >= 0 || now - a->checked < HA_PORTS_AGAIN_NS)))
		return ip ? a->port : -1;
	if (!a && ports->naddresses < HA_PORTS_ADDRESSES)
		a = &ports->address[ports->naddresses++];
	else if (!a)
		/* somebody else's is looked for again */
		a = &ports->address[ip % HA_PORTS_ADDRESSES];
	a->ip = ip;
	a->checked = now;
	a->port = search_port(ports, ip, now);
	return a->port;
}

void ha_ports_open(struct ha_ports *ports, const char *root)
{
	memset(ports, 0, sizeof(*ports));
	snprintf(ports->root, sizeof(ports->root), "%s", root);
}
