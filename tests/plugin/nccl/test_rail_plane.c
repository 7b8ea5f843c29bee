/* SPDX-License-Identifier: BSD-3-Clause */
/* From v12 on: the rail and the plane that NCCL_IB_HCA names for a port are its properties;
 * those of a fused device follow from them. */
#include "tests/plugin/nccl/rig.h"

#include "plugin/nccl/abi/net_v12.h"

#define VIRTUAL_PLANE 0x4000 /* a set of planes; NCCL's own transport marks them so */

static struct rig rig;

static void run_job(const char *hcas)
{
	setenv("NCCL_IB_HCA", hcas, 1);
	OK(rig_init(&rig));
	OK(rig.plugin.count(&rig.plugin.devices));
}

static void end_job(void)
{
	OK(rig.plugin.abi->finalize(&rig.plugin));
}

static void check_rail_plane(int dev, int rail, int plane)
{
	const ncclNet_v12_t *table = rig.plugin.table;
	ncclNetProperties_v12_t p;

	OK(table->getProperties(dev, &p));
	CHECK(p.railId == rail && p.planeId == plane, "%s is on rail %d, plane %d; not on %d, %d",
	      p.name, p.railId, p.planeId, rail, plane);
}

static int fuse_devices(int n, const int *devs)
{
	int dev = -1;

	OK(rig.plugin.abi->fuse(&rig.plugin, &dev, n, devs));
	return dev;
}

static void check_ports(void)
{
	run_job("=soft0:1:3:7,soft1:1:0,soft2:1::9,soft3");
	CHECK(rig.plugin.devices == 4, "%d devices", rig.plugin.devices);
	check_rail_plane(0, 3, 7);
	check_rail_plane(1, 0, NCCL_NET_ID_UNDEF);
	check_rail_plane(2, NCCL_NET_ID_UNDEF, 9);
	check_rail_plane(3, NCCL_NET_ID_UNDEF, NCCL_NET_ID_UNDEF);
	end_job();
	run_job("");
	check_rail_plane(0, NCCL_NET_ID_UNDEF, NCCL_NET_ID_UNDEF);
	end_job();
}

/* One rail or none; one plane, or a number that stands for several and is no single plane's. */
static void fused_ones(void)
{
	run_job("=soft0:1:3:7,soft1:1:3:9,soft2:1:3:7,soft3:1:4:9");
	check_rail_plane(fuse_devices(2, (int[]) { 0, 1 }), 3, VIRTUAL_PLANE | 1 | 2);
	check_rail_plane(fuse_devices(2, (int[]) { 0, 2 }), 3, 7);
	check_rail_plane(fuse_devices(2, (int[]) { 1, 3 }), NCCL_NET_ID_UNDEF, 9);
	check_rail_plane(fuse_devices(3, (int[]) { 2, 1, 0 }), 3, VIRTUAL_PLANE | 1 | 2);
	end_job();
	run_job("=soft0:1:3:7,soft1:1:3,soft2,soft3");
	check_rail_plane(fuse_devices(2, (int[]) { 0, 1 }), 3, NCCL_NET_ID_UNDEF);
	check_rail_plane(fuse_devices(2, (int[]) { 0, 2 }), NCCL_NET_ID_UNDEF, NCCL_NET_ID_UNDEF);
	end_job();
}

/* A number that NCCL has no room for, or takes for a set of planes, is refused with its item. */
static void too_large(void)
{
	run_job("=soft0:1:32767:16383,soft1:1:32768:0,soft2:1:0:16384,soft3");
	CHECK(rig.plugin.devices == 2, "%d devices", rig.plugin.devices);
	check_rail_plane(0, 32767, 16383);
	CHECK(rig_logged("soft1:1:32768"), "no word about what is ignored");
	end_job();
}

int main(int argc, char **argv)
{
	setenv("SOFTROCE_DEVICES", "127.1.0.0/16,127.2.0.0/16,127.3.0.0/16,127.4.0.0/16", 1);
	/* each incarnation counts the ports that its list leaves */
	setenv("NCCL_NET_PLUGIN_REF_COUNT", "0", 1);
	rig_prepare(&rig, argc, argv);
	rig_load(&rig, rig_plugin_path());
	check_ports();
	fused_ones();
	too_large();
	return 0;
}
