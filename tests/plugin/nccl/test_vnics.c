/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fused devices as NCCL's topology detection counts them, from v9 on: devices() before makeVDevice
 * is the number of ports; the difference to devices() behind it is the number of fused devices,
 * which lie at the numbers behind the ports, in the order in which they were made. The collnet
 * table is asked first and counts for itself. What NCCL keeps over the end of its last communicator
 * (v11 and later where the library stays loaded, v9 and v10 always) the plugin keeps too.
 */
#include "tests/plugin/nccl/rig.h"

#include <dlfcn.h>

#include "plugin/nccl/abi/net_v10.h"
#include "plugin/nccl/abi/net_v11.h"
#include "plugin/nccl/abi/net_v12.h"
#include "plugin/nccl/abi/net_v9.h"
#include "tools/perf/collnet_table.h"

#define PORTS 4
#define MOST 8

struct seen {
	char name[64];
	int ndevs, devs[MOST];
};

struct calls {
	ncclResult_t (*look)(const void *net, int dev, struct seen *seen);
	ncclResult_t (*fuse)(const void *collnet, int *dev, int n, const int *devs);
};

#define CALLS(v)                                                                    \
	static ncclResult_t look_v##v(const void *net, int dev, struct seen *seen)  \
	{                                                                           \
		const ncclNet_v##v##_t *t = net;                                    \
		ncclNetProperties_v##v##_t p;                                       \
		ncclResult_t result = t->getProperties(dev, &p);                    \
                                                                                    \
		if (result != ncclSuccess)                                          \
			return result;                                              \
		snprintf(seen->name, sizeof(seen->name), "%s", p.name);             \
		seen->ndevs = p.vProps.ndevs;                                       \
		for (int i = 0; i < p.vProps.ndevs; i++)                            \
			seen->devs[i] = p.vProps.devs[i];                           \
		return ncclSuccess;                                                 \
	}                                                                           \
	static ncclResult_t collnet_fuse_v##v(const void *collnet, int *dev, int n, \
					      const int *devs)                      \
	{                                                                           \
		const ncclCollNet_v##v##_t *t = collnet;                            \
		ncclNetVDeviceProps_v##v##_t p = { .ndevs = n };                    \
                                                                                    \
		memcpy(p.devs, devs, (size_t)n * sizeof(*devs));                    \
		return t->makeVDevice(dev, &p);                                     \
	}
CALLS(9)
CALLS(10)
CALLS(11)
CALLS(12)

static const struct calls *calls_of(const struct rig *rig)
{
	static const struct calls calls[] = { { look_v9, collnet_fuse_v9 },
					      { look_v10, collnet_fuse_v10 },
					      { look_v11, collnet_fuse_v11 },
					      { look_v12, collnet_fuse_v12 } };

	return &calls[rig->version - 9];
}

static int count_devices(struct rig *rig)
{
	int n = -1;

	OK(rig->plugin.count(&n));
	return n;
}

static int collnet_count(const struct ha_collnet_table *collnet)
{
	int n = -1;

	OK(ha_collnet_table_devices(collnet, &n));
	return n;
}

static void fuse_two(struct rig *rig, int a, int b)
{
	int dev = -1;

	OK(rig->plugin.abi->fuse(&rig->plugin, &dev, 2, (int[]) { a, b }));
}

static void look_at_fused(struct rig *rig, int dev, int a, int b)
{
	struct seen seen, one, other;
	char name[sizeof(one.name) + sizeof(other.name) + 1];

	CHECK(calls_of(rig)->look(rig->plugin.table, dev, &seen) == ncclSuccess,
	      "there is no device %d: %s", dev, rig_last_log());
	OK(calls_of(rig)->look(rig->plugin.table, a, &one));
	OK(calls_of(rig)->look(rig->plugin.table, b, &other));
	snprintf(name, sizeof(name), "%s+%s", one.name, other.name);
	CHECK(!strcmp(seen.name, name), "device %d is %s, not %s", dev, seen.name, name);
	CHECK(seen.ndevs == 2 && seen.devs[0] == a && seen.devs[1] == b, "device %d has %d members",
	      dev, seen.ndevs);
}

static void look_at_ports(struct rig *rig)
{
	for (int dev = 0; dev < PORTS; dev++) {
		struct seen seen;

		OK(calls_of(rig)->look(rig->plugin.table, dev, &seen));
		CHECK(seen.ndevs == 1 && seen.devs[0] == dev, "port %d consists of %d", dev,
		      seen.ndevs);
	}
}

static void carry_message(struct rig *rig, int dev)
{
	struct rig_pair pair;

	rig_pair_open_on(rig, &pair, dev);
	rig_exchange(rig, &pair, 1 << 20);
	rig_pair_close(rig, &pair);
}

/* What NCCL does for its first communicator: two cards of two ports each. */
static void detect_cards(struct rig *rig)
{
	CHECK(count_devices(rig) == PORTS, "%d devices before any was fused", count_devices(rig));
	look_at_ports(rig);
	fuse_two(rig, 0, 1);
	fuse_two(rig, 2, 3);
	CHECK(count_devices(rig) == PORTS + 2, "%d devices after two of %d ports were fused",
	      count_devices(rig), PORTS);
	look_at_fused(rig, PORTS, 0, 1);
	look_at_fused(rig, PORTS + 1, 2, 3);
}

/* What it does for all later ones. */
static void detect_again(struct rig *rig)
{
	look_at_ports(rig);
	look_at_fused(rig, PORTS, 0, 1);
	look_at_fused(rig, PORTS + 1, 2, 3);
	CHECK(count_devices(rig) == PORTS + 2, "%d devices, where NCCL knows %d",
	      count_devices(rig), PORTS + 2);
}

static void first_and_second(struct rig *rig)
{
	struct rig second = *rig;

	OK(rig_init(rig));
	detect_cards(rig);
	carry_message(rig, PORTS + 1);
	second.plugin = rig->plugin;
	OK(rig_init(&second));
	detect_again(&second);
	carry_message(&second, PORTS);
	if (second.plugin.abi->finalize)
		OK(second.plugin.abi->finalize(&second.plugin));
	detect_again(rig);
}

/* v11 and later with NCCL_NET_PLUGIN_REF_COUNT=1: the library stays, and with it what NCCL knows of
 * its devices. */
static void kept_over_finalize(struct rig *rig)
{
	OK(rig->plugin.abi->finalize(&rig->plugin));
	OK(rig_init(rig));
	detect_again(rig);
	carry_message(rig, PORTS);
}

/* The library is closed and opened, but another user keeps it in memory: NCCL has forgotten all and
 * counts from the start. */
static void counted_anew(struct rig *rig)
{
	void *other = dlopen(rig_plugin_path(), RTLD_NOW | RTLD_LOCAL);

	CHECK(other, "%s", dlerror());
	rig_close(rig);
	rig_load(rig, rig_plugin_path());
	OK(rig_init(rig));
	CHECK(count_devices(rig) == PORTS, "%d devices before any was fused", count_devices(rig));
	fuse_two(rig, 2, 3);
	CHECK(count_devices(rig) == PORTS + 1, "%d devices after two of %d ports were fused",
	      count_devices(rig), PORTS);
	look_at_fused(rig, PORTS, 2, 3);
	carry_message(rig, PORTS);
	rig_close(rig);
	dlclose(other);
}

/* v9 and v10: NCCL 2.24 to 2.27 closes the library and keeps the counts under the network's
 * name. */
static void kept_over_dlclose(struct rig *rig)
{
	rig_close(rig);
	rig_load(rig, rig_plugin_path());
	OK(rig_init(rig));
	CHECK(count_devices(rig) > 0, "no device after a new load");
	detect_again(rig);
	carry_message(rig, PORTS + 1);
	rig_close(rig);
}

/* In a process of its own: collnet's table is asked before net's, and fuses the same. */
static void collnet_first(struct rig *rig)
{
	struct ha_collnet_table collnet;
	int dev = -1;

	OK(rig_init(rig));
	if (rig->version >= 11) /* which counts at once; v9 and v10 behind collnet's part */
		CHECK(count_devices(rig) == PORTS, "%d devices before any was fused",
		      count_devices(rig));
	CHECK(!ha_collnet_table_open(&collnet, &rig->plugin, rig->version, rig_logger), "%s",
	      rig_last_log());
	CHECK(collnet.devices == PORTS, "collnet has %d devices", collnet.devices);
	OK(calls_of(rig)->fuse(collnet.table, &dev, 2, (int[]) { 1, 3 }));
	CHECK(collnet_count(&collnet) == PORTS + 1, "collnet has %d devices with a fused one",
	      collnet_count(&collnet));
	CHECK(count_devices(rig) == PORTS, "net counts %d devices, with collnet's fused one",
	      count_devices(rig));
	fuse_two(rig, 1, 3);
	CHECK(count_devices(rig) == PORTS + 1, "net has %d devices with a fused one",
	      count_devices(rig));
	CHECK(collnet_count(&collnet) == PORTS + 1, "collnet has %d devices with one fused twice",
	      collnet_count(&collnet));
	look_at_fused(rig, PORTS, 1, 3);
	CHECK(!ha_collnet_table_close(&collnet), "%s", rig_last_log());
	rig_close(rig);
}

int main(int argc, char **argv)
{
	struct rig rig;

	setenv("SOFTROCE_DEVICES", "127.1.0.0/16,127.2.0.0/16,127.3.0.0/16,127.4.0.0/16", 1);
	setenv("HA_NCCL_COLLNET", "1", 1);
	rig_expect_calm();
	rig_prepare(&rig, argc, argv);
	rig_load(&rig, rig_plugin_path());
	if (argc > 2) {
		collnet_first(&rig);
		return 0;
	}
	first_and_second(&rig);
	if (rig.version >= 11) {
		kept_over_finalize(&rig);
		counted_anew(&rig);
	} else {
		kept_over_dlclose(&rig);
	}
	rig_check_calm();
	return 0;
}
