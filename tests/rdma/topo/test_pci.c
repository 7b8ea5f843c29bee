/* SPDX-License-Identifier: BSD-3-Clause */
/* PCI paths: order, card, physical function, distance; and reading sysfs at all. */
#include "rdma/topo/pci.h"

#include <errno.h>

#include "base/check.h"
#include "rdma/topo/sysfs.h"
#include "tests/rdma/topo/tree.h"

#define ROOT "/sys/devices/pci0000:16/0000:16:01.0"
#define NIC_A ROOT "/0000:17:00.0/0000:18:00.0/0000:19:00.0"
#define NIC_A1 ROOT "/0000:17:00.0/0000:18:00.0/0000:19:00.1"
#define NIC_B ROOT "/0000:17:00.0/0000:18:01.0/0000:1a:00.0"
#define NIC_C "/sys/devices/pci0000:16/0000:16:03.0/0000:1d:00.0"
#define NIC_D "/sys/devices/pci0000:97/0000:97:01.0/0000:98:00.0"

static void addresses_are_parsed(void)
{
	struct ha_pci_address a;

	CHECK(ha_pci_address(NIC_A1, &a));
	CHECK_INT(a.domain, 0);
	CHECK_INT(a.bus, 0x19);
	CHECK_INT(a.device, 0);
	CHECK_INT(a.function, 1);
	CHECK(ha_pci_address("/sys/devices/10000:e1:1f.7", &a)); /* a domain of five digits */
	CHECK_INT(a.domain, 0x10000);
	CHECK(!ha_pci_address("", &a));
	CHECK(!ha_pci_address("/sys/devices/virtual/net/lo", &a));
	CHECK(!ha_pci_address("/sys/devices/0000:19:00.0x", &a));
	CHECK(!ha_pci_address("/sys/devices/0000:19:20.0", &a));
	CHECK(ha_pci_order(NIC_A) < ha_pci_order(NIC_A1));
	CHECK(ha_pci_order(NIC_A1) < ha_pci_order(NIC_B));
	CHECK(ha_pci_order("0001:00:00.0") > ha_pci_order("0000:ff:1f.7"));
	CHECK(ha_pci_order("") == UINT64_MAX);
}

static void paths_of_cards(void)
{
	char card[256];

	ha_pci_card_path(NIC_A1, false, card, sizeof(card));
	CHECK_TEXT(card, NIC_A);
	ha_pci_card_path("/sys/devices/pci0000:16/0000:19:08.3", true, card, sizeof(card));
	CHECK_TEXT(card, "/sys/devices/pci0000:16/0000:19:00.0");
	ha_pci_card_path("/sys/devices/virtual/x", true, card, sizeof(card));
	CHECK_TEXT(card, "/sys/devices/virtual/x");
	ha_pci_card_path("", true, card, sizeof(card));
	CHECK_TEXT(card, "");
}

static void distances_between_nics(void)
{
	CHECK_INT(ha_pci_distance(NIC_A, 0, NIC_A, 0), HA_PCI_SAME_CARD);
	CHECK_INT(ha_pci_distance(NIC_A, 0, NIC_A1, 0), HA_PCI_SAME_CARD);
	CHECK_INT(ha_pci_distance(NIC_A, 0, NIC_B, 0), HA_PCI_SAME_SWITCH);
	CHECK_INT(ha_pci_distance(NIC_A, 0, NIC_C, 0), HA_PCI_SAME_ROOT);
	CHECK_INT(ha_pci_distance(NIC_A, 0, NIC_D, 0), HA_PCI_SAME_NODE);
	CHECK_INT(ha_pci_distance(NIC_A, 0, NIC_D, 1), HA_PCI_SYSTEM);
	CHECK_INT(ha_pci_distance(NIC_A, -1, NIC_D, -1), HA_PCI_SYSTEM);
	CHECK_INT(ha_pci_distance("", -1, "", -1), HA_PCI_SYSTEM);
	CHECK_INT(ha_pci_distance("", 0, NIC_A, 0), HA_PCI_SAME_NODE);
	/* Two root ports have the host bridge between them; a switch of switches is not one
	 * switch. */
	CHECK_INT(ha_pci_distance("/sys/devices/pci0000:00/0000:00:01.0", 0,
				  "/sys/devices/pci0000:00/0000:00:02.0", 0),
		  HA_PCI_SAME_ROOT);
	CHECK_INT(ha_pci_distance(
			  ROOT "/0000:17:00.0/0000:18:00.0/0000:19:00.0/0000:1a:00.0/0000:1b:00.0",
			  0, ROOT "/0000:17:00.0/0000:18:01.0/0000:20:00.0", 0),
		  HA_PCI_SAME_ROOT);
	/* Folders that only begin alike are not shared. */
	CHECK_INT(ha_pci_distance("/sys/devices/pci0000:1/0000:01:00.0", 0,
				  "/sys/devices/pci0000:16/0000:17:00.0", 1),
		  HA_PCI_SYSTEM);
	for (int d = HA_PCI_SAME_CARD; d <= HA_PCI_SYSTEM; d++)
		CHECK(*ha_pci_distance_name(d));
}

static void virtual_functions(void)
{
	struct tree t;
	char path[256];

	tree_make(&t);
	tree_file(&t, NIC_A "/numa_node", "1\n");
	tree_file(&t, ROOT "/0000:17:00.0/0000:18:00.0/0000:19:00.4/numa_node", "1\n");
	tree_link(&t, ROOT "/0000:17:00.0/0000:18:00.0/0000:19:00.4/physfn", NIC_A);
	CHECK(ha_pci_physical(t.root, ROOT "/0000:17:00.0/0000:18:00.0/0000:19:00.4", path,
			      sizeof(path)));
	CHECK_TEXT(path, NIC_A);
	CHECK(!ha_pci_physical(t.root, NIC_A, path, sizeof(path)));
	CHECK_TEXT(path, NIC_A);
	CHECK(!ha_pci_physical(t.root, "", path, sizeof(path)));
	CHECK_INT(ha_pci_numa_node(t.root, NIC_A), 1);
	CHECK_INT(ha_pci_numa_node(t.root, NIC_B), -1);
	CHECK_INT(ha_pci_numa_node(t.root, ""), -1);
	tree_remove(&t);
}

static void sysfs_files_are_read(void)
{
	char text[16], path[64], deep[8000];
	struct tree t;

	tree_make(&t);
	tree_file(&t, "/sys/a", "RoCE v2 \t\nsecond line\n");
	tree_file(&t, "/sys/hex", "0x1f\n");
	tree_file(&t, "/sys/word", "none\n");
	tree_file(&t, "/sys/empty", "");
	tree_link(&t, "/sys/out", "/../../etc");
	CHECK_INT(ha_sysfs_read(t.root, text, sizeof(text), "/sys/%s", "a"), 7);
	CHECK_TEXT(text, "RoCE v2");
	CHECK_INT(ha_sysfs_read(t.root, text, 5, "/sys/a"), 4);
	CHECK_TEXT(text, "RoCE");
	CHECK_INT(ha_sysfs_read(t.root, text, sizeof(text), "/sys/empty"), 0);
	CHECK_INT(ha_sysfs_read(t.root, text, sizeof(text), "/sys/none"), -ENOENT);
	CHECK_INT(ha_sysfs_read(t.root, text, sizeof(text), "/sys"), -EISDIR);
	CHECK_INT(ha_sysfs_number(t.root, -7, "/sys/hex"), 31);
	CHECK_INT(ha_sysfs_number(t.root, -7, "/sys/word"), -7);
	CHECK_INT(ha_sysfs_number(t.root, -7, "/sys/none"), -7);
	CHECK(ha_sysfs_exists(t.root, "/sys/a"));
	CHECK(!ha_sysfs_exists(t.root, "/sys/b"));
	CHECK_INT(ha_sysfs_realpath(t.root, path, sizeof(path), "/sys/a"), 0);
	CHECK_TEXT(path, "/sys/a");
	CHECK_INT(ha_sysfs_realpath(t.root, path, sizeof(path), "/sys/none"), -ENOENT);
	CHECK_INT(ha_sysfs_realpath(t.root, path, sizeof(path), "/sys/out"), -EXDEV);
	CHECK_INT(ha_sysfs_realpath(t.root, path, 4, "/sys/a"), -ENAMETOOLONG);
	CHECK_INT(ha_sysfs_realpath("", path, sizeof(path), "%s/sys/hex", t.root), 0);
	CHECK_INT(ha_sysfs_realpath("/", path, sizeof(path), "%s/sys/hex", t.root), 0);
	memset(deep, 'd', sizeof(deep) - 1);
	deep[sizeof(deep) - 1] = 0;
	CHECK_INT(ha_sysfs_read(t.root, text, sizeof(text), "%s", deep), -ENAMETOOLONG);
	CHECK_INT(ha_sysfs_realpath(t.root, path, sizeof(path), "%s", deep), -ENAMETOOLONG);
	CHECK(!ha_sysfs_exists(t.root, "%s", deep));
	CHECK_INT(ha_sysfs_number(t.root, 3, "%s", deep), 3);
	tree_remove(&t);
}

int main(void)
{
	addresses_are_parsed();
	paths_of_cards();
	distances_between_nics();
	virtual_functions();
	sysfs_files_are_read();
	return 0;
}
