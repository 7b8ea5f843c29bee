/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pci.h - where a device sits
 *
 * A path is sysfs' real path of a PCI function: /sys/devices/pci0000:16/0000:16:01.0/0000:17:00.0.
 * Each folder below the root complex (pci0000:16) is a bridge port or the function itself.
 */
#ifndef HA_TOPO_PCI_H
#define HA_TOPO_PCI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How far two devices are apart, near to far; the order is what matters. */
enum ha_pci_distance {
	HA_PCI_SAME_CARD,   /* functions of one card */
	HA_PCI_SAME_SWITCH, /* nothing but one PCI switch between them */
	HA_PCI_SAME_ROOT,   /* several switches, below one root complex */
	HA_PCI_SAME_NODE,   /* other root complex, same NUMA node */
	HA_PCI_SYSTEM,      /* across NUMA nodes, or unknown */
};

struct ha_pci_address {
	uint32_t domain;
	uint8_t bus, device, function;
};

/* The address in the last folder of `path`. False: there is none. */
bool ha_pci_address(const char *path, struct ha_pci_address *address);
/* Shortens `path` to the last folder on the way to it that is a PCI function; "" when there is
 * none.
 */
void ha_pci_climb(char *path);
/* Orders functions as NCCL does: domain, bus, device, function in one number; UINT64_MAX without an
 * address. */
uint64_t ha_pci_order(const char *path);

/*
 * The path that NCCL is given: function 0, and with merge_vfs device 0 too, so that the ports and
 * virtual functions of a card are seen as one. Copies `path` when it holds no address.
 */
void ha_pci_card_path(const char *path, bool merge_vfs, char *card, size_t len);

/* A sub-function is a device on the auxiliary bus below its function
 * (".../0000:08:00.0/mlx5_core.sf.2"): its path becomes that function's. True: it was one. */
bool ha_pci_leave_subfunction(char *path);

/* The physical function of a virtual one (its "physfn" link), else `path` itself. True: it is
 * virtual. */
bool ha_pci_physical(const char *root, const char *path, char *physical, size_t len);

/* -1: unknown. */
int ha_pci_numa_node(const char *root, const char *path);

/* Both paths of physical functions. numa_*: -1 unknown. */
enum ha_pci_distance ha_pci_distance(const char *a, int numa_a, const char *b, int numa_b);

/* "same switch" and so on, for people. */
const char *ha_pci_distance_name(enum ha_pci_distance distance);

#endif
