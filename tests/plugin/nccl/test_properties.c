/* SPDX-License-Identifier: BSD-3-Clause */
/* Name, device count and properties are what NCCL can work with, in every version's own words. */
#include "tests/plugin/nccl/rig.h"

#include "plugin/nccl/abi/net_v10.h"
#include "plugin/nccl/abi/net_v11.h"
#include "plugin/nccl/abi/net_v12.h"
#include "plugin/nccl/abi/net_v6.h"
#include "plugin/nccl/abi/net_v7.h"
#include "plugin/nccl/abi/net_v8.h"
#include "plugin/nccl/abi/net_v9.h"

#define COMMON(p)                                                                               \
	do {                                                                                    \
		CHECK((p).name && (p).name[0], "no name");                                      \
		CHECK((p).ptrSupport &NCCL_PTR_HOST, "no host memory: 0x%x", (p).ptrSupport);   \
		CHECK(!((p).ptrSupport & ~7), "unknown kinds of memory: 0x%x", (p).ptrSupport); \
		CHECK((p).speed > 0, "speed %d", (p).speed);                                    \
		CHECK((p).port >= 1, "port %d", (p).port);                                      \
		CHECK((p).latency >= 0, "latency %f", (double)(p).latency);                     \
		CHECK((p).maxComms > 0, "maxComms %d", (p).maxComms);                           \
		CHECK((p).maxRecvs >= 1 && (p).maxRecvs <= 8, "maxRecvs %d", (p).maxRecvs);     \
	} while (0)
#define HOST_ONLY(p, t)                                                                      \
	do {                                                                                 \
		CHECK((p).netDeviceType == NCCL_NET_DEVICE_HOST, "device type %d",           \
		      (p).netDeviceType);                                                    \
		CHECK((p).netDeviceVersion == NCCL_NET_DEVICE_INVALID_VERSION, "version %d", \
		      (p).netDeviceVersion);                                                 \
		CHECK(!(t)->getDeviceMr && !(t)->irecvConsumed,                              \
		      "calls for a device that there is none");                              \
	} while (0)
#define SIZED(p, t, dev)                                                                          \
	do {                                                                                      \
		CHECK((p).vProps.ndevs == 1 && (p).vProps.devs[0] == (dev), "%d devices",         \
		      (p).vProps.ndevs);                                                          \
		CHECK((p).maxP2pBytes > 0 && (p).maxP2pBytes <= NCCL_MAX_NET_SIZE_BYTES, "%zu",   \
		      (p).maxP2pBytes);                                                           \
		CHECK((p).maxCollBytes > 0 && (p).maxCollBytes <= NCCL_MAX_NET_SIZE_BYTES, "%zu", \
		      (p).maxCollBytes);                                                          \
		CHECK((p).forceFlush == 0 || (p).forceFlush == 1, "forceFlush %d",                \
		      (p).forceFlush);                                                            \
		CHECK((t)->makeVDevice, "no virtual devices");                                    \
	} while (0)

/* Reads the properties of `dev` through the table's own function into p, which lies between
 * poisoned bytes. */
#define READ(v)                                                             \
	const ncclNet_v##v##_t *t = rig->plugin.table;                      \
	ncclNetProperties_v##v##_t p;                                       \
	memset(&p, 0x5a, sizeof(p));                                        \
	CHECK(t->getProperties(-1, &p) != ncclSuccess, "device -1 exists"); \
	CHECK(t->getProperties(rig->plugin.devices, &p) != ncclSuccess,     \
	      "a device behind the last exists");                           \
	OK(t->getProperties(dev, &p));                                      \
	COMMON(p)

static void check_v6(struct rig *rig, int dev)
{
	READ(6);
}

static void check_v7(struct rig *rig, int dev)
{
	READ(7);
	HOST_ONLY(p, t);
}

static void check_v8(struct rig *rig, int dev)
{
	READ(8);
	HOST_ONLY(p, t);
	CHECK(p.regIsGlobal == 0 || p.regIsGlobal == 1, "regIsGlobal %d", p.regIsGlobal);
}

static void check_v9(struct rig *rig, int dev)
{
	READ(9);
	HOST_ONLY(p, t);
	SIZED(p, t, dev);
}

static void check_v10(struct rig *rig, int dev)
{
	READ(10);
	HOST_ONLY(p, t);
	SIZED(p, t, dev);
}

static void check_v11(struct rig *rig, int dev)
{
	READ(11);
	HOST_ONLY(p, t);
	SIZED(p, t, dev);
	CHECK(p.maxMultiRequestSize == 1, "maxMultiRequestSize %d", p.maxMultiRequestSize);
	CHECK(t->finalize, "no finalize");
}

static void check_v12(struct rig *rig, int dev)
{
	READ(12);
	HOST_ONLY(p, t);
	SIZED(p, t, dev);
	CHECK(p.maxMultiRequestSize == 1, "maxMultiRequestSize %d", p.maxMultiRequestSize);
	CHECK(p.railId >= NCCL_NET_ID_UNDEF, "rail %d", p.railId);
	CHECK(p.planeId >= NCCL_NET_ID_UNDEF, "plane %d", p.planeId);
	CHECK(t->finalize, "no finalize");
}

int main(int argc, char **argv)
{
	static void (*const check[])(struct rig *, int) = { check_v6, check_v7,  check_v8,
							    check_v9, check_v10, check_v11,
							    check_v12 };
	struct ha_plugin_props a, b;
	struct rig rig;

	rig_open(&rig, argc, argv);
	CHECK(!strcmp(rig.plugin.name, "HA"), "name '%s'", rig.plugin.name);
	for (int dev = 0; dev < rig.plugin.devices; dev++)
		check[rig.version - 6](&rig, dev);
	/* NCCL's topology finds a network device by its name, so two devices must not share one. */
	for (int i = 0; i < rig.plugin.devices; i++) {
		for (int j = 0; j < i; j++) {
			OK(rig.plugin.abi->props(&rig.plugin, i, &a));
			OK(rig.plugin.abi->props(&rig.plugin, j, &b));
			CHECK(strcmp(a.name, b.name), "devices %d and %d are both called %s", i, j,
			      a.name);
		}
	}
	/* The budget is printed under INFO. */
	CHECK(rig_logged("maxComms") && rig_logged("maxRecvs"), "the budget was not printed");
	rig_close(&rig);
	return 0;
}
