/* SPDX-License-Identifier: BSD-3-Clause */
/* machine.h - machines of real shapes: a sysfs tree and a fake table of verbs, discovered as hawser
 * would */
#ifndef HA_TESTS_TOPO_MACHINE_H
#define HA_TESTS_TOPO_MACHINE_H

#include "base/config.h"
#include "rdma/topo/device.h"
#include "rdma/topo/gid.h"
#include "tests/rdma/topo/tree.h"
#include "tests/rdma/verbs/fake.h"

#define MACHINE_DEVICES 32

struct machine {
	struct tree tree;
	struct fake_device devices[MACHINE_DEVICES];
	struct fake_verbs fake;
	struct ha_config config;
	struct ha_topo topo;
	char names[MACHINE_DEVICES][16];
	char addresses[MACHINE_DEVICES][HA_GID_TEXT_MAX];
};

void machine_begin(struct machine *m);
void machine_end(struct machine *m);
void machine_discover(struct machine *m);
/* A RoCE device of 400 Gb/s; pci_path NULL: software. card_guid 0: unknown. */
struct fake_device *machine_roce(struct machine *m, const char *name, const char *pci_path,
				 int numa, uint64_t card_guid, const char *ipv4);
struct fake_device *machine_ib(struct machine *m, const char *name, const char *pci_path, int numa,
			       uint64_t card_guid, uint16_t lid);
struct fake_device *machine_device(struct machine *m, const char *name);
/* Place of a port ("mlx5_0:1") in the list. */
int machine_port(const struct machine *m, const char *label);

/* Shapes; each begins the machine and discovers it. */
/* Eight NICs, each behind a switch and a root complex of its own beside its GPU, four to a
 * socket. */
void machine_eight_by_rail(struct machine *m);
/* Four dual-port cards, a PCI function per port, two cards to a socket below one root complex. */
void machine_dual_port_cards(struct machine *m);
/* Eight NICs, two per PCI switch, two switches to a socket. */
void machine_two_per_switch(struct machine *m);
/* Two cards below one switch, each with two virtual functions. */
void machine_virtual_functions(struct machine *m);
/* Two InfiniBand ports and two RoCE ports below one switch. */
void machine_two_fabrics(struct machine *m);
/* Software NICs soft0 to soft<n-1>. */
void machine_software(struct machine *m, int n);
/* One card with two ports, as a PCI function each. */
void machine_one_card(struct machine *m);

#endif
