/* SPDX-License-Identifier: BSD-3-Clause */
/* From v9 on: makeVDevice makes one device of two; a connection on it uses both, and what cannot be
 * fused is refused. */
#include "tests/plugin/nccl/rig.h"

#include <sys/wait.h>
#include <unistd.h>

#include "plugin/nccl/abi/net_v10.h"
#include "plugin/nccl/abi/net_v11.h"
#include "plugin/nccl/abi/net_v12.h"
#include "plugin/nccl/abi/net_v9.h"

#define MOST 8

struct seen {
	char name[64];
	int speed, ndevs, devs[MOST];
};

#define CALLS(v)                                                                   \
	static ncclResult_t look_v##v(struct rig *rig, int dev, struct seen *seen) \
	{                                                                          \
		const ncclNet_v##v##_t *t = rig->plugin.table;                     \
		ncclNetProperties_v##v##_t p;                                      \
		ncclResult_t result = t->getProperties(dev, &p);                   \
                                                                                   \
		if (result != ncclSuccess)                                         \
			return result;                                             \
		snprintf(seen->name, sizeof(seen->name), "%s", p.name);            \
		seen->speed = p.speed;                                             \
		seen->ndevs = p.vProps.ndevs;                                      \
		for (int i = 0; i < p.vProps.ndevs; i++)                           \
			seen->devs[i] = p.vProps.devs[i];                          \
		return ncclSuccess;                                                \
	}
CALLS(9)
CALLS(10)
CALLS(11)
CALLS(12)

static ncclResult_t fuse_devices(struct rig *rig, int *dev, int n, const int *devs)
{
	return rig->plugin.abi->fuse(&rig->plugin, dev, n, devs);
}

static ncclResult_t look_at_device(struct rig *rig, int dev, struct seen *seen)
{
	static ncclResult_t (*const of[])(
		struct rig *, int, struct seen *) = { look_v9, look_v10, look_v11, look_v12 };

	return of[rig->version - 9](rig, dev, seen);
}

static void check_refusals(struct rig *rig)
{
	int dev = -7;

	CHECK(fuse_devices(rig, &dev, 0, (int[]) { 0 }) != ncclSuccess, "fused of nothing");
	CHECK(fuse_devices(rig, &dev, 2, (int[]) { 0, 0 }) != ncclSuccess, "fused with itself");
	CHECK(fuse_devices(rig, &dev, 2, (int[]) { 0, 99 }) != ncclSuccess,
	      "fused with a device that there is not");
	CHECK(fuse_devices(rig, &dev, 2, (int[]) { 0, -1 }) != ncclSuccess,
	      "fused with a device that there is not");
	CHECK(fuse_devices(rig, &dev, 99, (int[]) { 0, 1, 0, 1, 0, 1, 0, 1 }) != ncclSuccess,
	      "fused of more than there are");
	CHECK(dev == -7, "a number for what was refused");
	CHECK(rig_warnings() >= 4, "refused without a warning");
	rig_forget_log();
}

static int fused_of_both(struct rig *rig)
{
	struct seen one, other, both;
	char name[64];
	int dev = -1, again = -1;

	OK(fuse_devices(rig, &dev, 1, (int[]) { 1 }));
	CHECK(dev == 1, "one device alone is %d, not itself", dev);
	OK(fuse_devices(rig, &dev, 2, (int[]) { 0, 1 }));
	CHECK(dev >= rig->plugin.devices, "a fused device has the number %d of a port", dev);
	OK(fuse_devices(rig, &again, 2, (int[]) { 0, 1 }));
	CHECK(again == dev, "the same two are %d, then %d", dev, again);
	OK(fuse_devices(rig, &again, 2, (int[]) { 1, 0 }));
	CHECK(again != dev, "another order is the same device");
	OK(look_at_device(rig, 0, &one));
	OK(look_at_device(rig, 1, &other));
	OK(look_at_device(rig, dev, &both));
	CHECK(both.speed == one.speed + other.speed, "%d and %d make %d", one.speed, other.speed,
	      both.speed);
	CHECK(both.ndevs == 2 && both.devs[0] == 0 && both.devs[1] == 1, "made of %d", both.ndevs);
	snprintf(name, sizeof(name), "%s+%s", rig_device(0), rig_device(1));
	CHECK(!strcmp(both.name, name), "its name is '%s'", both.name);
	CHECK(look_at_device(rig, again + 1, &both) != ncclSuccess,
	      "a device behind the last exists");
	return dev;
}

/* NCCL_IB_MERGE_NICS=0: one device stays itself, several are refused, and that is no fault. */
static void check_without_merging(int argc, char **argv)
{
	struct rig rig;
	int dev = -7, status;
	pid_t child = fork(); /* variables are read once in a process */

	CHECK(child >= 0, "fork");
	if (child) {
		CHECK(waitpid(child, &status, 0) == child && !status, "status %#x", status);
		return;
	}
	setenv("NCCL_IB_MERGE_NICS", "0", 1);
	rig_open(&rig, argc, argv);
	OK(fuse_devices(&rig, &dev, 1, (int[]) { 1 }));
	CHECK(dev == 1, "one device alone is %d", dev);
	CHECK(fuse_devices(&rig, &dev, 2, (int[]) { 0, 1 }) == ncclInvalidUsage,
	      "two are fused all the same");
	CHECK(rig_warnings() == 0, "%s", rig_last_warning());
	rig_close(&rig);
	exit(0);
}

int main(int argc, char **argv)
{
	static const size_t sizes[] = { 0, 1, 8, 65535, 65536, 65537, 1 << 20, (8 << 20) + 4097 };
	struct rig rig;
	struct rig_pair pair;
	char second[48];
	int dev;

	check_without_merging(argc, argv);
	rig_expect_calm();
	rig_open(&rig, argc, argv);
	check_refusals(&rig);
	dev = fused_of_both(&rig);
	rig_pair_open_on(&rig, &pair, dev);
	snprintf(second, sizeof(second), "rail 1: %s:1", rig_device(1));
	CHECK(rig_logged(second), "there is no second rail");
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		rig_exchange(&rig, &pair, sizes[i]);
	rig_check_calm();
	rig_pair_close(&rig, &pair);
	/* An end with one port and an end with two use what both have. */
	OK(rig.plugin.abi->listen(&rig.plugin, dev, pair.handle, &pair.listen));
	rig_pair_connect(&rig, &pair, 0);
	rig_exchange(&rig, &pair, 1 << 20);
	rig_pair_close(&rig, &pair);
	rig_close(&rig);
	return 0;
}
