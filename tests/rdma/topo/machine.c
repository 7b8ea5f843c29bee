/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/rdma/topo/machine.h"

#include <stdarg.h>

#include "base/check.h"
#include "tests/base/lines.h"

void machine_begin(struct machine *m)
{
	memset(m, 0, sizeof(*m));
	tree_make(&m->tree);
	fake_verbs_init(&m->fake, m->devices, 0);
	ha_config_defaults(&m->config);
	strcpy(m->config.sysfs_root, m->tree.root);
	lines_catch();
}

void machine_end(struct machine *m)
{
	ha_topo_release(&m->topo);
	fake_verbs_done(&m->fake);
	tree_remove(&m->tree);
}

void machine_discover(struct machine *m)
{
	CHECK_INT(ha_topo_discover(&m->fake.ops, &m->config, &m->topo), 0);
}

static struct fake_device *add_device(struct machine *m, const char *name, const char *pci_path,
				      int numa, uint64_t card_guid)
{
	int i = m->fake.n++;
	struct fake_device *d = &m->devices[i];

	CHECK(i < MACHINE_DEVICES);
	snprintf(m->names[i], sizeof(m->names[i]), "%s", name);
	d->name = m->names[i];
	d->guid = 0xa088c20300000001 + (uint64_t)i;
	d->card_guid = card_guid;
	d->nports = 1;
	if (pci_path)
		tree_nic(&m->tree, name, pci_path, numa);
	return d;
}

struct fake_device *machine_roce(struct machine *m, const char *name, const char *pci_path,
				 int numa, uint64_t card_guid, const char *ipv4)
{
	struct fake_device *d = add_device(m, name, pci_path, numa, card_guid);
	char *address = m->addresses[d - m->devices];

	snprintf(address, sizeof(m->addresses[0]), "%s", ipv4);
	d->ports[0] = fake_roce_port(address);
	return d;
}

struct fake_device *machine_ib(struct machine *m, const char *name, const char *pci_path, int numa,
			       uint64_t card_guid, uint16_t lid)
{
	struct fake_device *d = add_device(m, name, pci_path, numa, card_guid);

	d->ports[0] = fake_ib_port(lid);
	return d;
}

struct fake_device *machine_device(struct machine *m, const char *name)
{
	for (int i = 0; i < m->fake.n; i++)
		if (!strcmp(m->names[i], name))
			return &m->devices[i];
	CHECK(!"no such device");
	return NULL;
}

int machine_port(const struct machine *m, const char *label)
{
	char text[64];

	for (int i = 0; i < m->topo.nports; i++)
		if (!strcmp(ha_topo_device_label(&m->topo.devices[i], text, sizeof(text)), label))
			return i;
	fprintf(stderr, "no port %s\n", label);
	exit(1);
}

static const char *format_text(char *buf, size_t len, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static const char *format_text(char *buf, size_t len, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf, len, fmt, ap);
	va_end(ap);
	return buf;
}

#define DEVICES "/sys/devices/pci0000:%02x"
#define TEXT(fmt, ...) format_text((char[160]) { 0 }, 160, fmt, __VA_ARGS__)

void machine_eight_by_rail(struct machine *m)
{
	static const int listed[] = { 3, 7, 0, 5, 1, 6, 2, 4 }; /* as the library happens to */

	machine_begin(m);
	for (int k = 0; k < 8; k++) {
		int i = listed[k], bus = 0x15 + 0x10 * i;

		machine_roce(m, TEXT("mlx5_%d", i),
			     TEXT(DEVICES
				  "/0000:%02x:01.0/0000:%02x:00.0/0000:%02x:00.0/0000:%02x:00.0",
				  bus, bus, bus + 1, bus + 2, bus + 3),
			     i / 4, 0x1000 + (uint64_t)i, TEXT("10.%d.0.1", i));
	}
	machine_discover(m);
}

void machine_dual_port_cards(struct machine *m)
{
	machine_begin(m);
	for (int card = 0; card < 4; card++)
		for (int port = 0; port < 2; port++) {
			int root = card < 2 ? 0x20 : 0xa0, slot = 1 + card % 2;

			machine_roce(m, TEXT("mlx5_%d", 2 * card + port),
				     TEXT(DEVICES "/0000:%02x:%02x.0/0000:%02x:00.%d", root, root,
					  slot, root + slot, port),
				     card / 2, 0x2000 + (uint64_t)card,
				     TEXT("10.0.0.%d", 1 + 2 * card + port));
		}
	machine_discover(m);
}

void machine_two_per_switch(struct machine *m)
{
	machine_begin(m);
	for (int i = 0; i < 8; i++) {
		int root = 0x20 + 0x40 * (i / 4), bus = root + 1 + 0x10 * (i / 2 % 2);

		machine_roce(
			m, TEXT("mlx5_%d", i),
			TEXT(DEVICES
			     "/0000:%02x:%02x.0/0000:%02x:00.0/0000:%02x:%02x.0/0000:%02x:00.0",
			     root, root, 1 + i / 2 % 2, bus, bus + 1, i % 2, bus + 2 + i % 2),
			i / 4, 0x3000 + (uint64_t)i, TEXT("10.0.%d.1", i));
	}
	machine_discover(m);
}

#define SWITCH "/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0"

void machine_virtual_functions(struct machine *m)
{
	machine_begin(m);
	for (int card = 0; card < 2; card++)
		for (int f = 0; f < 3; f++) {
			const char *folder = TEXT(SWITCH "/0000:3c:%02x.0", card);
			const char *path =
				TEXT("%s/0000:%02x:00.%d", folder, 0x3d + card, f ? 1 + f : 0);

			machine_roce(m, TEXT("mlx5_%d", 3 * card + f), path, 0,
				     0x4000 + (uint64_t)card, TEXT("10.0.0.%d", 1 + 3 * card + f));
			if (f)
				tree_link(&m->tree, TEXT("%s/physfn", path),
					  TEXT("%s/0000:%02x:00.0", folder, 0x3d + card));
		}
	machine_discover(m);
}

void machine_two_fabrics(struct machine *m)
{
	machine_begin(m);
	machine_ib(m, "mlx5_0", SWITCH "/0000:3c:00.0/0000:3d:00.0", 0, 0x5000, 17);
	machine_roce(m, "mlx5_1", SWITCH "/0000:3c:01.0/0000:3e:00.0", 0, 0x5001, "10.0.0.1");
	machine_ib(m, "mlx5_2", SWITCH "/0000:3c:02.0/0000:3f:00.0", 0, 0x5002, 18);
	machine_roce(m, "mlx5_3", SWITCH "/0000:3c:03.0/0000:40:00.0", 0, 0x5003, "10.0.0.2");
	machine_discover(m);
}

void machine_software(struct machine *m, int n)
{
	machine_begin(m);
	for (int i = 0; i < n; i++)
		machine_roce(m, TEXT("soft%d", i), NULL, -1, 0x6000 + (uint64_t)i,
			     TEXT("127.%d.0.1", i + 1));
	machine_discover(m);
}

void machine_one_card(struct machine *m)
{
	machine_begin(m);
	machine_roce(m, "mlx5_0", SWITCH "/0000:3c:00.0/0000:3d:00.0", 0, 0x7000, "10.0.0.1");
	machine_roce(m, "mlx5_1", SWITCH "/0000:3c:00.0/0000:3d:00.1", 0, 0x7000, "10.0.1.1");
	machine_discover(m);
}
