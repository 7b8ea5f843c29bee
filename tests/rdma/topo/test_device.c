/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Discovery on machines of real shapes: eight NICs by rail, a dual-port card, two NICs per switch,
 * virtual functions, an InfiniBand fabric; and everything that can be wrong with a device.
 */
#include "rdma/topo/device.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/config.h"
#include "tests/base/lines.h"
#include "tests/rdma/topo/tree.h"
#include "tests/rdma/verbs/fake.h"

static struct tree tree;
static struct fake_device devices[80];
static struct fake_verbs fake;
static struct ha_config config;
static struct ha_topo topo;

static void machine_begin(void)
{
	tree_make(&tree);
	memset(devices, 0, sizeof(devices));
	fake_verbs_init(&fake, devices, 0);
	ha_config_defaults(&config);
	strcpy(config.sysfs_root, tree.root);
	lines_catch();
}

static void machine_end(void)
{
	ha_topo_release(&topo);
	fake_verbs_done(&fake);
	tree_remove(&tree);
}

static struct fake_device *add_nic(const char *name, const char *pci_path, int numa,
				   uint64_t card_guid, struct fake_port port)
{
	struct fake_device *d = &devices[fake.n];

	d->name = name;
	d->guid = 0xa088c20300000000 + (uint64_t)++fake.n;
	d->card_guid = card_guid;
	d->nports = 1;
	d->ports[0] = port;
	if (pci_path)
		tree_nic(&tree, name, pci_path, numa);
	return d;
}

static void discover_devices(int expected)
{
	CHECK_INT(ha_topo_discover(&fake.ops, &config, &topo), 0);
	CHECK_INT(topo.ndevices, expected);
}

/* NIC i of eight_nics_by_rail(). */
static void check_nic(const struct ha_topo_device *d, int i, const char *name, const char *path)
{
	CHECK_TEXT(d->name, name);
	CHECK_TEXT(d->place.pci_path, path);
	CHECK_TEXT(d->place.card_path, path);
	CHECK_INT(d->place.numa_node, i / 4);
	CHECK_INT(d->speed_mbps, 400000);
	CHECK_INT(d->place.card_port, 0);
	CHECK_INT(d->address.gid_index, 3);
	CHECK_INT(d->address.roce_version, 2);
	CHECK_INT(d->address.gid.raw[13], i);
	CHECK_INT(d->attr.max_qp, 131072);
	CHECK_INT(d->address.mtu, IBV_MTU_4096);
	CHECK_INT(d->place.rail_id, -1);
	CHECK(d->is_ethernet && !d->adaptive_routing && d->relaxed_ordering && d->peer_memory &&
	      !d->place.is_soft);
	CHECK(d->dma_buf);
	CHECK(d->hot.post_send && d->hot.poll_cq);
}

/* Each GPU with its NIC behind a switch of its own, four to a socket; the library lists them in
 * another order. */
static void eight_nics_by_rail(void)
{
	static const int listed[] = { 3, 7, 0, 5, 1, 6, 2, 4 };
	static char names[8][16], paths[8][128], addresses[8][32];
	char label[32];

	machine_begin();
	for (int k = 0; k < 8; k++) {
		int i = listed[k], bus = 0x15 + 0x10 * i;

		snprintf(names[i], sizeof(names[i]), "mlx5_%d", i);
		snprintf(addresses[i], sizeof(addresses[i]), "10.%d.0.1", i);
		snprintf(paths[i], sizeof(paths[i]),
			 "/sys/devices/pci0000:%02x/0000:%02x:01.0/0000:%02x:00.0/0000:%02x:00.0/"
			 "0000:%02x:00.0",
			 bus, bus, bus + 1, bus + 2, bus + 3);
		add_nic(names[i], paths[i], i / 4, 0x1000 + (uint64_t)i,
			fake_roce_port(addresses[i]));
	}
	tree_file(&tree, "/sys/module/nvidia_peermem/version", "1\n");
	discover_devices(8);
	for (int i = 0; i < 8; i++)
		check_nic(&topo.devices[i], i, names[i], paths[i]);
	CHECK_INT(ha_topo_distance(&topo, 0, 3), HA_PCI_SAME_NODE);
	CHECK_INT(ha_topo_distance(&topo, 0, 4), HA_PCI_SYSTEM);
	CHECK_TEXT(ha_topo_device_label(&topo.devices[2], label, sizeof(label)), "mlx5_2:1");
	machine_end();

	machine_begin();
	for (int k = 0; k < 8; k++)
		add_nic(names[listed[k]], paths[listed[k]], 0, 0, fake_roce_port("10.0.0.1"));
	config.ib_device_pci_order = false;
	discover_devices(8);
	for (int k = 0; k < 8; k++)
		CHECK_TEXT(topo.devices[k].name, names[listed[k]]);
	machine_end();
}

#define SWITCH "/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0"

static void a_dual_port_card(void)
{
	machine_begin();
	add_nic("mlx5_1", SWITCH "/0000:3c:00.0/0000:3d:00.1", 0, 0x77, fake_roce_port("10.0.1.1"));
	add_nic("mlx5_0", SWITCH "/0000:3c:00.0/0000:3d:00.0", 0, 0x77, fake_roce_port("10.0.0.1"));
	add_nic("mlx5_2", SWITCH "/0000:3c:01.0/0000:3e:00.0", 0, 0x78, fake_roce_port("10.0.2.1"));
	discover_devices(3);
	CHECK_TEXT(topo.devices[0].name, "mlx5_0");
	CHECK_TEXT(topo.devices[1].name, "mlx5_1");
	CHECK_INT(topo.devices[0].guid, 0x77);
	CHECK_INT(topo.devices[0].place.card_port, 0);
	CHECK_INT(topo.devices[1].place.card_port, 1);
	CHECK_INT(topo.devices[2].place.card_port, 0);
	CHECK_TEXT(topo.devices[1].place.card_path, SWITCH "/0000:3c:00.0/0000:3d:00.0");
	CHECK_INT(ha_topo_distance(&topo, 0, 1), HA_PCI_SAME_CARD);
	CHECK_INT(ha_topo_distance(&topo, 0, 2), HA_PCI_SAME_SWITCH);
	machine_end();

	/* Two ports of one function, as ConnectX-3 had them: one context for both. */
	machine_begin();
	add_nic("mlx4_0", "/sys/devices/pci0000:00/0000:00:03.0/0000:05:00.0", 0, 0x79,
		fake_roce_port("10.0.0.1"));
	devices[0].nports = 2;
	devices[0].ports[1] = fake_ib_port(4);
	discover_devices(2);
	CHECK_INT(fake.open_contexts, 1);
	CHECK_INT(topo.devices[1].port, 2);
	CHECK_INT(topo.devices[1].address.lid, 4);
	CHECK(!topo.devices[1].is_ethernet);
	CHECK_INT(ha_topo_distance(&topo, 0, 1), HA_PCI_SAME_CARD);
	machine_end();
}

static void two_nics_per_switch(void)
{
	machine_begin();
	add_nic("mlx5_0", SWITCH "/0000:3c:00.0/0000:3d:00.0", 0, 1, fake_roce_port("10.0.0.1"));
	add_nic("mlx5_1", SWITCH "/0000:3c:04.0/0000:3e:00.0", 0, 2, fake_roce_port("10.1.0.1"));
	add_nic("mlx5_2",
		"/sys/devices/pci0000:3a/0000:3a:02.0/0000:4b:00.0/0000:4c:00.0/0000:4d:00.0", 0, 3,
		fake_roce_port("10.2.0.1"));
	discover_devices(3);
	CHECK_INT(ha_topo_distance(&topo, 0, 1), HA_PCI_SAME_SWITCH);
	CHECK_INT(ha_topo_distance(&topo, 0, 2), HA_PCI_SAME_ROOT);
	CHECK_INT(ha_topo_distance(&topo, 2, 2), HA_PCI_SAME_CARD);
	machine_end();
}

static void virtual_functions(void)
{
	machine_begin();
	add_nic("mlx5_0", SWITCH "/0000:3c:00.0/0000:3d:00.0", 0, 0, fake_roce_port("10.0.0.1"));
	add_nic("mlx5_1", SWITCH "/0000:3c:00.0/0000:3d:00.2", 0, 0, fake_roce_port("10.0.0.2"));
	add_nic("mlx5_2", SWITCH "/0000:3c:00.0/0000:3d:08.1", 0, 0, fake_roce_port("10.0.0.3"));
	tree_link(&tree, SWITCH "/0000:3c:00.0/0000:3d:00.2/physfn",
		  SWITCH "/0000:3c:00.0/0000:3d:00.0");
	tree_link(&tree, SWITCH "/0000:3c:00.0/0000:3d:08.1/physfn",
		  SWITCH "/0000:3c:00.0/0000:3d:00.0");
	discover_devices(3);
	CHECK(!topo.devices[0].place.is_virtual);
	CHECK(topo.devices[1].place.is_virtual);
	CHECK_TEXT(topo.devices[2].place.physical_path, SWITCH "/0000:3c:00.0/0000:3d:00.0");
	CHECK_TEXT(topo.devices[2].place.card_path, SWITCH "/0000:3c:00.0/0000:3d:00.0");
	CHECK_INT(topo.devices[2].place.card_port, 2);
	CHECK_INT(ha_topo_distance(&topo, 1, 2), HA_PCI_SAME_CARD);
	ha_topo_release(&topo);
	config.ib_merge_vfs = false;
	discover_devices(3);
	CHECK_TEXT(topo.devices[2].place.card_path, SWITCH "/0000:3c:00.0/0000:3d:08.0");
	machine_end();
}

/* Sub-functions share their function's port and cable, and are no software NICs. */
static void sub_functions(void)
{
	static const char pf[] = SWITCH "/0000:3c:00.0/0000:3d:00.0";

	machine_begin();
	add_nic("mlx5_0", pf, 0, 0, fake_roce_port("10.0.0.1"));
	add_nic("mlx5_1", SWITCH "/0000:3c:00.0/0000:3d:00.0/mlx5_core.sf.2", 0, 0,
		fake_roce_port("10.0.0.2"));
	add_nic("mlx5_2", SWITCH "/0000:3c:00.0/0000:3d:00.0/mlx5_core.sf.3", 0, 0,
		fake_roce_port("10.0.0.3"));
	discover_devices(3);
	for (int i = 0; i < 3; i++) {
		CHECK(!topo.devices[i].place.is_soft);
		CHECK_INT(topo.devices[i].place.is_virtual, i > 0);
		CHECK_TEXT(topo.devices[i].place.physical_path, pf);
	}
	CHECK_INT(ha_topo_distance(&topo, 0, 1), HA_PCI_SAME_CARD);
	CHECK_INT(ha_topo_distance(&topo, 1, 2), HA_PCI_SAME_CARD);
	machine_end();
}

static void an_infiniband_fabric(void)
{
	struct fake_port xdr = fake_ib_port(17);

	machine_begin();
	xdr.speed_ex = 256;
	add_nic("mlx5_0", SWITCH "/0000:3c:00.0/0000:3d:00.0", 0, 1, xdr);
	add_nic("mlx5_1", SWITCH "/0000:3c:01.0/0000:3e:00.0", 0, 2, fake_ib_port(18));
	tree_file(&tree, "/sys/class/infiniband/mlx5_1/ports/1/apm_enable", "1\n");
	config.ib_pci_relaxed_ordering = 0;
	discover_devices(2);
	CHECK_INT(topo.devices[0].speed_mbps, 800000);
	CHECK_INT(topo.devices[0].address.lid, 17);
	CHECK_INT(topo.devices[0].address.gid_index, 0);
	CHECK_INT(topo.devices[0].address.roce_version, 0);
	CHECK(!topo.devices[0].is_ethernet);
	CHECK(topo.devices[0].adaptive_routing);
	CHECK(!topo.devices[0].relaxed_ordering);
	CHECK(!topo.devices[0].peer_memory);
	CHECK(!topo.devices[0].apm_enabled);
	CHECK(topo.devices[1].apm_enabled);
	CHECK(lines_contain("mlx5_1: the driver's own path migration (APM) is enabled on port 1"));
	ha_topo_release(&topo);
	config.ib_adaptive_routing = 0;
	discover_devices(2);
	CHECK(!topo.devices[0].adaptive_routing);
	ha_topo_release(&topo);
	/* nothing that the driver's path migration could fight with */
	config.enable_backup = false;
	lines_catch();
	discover_devices(2);
	CHECK(topo.devices[1].apm_enabled);
	CHECK(!lines_contain("(APM)"));
	machine_end();
}

static void a_software_nic(void)
{
	machine_begin();
	add_nic("soft0", NULL, 0, 0, fake_roce_port("127.1.0.1"))->dma_buf_error = -EOPNOTSUPP;
	add_nic("soft1", NULL, 0, 0, fake_roce_port("127.2.0.1"));
	tree_file(&tree, "/sys/module/nvidia_peermem/version", "1\n");
	discover_devices(2);
	CHECK_TEXT(topo.devices[0].name, "soft0");
	CHECK_TEXT(topo.devices[0].place.pci_path, "");
	CHECK_INT(topo.devices[0].place.numa_node, -1);
	CHECK(topo.devices[0].place.is_soft);
	CHECK(!topo.devices[0].dma_buf);
	CHECK(!topo.devices[0].peer_memory);
	CHECK(!topo.devices[0].relaxed_ordering);
	CHECK_INT(topo.devices[1].place.card_port, 0);
	CHECK_INT(ha_topo_distance(&topo, 0, 1), HA_PCI_SYSTEM);
	machine_end();
}

/* softcuda's GPU memory is host memory: a software NIC registers it, a real one would need
 * nvidia_peermem. */
static void a_software_nic_beside_softcuda(const char *runtime)
{
	void *library = dlopen(runtime, RTLD_LAZY | RTLD_LOCAL);

	CHECK(library);
	machine_begin();
	add_nic("soft0", NULL, 0, 0, fake_roce_port("127.1.0.1"));
	add_nic("mlx5_0", SWITCH "/0000:3c:00.0/0000:3d:00.0", 0, 1, fake_roce_port("10.0.0.1"));
	discover_devices(2);
	for (int i = 0; i < topo.ndevices; i++)
		CHECK_INT(topo.devices[i].peer_memory, !strcmp(topo.devices[i].name, "soft0"));
	machine_end();
	dlclose(library);
}

/* rxe on NICs of this machine: NCCL is given where those sit. Its own folders say nothing of it. */
static void kernel_software_nics(void)
{
	machine_begin();
	add_nic("rxe0", NULL, 0, 0, fake_roce_port("10.0.0.1"));
	add_nic("rxe1", NULL, 0, 0, fake_roce_port("10.0.1.1"));
	add_nic("rxe2", NULL, 0, 0, fake_roce_port("10.0.2.1"));
	add_nic("rxe3", NULL, 0, 0, fake_roce_port("10.0.3.1"));
	tree_file(&tree, "/sys/class/infiniband/rxe0/parent", "rail0\n");
	tree_link(&tree, "/sys/class/net/rail0/device",
		  "/sys/devices/pci0000:00/0000:00:05.0/virtio2");
	tree_file(&tree, "/sys/class/infiniband/rxe1/parent", "eth1\n");
	tree_link(&tree, "/sys/class/net/eth1/device", "/sys/devices/pci0000:00/0000:00:06.1");
	tree_file(&tree, "/sys/class/infiniband/rxe2/parent", "veth0\n");
	tree_file(&tree, "/sys/class/net/veth0/mtu", "1500\n");
	tree_file(&tree, "/sys/devices/pci0000:00/0000:00:05.0/virtio2/vendor", "");
	tree_file(&tree, "/sys/devices/pci0000:00/0000:00:06.1/vendor", "");
	discover_devices(4);
	CHECK_TEXT(topo.devices[0].place.card_path, "/sys/devices/pci0000:00/0000:00:05.0");
	CHECK_TEXT(topo.devices[1].place.card_path, "/sys/devices/pci0000:00/0000:00:06.0");
	CHECK_TEXT(topo.devices[2].place.card_path, "");
	CHECK_TEXT(topo.devices[3].place.card_path, "");
	for (int i = 0; i < 4; i++) {
		CHECK(topo.devices[i].place.is_soft && !*topo.devices[i].place.pci_path);
		CHECK_INT(topo.devices[i].place.numa_node, -1);
		CHECK_INT(topo.devices[i].place.card_port, 0);
	}
	machine_end();
}

/* NICs in user space: their library keeps folders for them that look as those in sysfs do. */
static void user_space_software_nics(void)
{
	static const char *const names[] = { "soft0", "soft1", "soft2" };
	static char folder[3][128];

	machine_begin();
	for (int i = 0; i < 3; i++) {
		char path[64], link[512];

		snprintf(path, sizeof(path), "/nics/pci/ffff:%02x:00.%x/infiniband/%s", 1 + i / 2,
			 i % 2, names[i]);
		snprintf(link, sizeof(link), "%s/device", path);
		tree_file(&tree, link, "");
		snprintf(folder[i], sizeof(folder[i]), "%s%s", tree.root, path);
		snprintf(link, sizeof(link), "%s/device", folder[i]);
		CHECK(!unlink(link) && !symlink("../..", link));
		add_nic(names[i], NULL, 0, 0, fake_roce_port("127.1.0.1"))->folder = folder[i];
	}
	discover_devices(3);
	CHECK(strstr(topo.devices[0].place.card_path, "/nics/pci/ffff:01:00.0"));
	CHECK_TEXT(topo.devices[1].place.card_path, topo.devices[0].place.card_path);
	CHECK(strstr(topo.devices[2].place.card_path, "/nics/pci/ffff:02:00.0"));
	CHECK_INT(topo.devices[0].place.card_port, 0);
	CHECK_INT(topo.devices[1].place.card_port, 1);
	CHECK_INT(topo.devices[2].place.card_port, 0);
	for (int i = 0; i < 3; i++)
		CHECK(topo.devices[i].place.is_soft && !*topo.devices[i].place.pci_path);
	CHECK_INT(ha_topo_distance(&topo, 0, 1), HA_PCI_SYSTEM);
	machine_end();
}

/* Whoever has counted before keeps its numbers: a port that is down has the one that it had, and
 * one that has come since is behind. */
static void numbers_of_before(void)
{
	static const struct ha_topo_known before[] = { { "mlx5_0:1", 400000 },
						       { "mlx5_1:1", 400000 },
						       { "mlx5_2:1", 400000 } };
	static const struct ha_topo_known gone[] = { { "mlx5_0:1", 400000 }, { "mlx5_7:1", 0 } };
	static const char *const names[] = { "mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3" };

	machine_begin();
	add_nic("mlx5_3", SWITCH "/0000:3c:00.0/0000:3d:00.0", 0, 0, fake_roce_port("10.0.3.1"));
	add_nic("mlx5_2", SWITCH "/0000:3c:01.0/0000:3e:00.0", 0, 0, fake_roce_port("10.0.2.1"));
	add_nic("mlx5_1", SWITCH "/0000:3c:02.0/0000:3f:00.1", 0, 0, fake_roce_port("10.0.1.1"));
	add_nic("mlx5_0", SWITCH "/0000:3c:02.0/0000:3f:00.0", 0, 0, fake_roce_port("10.0.0.1"));
	devices[3].ports[0].state = IBV_PORT_DOWN;
	devices[3].ports[0].speed = 4; /* without a link: QDR */
	discover_devices(3);
	CHECK_INT(ha_topo_number(&topo, gone, 2), -ENODEV);
	CHECK(lines_contain("mlx5_7:1 is gone, and NCCL counts on it as device 1"));
	CHECK_INT(topo.ndevices, 3);
	CHECK_INT(ha_topo_number(&topo, before, 3), 0);
	CHECK_INT(topo.ndevices, 3);
	CHECK_INT(topo.nports, 4);
	for (int i = 0; i < 4; i++)
		CHECK_TEXT(topo.devices[i].name, names[i]);
	CHECK(!topo.devices[0].up && topo.devices[1].up);
	for (int i = 0; i < 3; i++) /* for good: whoever asks once gets this */
		CHECK_INT(topo.devices[i].speed_mbps, 400000);
	CHECK_INT(topo.devices[0].place.card_port, 0);
	CHECK_INT(topo.devices[1].place.card_port, 1);
	machine_end();
}

static void filters_choose_devices(void)
{
	machine_begin();
	add_nic("mlx5_0", NULL, 0, 0, fake_roce_port("10.0.0.1"));
	add_nic("mlx5_1", NULL, 0, 0, fake_roce_port("10.0.1.1"));
	add_nic("mlx5_10", NULL, 0, 0, fake_roce_port("10.0.2.1"));
	strcpy(config.ib_hca, "mlx5_1");
	discover_devices(2);
	ha_topo_release(&topo);
	strcpy(config.ib_hca, "=mlx5_1:1:5:2");
	discover_devices(1);
	CHECK_TEXT(topo.devices[0].name, "mlx5_1");
	CHECK_INT(topo.devices[0].place.rail_id, 5);
	CHECK_INT(topo.devices[0].place.plane_id, 2);
	CHECK_INT(fake.open_contexts, 1);
	ha_topo_release(&topo);
	strcpy(config.ib_hca, "^mlx5_1");
	discover_devices(1);
	CHECK_TEXT(topo.devices[0].name, "mlx5_0");
	ha_topo_release(&topo);
	lines_catch();
	strcpy(config.ib_hca, "bnxt,mlx5_0:x");
	discover_devices(0);
	CHECK(lines_contain(
		"NCCL_IB_HCA=bnxt,mlx5_0:x has parts that are no name[:port[:rail[:plane]]]"));
	CHECK(lines_contain("NCCL_IB_HCA=bnxt,mlx5_0:x leaves none of the 3 devices (mlx5_0, "
			    "mlx5_1, mlx5_10); correct or unset it"));
	ha_topo_release(&topo);
	config.ib_disable = true;
	discover_devices(0);
	CHECK_INT(fake.lists, 0);
	machine_end();
}

static void ports_that_cannot_be_used(void)
{
	machine_begin();
	add_nic("mlx5_0", NULL, 0, 0, fake_roce_port("10.0.0.1"))->ports[0].state = IBV_PORT_DOWN;
	add_nic("mlx5_1", NULL, 0, 0, fake_roce_port("10.0.1.1"))->ports[0].link_layer =
		IBV_LINK_LAYER_UNSPECIFIED;
	add_nic("mlx5_2", NULL, 0, 0, fake_roce_port("10.0.2.1"))->ports[0].error = -EIO;
	add_nic("mlx5_3", NULL, 0, 0, fake_roce_port("10.0.3.1"))->open_error = -EACCES;
	add_nic("mlx5_4", NULL, 0, 0, fake_roce_port("10.0.4.1"))->query_error = -EIO;
	add_nic("mlx5_5", NULL, 0, 0,
		(struct fake_port) { .state = IBV_PORT_ACTIVE,
				     .link_layer = IBV_LINK_LAYER_ETHERNET });
	discover_devices(0);
	CHECK_INT(topo.down, 1);
	CHECK(lines_contain("mlx5_0: port 1 is down and left out"));
	CHECK(lines_contain("mlx5_1: port 1 is neither InfiniBand nor RoCE"));
	CHECK(lines_contain("mlx5_2: cannot query port 1: Input/output error"));
	CHECK(lines_contain("mlx5_3: cannot open the device: Permission denied"));
	CHECK(lines_contain("mlx5_4: cannot query the device: Input/output error"));
	CHECK(lines_contain("mlx5_5: port 1 has no GID"));
	CHECK(lines_contain("6 RDMA devices, none with a usable port (1 down)"));
	/* The one that is down and the one without address may come up: known, open, not
	 * reported. */
	CHECK_INT(topo.nports, 2);
	CHECK_INT(fake.open_contexts, 2);
	machine_end();
}

static void libraries_that_fail(void)
{
	machine_begin();
	discover_devices(0);
	CHECK(lines_contain("no RDMA device in fake"));
	CHECK(lines_contain("HA_NCCL_VERBS=soft"));
	ha_topo_release(&topo);
	fake.list_error = -ENOSYS; /* a kernel without RDMA */
	discover_devices(0);
	ha_topo_release(&topo);
	fake.list_error = -EPERM;
	CHECK_INT(ha_topo_discover(&fake.ops, &config, &topo), -EPERM);
	CHECK(lines_contain("fake cannot list devices: Operation not permitted"));
	fake.list_error = 0;
	fake.ops.optional_access = false;
	config.ib_pci_relaxed_ordering = 1;
	strcpy(config.ib_addr_range, "fd00::/8");
	discover_devices(0);
	CHECK(lines_contain("NCCL_IB_PCI_RELAXED_ORDERING=1, but fake is too old for it"));
	CHECK(lines_contain("NCCL_IB_ADDR_RANGE=fd00::/8 is no IPv4 prefix"));
	machine_end();
}

/* A second function beside the GPU has the data; standbys are still chosen by where the NIC is. */
static void a_card_with_data_direct(void)
{
	static const char function[] = "/sys/devices/pci0001:00/0001:01:00.0";

	for (int wanted = 0; wanted < 2; wanted++)
		for (int able = 0; able < 2; able++) {
			bool used = wanted && able;

			machine_begin();
			config.ib_data_direct = wanted;
			add_nic("mlx5_0", SWITCH "/0000:3c:00.0/0000:3d:00.0", 0, 0x77,
				fake_roce_port("10.0.0.1"));
			devices[0].data_direct = function;
			devices[0].dma_buf_error = able ? -EBADF : -EOPNOTSUPP;
			discover_devices(1);
			CHECK_INT(topo.devices[0].data_direct, used);
			CHECK_TEXT(topo.devices[0].place.card_path,
				   used ? function : SWITCH "/0000:3c:00.0/0000:3d:00.0");
			CHECK_TEXT(topo.devices[0].place.pci_path,
				   SWITCH "/0000:3c:00.0/0000:3d:00.0");
			machine_end();
		}
}

/* NCCL_IB_OOO_RQ: no NIC of the fake library can. */
static void arrival_in_any_order(void)
{
	for (int wanted = 0; wanted < 2; wanted++) {
		machine_begin();
		config.ib_ooo_rq = wanted;
		add_nic("mlx5_0", NULL, 0, 0x77, fake_roce_port("10.0.0.1"));
		discover_devices(1);
		CHECK(!topo.devices[0].unordered);
		CHECK_INT(lines_contain("mlx5_0: NCCL_IB_OOO_RQ=1: this NIC, its kernel"), wanted);
		machine_end();
	}
}

static void more_ports_than_fit(void)
{
	static char names[HA_TOPO_DEVICES_MAX + 2][16];

	machine_begin();
	for (int i = 0; i < HA_TOPO_DEVICES_MAX + 2; i++) {
		snprintf(names[i], sizeof(names[i]), "mlx5_%d", i);
		add_nic(names[i], NULL, 0, 0, fake_roce_port("10.0.0.1"));
	}
	discover_devices(HA_TOPO_DEVICES_MAX);
	CHECK_INT(fake.open_contexts, HA_TOPO_DEVICES_MAX);
	CHECK(lines_contain("mlx5_64: more than 64 ports; the rest is left out"));
	machine_end();
}

int main(int argc, char **argv)
{
	CHECK_INT(argc, 2); /* softcuda's libcudart.so.12 */
	eight_nics_by_rail();
	a_dual_port_card();
	two_nics_per_switch();
	virtual_functions();
	sub_functions();
	an_infiniband_fabric();
	a_software_nic();
	a_software_nic_beside_softcuda(argv[1]);
	kernel_software_nics();
	user_space_software_nics();
	numbers_of_before();
	filters_choose_devices();
	ports_that_cannot_be_used();
	libraries_that_fail();
	more_ports_than_fit();
	a_card_with_data_direct();
	arrival_in_any_order();
	return 0;
}
