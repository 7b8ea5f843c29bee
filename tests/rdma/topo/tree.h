/* SPDX-License-Identifier: BSD-3-Clause */
/* tree.h - a sysfs tree of a machine that is not here, in a temporary folder */
#ifndef HA_TESTS_TOPO_TREE_H
#define HA_TESTS_TOPO_TREE_H

#include <stddef.h>

struct tree {
	char root[64];
};

void tree_make(struct tree *t);
void tree_remove(struct tree *t);
/* A file with `text`; folders on the way are made. path starts with "/sys". */
void tree_file(const struct tree *t, const char *path, const char *text);
/* A link at `path` to `target`, both as seen from the tree's root. */
void tree_link(const struct tree *t, const char *path, const char *target);
/* A NIC: its PCI function with its NUMA node, and its entry in /sys/class/infiniband. */
void tree_nic(const struct tree *t, const char *name, const char *pci_path, int numa_node);

#endif
