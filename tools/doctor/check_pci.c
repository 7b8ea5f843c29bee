/* SPDX-License-Identifier: BSD-3-Clause */
/* The PCI links of the NICs: trained as they should be, fast enough, not redirected. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rdma/topo/sysfs.h"
#include "tools/doctor/checks.h"

#define CONFIG_BYTES 4096
#define EXTENDED_FIRST 0x100 /* PCI Express Base 7.6: where the extended capabilities begin */
#define CAPABILITY_ACS 0x000d
#define ACS_CONTROL 6       /* offset in the capability, 16 bits */
#define ACS_REDIRECT 0x001c /* request, completion redirect and upstream forwarding */

struct link {
	double gts; /* GT/s of a lane; 0: not known */
	long width; /* lanes */
};

/* Gb/s after the line's encoding: 8b/10b up to 5 GT/s, 128b/130b, and flits from 64 GT/s on (Base
 * 6.0, 4.2.3). */
static double link_gbps(const struct link *link)
{
	double efficiency = 128.0 / 130;

	if (link->gts < 8)
		efficiency = 0.8;
	else if (link->gts >= 64)
		efficiency = 236.0 / 256;
	return link->gts * efficiency * (double)link->width;
}

static void read_link(const char *root, const char *path, const char *which, struct link *link)
{
	char speed[64];

	*link = (struct link) { 0 };
	if (ha_sysfs_read(root, speed, sizeof(speed), "%s/%s_link_speed", path, which) > 0)
		link->gts = strtod(speed, NULL); /* "16.0 GT/s PCIe", or "Unknown" */
	link->width = ha_sysfs_number(root, 0, "%s/%s_link_width", path, which);
}

/* Cuts the last folder off. */
static void cut_last_folder(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash)
		*slash = 0;
}

/* What function and slot can both do. */
static void read_best(const char *root, const char *path, struct link *best)
{
	char parent[HA_DEVICE_PATH_MAX];
	struct link slot;

	read_link(root, path, "max", best);
	snprintf(parent, sizeof(parent), "%s", path);
	cut_last_folder(parent);
	read_link(root, parent, "max", &slot);
	if (slot.gts > 0 && slot.gts < best->gts)
		best->gts = slot.gts;
	if (slot.width > 0 && slot.width < best->width)
		best->width = slot.width;
}

/* All ports behind the function together, Gb/s. */
static double ports_gbps(const struct doctor_host *host, const char *path)
{
	double sum = 0;

	for (int i = 0; i < host->topo->ndevices; i++)
		if (!strcmp(host->topo->devices[i].place.physical_path, path))
			sum += host->topo->devices[i].speed_mbps / 1e3;
	return sum;
}

static void check_link(const struct doctor_host *host, const struct ha_topo_device *dev,
		       struct doctor_report *report)
{
	const char *root = host->config->sysfs_root, *path = dev->place.physical_path;
	const char *address = strrchr(path, '/') + 1;
	double need = ports_gbps(host, path);
	struct doctor_finding *f;
	struct link now, best;

	read_link(root, path, "current", &now);
	read_best(root, path, &best);
	if (now.gts <= 0 || now.width <= 0 || best.gts <= 0)
		return;
	if (now.gts < best.gts || now.width < best.width) {
		bool slow = link_gbps(&now) < need;

		f = doctor_add(report, slow ? DOCTOR_ERROR : DOCTOR_WARNING, "pci.link", dev->name,
			       "PCI link %s is trained to %g GT/s x%ld; function and slot can %g "
			       "GT/s x%ld",
			       address, now.gts, now.width, best.gts, best.width);
		doctor_cost(f, "%.0f Gb/s instead of %.0f, for ports of %.0f", link_gbps(&now),
			    link_gbps(&best), need);
		doctor_mend(f,
			    "reseat the card or its riser; `lspci -vvs %s` shows LnkSta and "
			    "errors",
			    address);
		return;
	}
	if (link_gbps(&now) < need) {
		f = doctor_add(report, DOCTOR_WARNING, "pci.slot", dev->name,
			       "PCI link %s is slower than its ports: %.0f Gb/s for %.0f", address,
			       link_gbps(&now), need);
		doctor_cost(f, "the ports together never reach their speed");
		doctor_mend(f, "move the card to a slot of more lanes or a newer generation");
		return;
	}
	doctor_add(report, DOCTOR_FINE, "pci.link", dev->name, "PCI link %s: %g GT/s x%ld", address,
		   now.gts, now.width);
}

/* ---- access control services ---- */

/* The function's configuration space; how many bytes could be read: all of it by root alone. */
static size_t read_config(const char *root, const char *path, unsigned char *config)
{
	char file[PATH_MAX];
	ssize_t n;
	int fd;

	snprintf(file, sizeof(file), "%s%s/config", root, path);
	fd = open(file, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, config, CONFIG_BYTES);
	close(fd);
	return n > 0 ? (size_t)n : 0;
}

static unsigned read_16(const unsigned char *config, unsigned at)
{
	return config[at] | (unsigned)config[at + 1] << 8;
}

/* The ACS control word of a function; 0: it has none. */
static unsigned find_acs(const unsigned char *config, size_t size)
{
	unsigned at = EXTENDED_FIRST;

	/* Each capability: its id, version and, in the upper 12 bits, where the next one is
	 * (7.6.3). */
	for (int i = 0; i < 64 && at >= EXTENDED_FIRST && at + 8 <= size; i++) {
		if (read_16(config, at) == CAPABILITY_ACS)
			return read_16(config, at + ACS_CONTROL);
		at = read_16(config, at + 2) >> 4 & ~3U;
	}
	return 0;
}

/* Folders above the function are the bridges that its traffic passes. */
static void check_acs(const struct doctor_host *host, const struct ha_topo_device *dev,
		      struct doctor_report *report)
{
	unsigned char config[CONFIG_BYTES];
	char path[HA_DEVICE_PATH_MAX];
	struct ha_pci_address address;
	struct doctor_finding *f;

	snprintf(path, sizeof(path), "%s", dev->place.physical_path);
	for (cut_last_folder(path); ha_pci_address(path, &address); cut_last_folder(path)) {
		size_t size = read_config(host->config->sysfs_root, path, config);
		const char *bridge = strrchr(path, '/') + 1;

		if (size && size <= EXTENDED_FIRST) {
			f = doctor_add(report, DOCTOR_NOTE, "pci.acs", dev->name,
				       "whether ACS redirects its traffic cannot be read");
			doctor_cost(f, "redirected, GPU and NIC meet in the root complex");
			doctor_mend(f, "sudo ha doctor");
			return;
		}
		if (!(find_acs(config, size) & ACS_REDIRECT))
			continue;
		f = doctor_add(report, DOCTOR_WARNING, "pci.acs", dev->name,
			       "ACS of the PCI bridge %s redirects traffic between GPU and NIC",
			       bridge);
		doctor_cost(f, "data passes the root complex: about half of the bandwidth");
		doctor_mend(f, "setpci -s %s ECAP_ACS+0x6.w=0000, after each start of the machine",
			    bridge);
		return;
	}
}

void doctor_check_pci(const struct doctor_host *host, struct doctor_report *report)
{
	const struct ha_topo *topo = host->topo;

	for (int i = 0; i < topo->ndevices; i++) {
		const struct ha_topo_device *dev = &topo->devices[i];
		bool seen = dev->place.is_soft || !strrchr(dev->place.physical_path, '/');

		for (int k = 0; k < i; k++) /* a function once, with all its ports */
			seen |= !strcmp(topo->devices[k].place.physical_path,
					dev->place.physical_path);
		if (seen)
			continue;
		check_link(host, dev, report);
		if (doctor_has_gpu(host))
			check_acs(host, dev, report);
	}
}
