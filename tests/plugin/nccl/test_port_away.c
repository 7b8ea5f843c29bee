/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A port is away when the first of new communicators begins, after the last one has been finalized.
 * NCCL counts its devices once while the plugin is loaded (v11 and later,
 * NCCL_NET_PLUGIN_REF_COUNT=1): their numbers, and those of fused ones, still mean the same, and
 * what begins on the port that is away goes over the other.
 */
#include "tests/plugin/nccl/rig.h"

#include <sched.h>
#include <unistd.h>

#include "plugin/nccl/abi/net_v12.h"

/* The kernel says a moment later that a link is up. */
#define UP(link)                                                 \
	"ip link set " link " up && until ip -o link show " link \
	" | grep -q 'state UP'; do sleep 0.01; done"
#define NETWORK                                                                                \
	"ip link set lo up && ip link add ha_a type veth peer name ha_a1 && ip link add ha_b " \
	"type veth peer name ha_b1 && "                                                        \
	"ip addr add 10.78.1.1/24 dev ha_a && ip addr add 10.78.2.1/24 dev ha_b && "           \
	"ip link set ha_a1 up && ip link set ha_b1 up && " UP("ha_a") " && " UP("ha_b")

static struct rig rig;

/* The fields that are looked at lie alike in v11 and v12. */
static void check_name(int dev, const char *name)
{
	const ncclNet_v12_t *table = rig.plugin.table;
	ncclNetProperties_v12_t p;

	CHECK(table->getProperties(dev, &p) == ncclSuccess, "there is no device %d: %s", dev,
	      rig_last_log());
	CHECK(!strcmp(p.name, name), "device %d is %s, not %s", dev, p.name, name);
}

static void carry_message(int dev)
{
	struct rig_pair pair;

	rig_pair_open_on(&rig, &pair, dev);
	rig_exchange(&rig, &pair, 1 << 20);
	rig_pair_close(&rig, &pair);
}

static void look_and_carry(void)
{
	static const char *const names[] = { "soft0", "soft1", "soft0+soft1" };

	for (int dev = 0; dev < 3; dev++)
		check_name(dev, names[dev]);
	for (int dev = 0; dev < 3; dev++)
		carry_message(dev);
}

/* Without the port from the beginning: only the other is counted. */
static void first_job(void)
{
	int devices = -1, dev = -1;

	OK(rig_init(&rig));
	OK(rig.plugin.count(&devices));
	CHECK(devices == 2, "%d devices", devices);
	OK(rig.plugin.abi->fuse(&rig.plugin, &dev, 2, (int[]) { 0, 1 }));
	look_and_carry();
	OK(rig.plugin.abi->finalize(&rig.plugin));
}

static void next_job(const char *command)
{
	CHECK(!system(command), "%s", command);
	OK(rig_init(&rig));
	look_and_carry();
	OK(rig.plugin.abi->finalize(&rig.plugin));
}

int main(int argc, char **argv)
{
	if (unshare(CLONE_NEWNET) || system(NETWORK)) {
		printf("no network namespaces here\n");
		return RIG_SKIP;
	}
	setenv("SOFTROCE_DEVICES", "ha_a,ha_b", 1);
	setenv("NCCL_NET_PLUGIN_REF_COUNT", "1", 1);
	rig_prepare(&rig, argc, argv);
	rig_load(&rig, rig_plugin_path());
	first_job();
	next_job("ip link set ha_a down");
	next_job(UP("ha_a") " && ip link set ha_b down");
	next_job(UP("ha_b"));
	return 0;
}
