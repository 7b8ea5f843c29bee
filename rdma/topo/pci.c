/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdma/topo/pci.h"

#include <stdio.h>
#include <string.h>

#include "rdma/topo/sysfs.h"

static const char *last_folder(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

bool ha_pci_address(const char *path, struct ha_pci_address *address)
{
	unsigned domain, bus, device, function;
	const char *folder = last_folder(path);
	int used = 0;

	/* A domain has 4 digits, or 5 behind some host bridges (Intel VMD). */
	if (sscanf(folder, "%5x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &used) != 4 ||
	    folder[used])
		return false;
	if (device > 31 || function > 7)
		return false;
	*address = (struct ha_pci_address) { domain, (uint8_t)bus, (uint8_t)device,
					     (uint8_t)function };
	return true;
}

void ha_pci_climb(char *path)
{
	struct ha_pci_address address;

	while (*path && !ha_pci_address(path, &address)) {
		char *slash = strrchr(path, '/');

		*(slash ? slash : path) = 0;
	}
}

uint64_t ha_pci_order(const char *path)
{
	struct ha_pci_address a;

	if (!ha_pci_address(path, &a))
		return UINT64_MAX;
	return (uint64_t)a.domain << 20 | (uint64_t)a.bus << 12 | (uint64_t)a.device << 4 |
	       a.function;
}

void ha_pci_card_path(const char *path, bool merge_vfs, char *card, size_t len)
{
	struct ha_pci_address a;
	size_t n;

	snprintf(card, len, "%s", path);
	if (!ha_pci_address(path, &a))
		return;
	n = strlen(card); /* ends in DD.F */
	card[n - 1] = '0';
	if (merge_vfs)
		card[n - 3] = card[n - 4] = '0';
}

/* DRIVER.NAME.NUMBER, where the bus has it from. */
static bool is_auxiliary(const char *folder)
{
	const char *first = strchr(folder, '.');

	return first && strchr(first + 1, '.');
}

bool ha_pci_leave_subfunction(char *path)
{
	struct ha_pci_address address;
	char *slash = strrchr(path, '/');

	if (!slash || ha_pci_address(path, &address) || !is_auxiliary(slash + 1))
		return false;
	*slash = 0;
	if (ha_pci_address(path, &address))
		return true;
	*slash = '/';
	return false;
}

bool ha_pci_physical(const char *root, const char *path, char *physical, size_t len)
{
	if (*path && ha_sysfs_realpath(root, physical, len, "%s/physfn", path) == 0)
		return true;
	snprintf(physical, len, "%s", path);
	return false;
}

int ha_pci_numa_node(const char *root, const char *path)
{
	return *path ? (int)ha_sysfs_number(root, -1, "%s/numa_node", path) : -1;
}

/* Length of the leading folders that both paths share, without the '/' at its end. */
static size_t common_folders(const char *a, const char *b)
{
	size_t common = 0;

	for (size_t i = 0;; i++) {
		bool end_a = !a[i] || a[i] == '/', end_b = !b[i] || b[i] == '/';

		if (end_a && end_b)
			common = i;
		if (a[i] != b[i] || !a[i])
			return common;
	}
}

static int folders_behind(const char *path, size_t from)
{
	int n = 0;

	for (path += from; *path; path++)
		n += *path == '/';
	return n;
}

/* Length of the path down to its root complex (.../pciDDDD:BB), 0 when it has none. */
static size_t root_complex_len(const char *path)
{
	const char *pci = strstr(path, "/pci");

	return pci ? (size_t)(pci - path) + 1 + strcspn(pci + 1, "/") : 0;
}

static bool same_slot(const char *a, const char *b)
{
	struct ha_pci_address x, y;

	return ha_pci_address(a, &x) && ha_pci_address(b, &y) && x.domain == y.domain &&
	       x.bus == y.bus && x.device == y.device;
}

enum ha_pci_distance ha_pci_distance(const char *a, int numa_a, const char *b, int numa_b)
{
	size_t common = common_folders(a, b), root = root_complex_len(a);

	if (*a && (!strcmp(a, b) || same_slot(a, b)))
		return HA_PCI_SAME_CARD;
	if (root && common >= root) {
		/*
		 * Behind one switch each path goes on with a downstream port and the function;
		 * directly below a shared bridge port with the function alone. The shared part must
		 * reach further than the root complex: two root ports have the host bridge between
		 * them, not a switch.
		 */
		if (common > root && folders_behind(a, common) <= 2 &&
		    folders_behind(b, common) <= 2)
			return HA_PCI_SAME_SWITCH;
		return HA_PCI_SAME_ROOT;
	}
	if (numa_a >= 0 && numa_a == numa_b)
		return HA_PCI_SAME_NODE;
	return HA_PCI_SYSTEM;
}

const char *ha_pci_distance_name(enum ha_pci_distance distance)
{
	static const char *const names[] = {
		[HA_PCI_SAME_CARD] = "same card",      [HA_PCI_SAME_SWITCH] = "same switch",
		[HA_PCI_SAME_ROOT] = "same root",      [HA_PCI_SAME_NODE] = "same NUMA node",
		[HA_PCI_SYSTEM] = "across the system",
	};

	return names[distance];
}
