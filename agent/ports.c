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

/* ---- the tables of addresses ---- */

typedef void (*entry_fn)(struct ha_ports *ports, const char *name, struct ha_port_place *at);

/* Calls fn for the entries of a folder of sysfs. */
static void each_entry(struct ha_ports *ports, const char *folder, entry_fn fn,
		       struct ha_port_place *at)
{
	char path[512];
	struct dirent *entry;
	DIR *list;

	snprintf(path, sizeof(path), "%s%s", ports->root, folder);
	list = opendir(path);
	while (list && (entry = readdir(list)) != NULL)
		if (entry->d_name[0] != '.' && strlen(entry->d_name) < sizeof(at->device))
			fn(ports, entry->d_name, at);
	if (list)
		closedir(list);
}

/* Without memory the address is not this host's until the next reading. */
static void add_place(struct ha_ports *ports, const struct ha_port_place *at)
{
	struct ha_port_place *grown;
	unsigned room = ports->room ? ports->room * 2 : 64;

	if (ports->nplaces == ports->room) {
		grown = realloc(ports->place, room * sizeof(*grown));
		if (!grown)
			return;
		ports->place = grown;
		ports->room = room;
	}
	ports->place[ports->nplaces++] = *at;
}

/* The IPv4 address of a GID as sysfs prints it; 0: it has none. Network byte order. */
static uint32_t parse_gid(const char *text)
{
	static const char mapped[] = "0000:0000:0000:0000:0000:ffff:";
	unsigned high, low;

	if (strncmp(text, mapped, sizeof(mapped) - 1) ||
	    sscanf(text + sizeof(mapped) - 1, "%4x:%4x", &high, &low) != 2)
		return 0;
	return htonl(high << 16 | low);
}

static void read_gids(struct ha_ports *ports, const char *name, struct ha_port_place *at)
{
	char text[64];

	at->number = atoi(name);
	for (at->gid = 0; at->gid < GIDS_MAX; at->gid++) {
		int len = ha_sysfs_read(ports->root, text, sizeof(text),
					"/sys/class/infiniband/%s/ports/%d/gids/%d", at->device,
					at->number, at->gid);

		if (len == -ENOENT)
			break;
		at->ip = len > 0 ? parse_gid(text) : 0;
		if (at->ip)
			add_place(ports, at);
	}
}

static void read_device(struct ha_ports *ports, const char *name, struct ha_port_place *at)
{
	char folder[128];

	snprintf(at->device, sizeof(at->device), "%.63s", name);
	snprintf(folder, sizeof(folder), "/sys/class/infiniband/%s/ports", name);
	each_entry(ports, folder, read_gids, at);
}

/* Interfaces of this host (IP over InfiniBand, or no RDMA at all). */
static void read_interfaces(struct ha_ports *ports)
{
	struct ifaddrs *all;

	if (*ports->root || getifaddrs(&all))
		return;
	for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
		const struct sockaddr_in *in =
			(const struct sockaddr_in *)(const void *)i->ifa_addr;
		struct ha_port_place at = { 0 };

		if (!in || in->sin_family != AF_INET)
			continue;
		at.ip = in->sin_addr.s_addr;
		snprintf(at.interface, sizeof(at.interface), "%s", i->ifa_name);
		add_place(ports, &at);
	}
	freeifaddrs(all);
}

/* Ports of RDMA come first: an address that is both is found there. */
static void read_tables(struct ha_ports *ports, uint64_t now)
{
	struct ha_port_place at = { 0 };

	ports->nplaces = 0;
	each_entry(ports, "/sys/class/infiniband", read_device, &at);
	read_interfaces(ports);
	ports->tables_read = true;
	ports->read_at = now;
}

/* ---- finding ---- */

static const struct ha_port_place *find_place(const struct ha_ports *ports, uint32_t ip)
{
	for (unsigned i = 0; i < ports->nplaces; i++)
		if (ports->place[i].ip == ip)
			return &ports->place[i];
	return NULL;
}

static void take_device(struct ha_ports *ports, const char *name, struct ha_port_place *at)
{
	if (!*at->device)
		snprintf(at->device, sizeof(at->device), "%.63s", name);
}

/* The port of an address, with both of its names as far as it has them. */
static struct ha_port name_port(struct ha_ports *ports, const struct ha_port_place *place)
{
	struct ha_port found = { .number = place->number };
	struct ha_port_place of_interface = { 0 };
	char folder[128];

	snprintf(found.device, sizeof(found.device), "%s", place->device);
	snprintf(found.interface, sizeof(found.interface), "%s", place->interface);
	if (*found.device) {
		ha_sysfs_read(ports->root, found.interface, sizeof(found.interface),
			      "/sys/class/infiniband/%s/ports/%d/gid_attrs/ndevs/%d", found.device,
			      found.number, place->gid);
		return found;
	}
	snprintf(folder, sizeof(folder), "/sys/class/net/%s/device/infiniband", found.interface);
	each_entry(ports, folder, take_device, &of_interface);
	if (!*of_interface.device)
		return found;
	snprintf(found.device, sizeof(found.device), "%s", of_interface.device);
	found.number = (int)ha_sysfs_number(ports->root, 0, "/sys/class/net/%s/dev_port",
					    found.interface) +
		       1;
	return found;
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

/* In the tables, which are read again when that was long ago. */
static int search_port(struct ha_ports *ports, uint32_t ip, uint64_t now)
{
	const struct ha_port_place *place = find_place(ports, ip);
	struct ha_port found;
	int at;

	if (!place && (!ports->tables_read || now - ports->read_at >= HA_PORTS_AGAIN_NS)) {
		read_tables(ports, now);
		place = find_place(ports, ip);
	}
	if (!place)
		return -1;
	found = name_port(ports, place);
	at = find_or_add_port(ports, &found);
	if (at >= 0 && !ports->port[at].looks)
		read_port(ports, &ports->port[at], now);
	return at;
}

int ha_ports_find(struct ha_ports *ports, uint32_t ip, uint64_t now)
{
	int port;

	if (!ip)
		return -1;
	for (unsigned i = 0; i < ports->naddresses; i++)
		if (ports->address[i].ip == ip)
			return ports->address[i].port;
	port = search_port(ports, ip, now);
	if (port >= 0 && ports->naddresses < HA_PORTS_ADDRESSES)
		ports->address[ports->naddresses++] = (struct ha_port_address) { ip, port };
	return port;
}

void ha_ports_open(struct ha_ports *ports, const char *root)
{
	memset(ports, 0, sizeof(*ports));
	snprintf(ports->root, sizeof(ports->root), "%s", root);
}

void ha_ports_close(struct ha_ports *ports)
{
	free(ports->place);
	ports->place = NULL;
	ports->nplaces = 0;
	ports->room = 0;
}
