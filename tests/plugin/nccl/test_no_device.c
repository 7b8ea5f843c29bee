/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * No usable device: init fails with a line that says so (NCCL then takes another transport), leaves
 * nothing behind, and succeeds when it is asked again on better ground.
 */
#include "tests/plugin/nccl/rig.h"

int main(int argc, char **argv)
{
	struct rig rig;
	struct rig_pair pair;
	int threads, devices = -1;

	rig_prepare(&rig, argc, argv);
	threads = rig_count_threads(1);
	rig_load(&rig, rig_plugin_path());
	setenv("NCCL_IB_HCA", "=there_is_no_such_device", 1);
	CHECK(rig_init(&rig) != ncclSuccess, "init succeeded without a device");
	CHECK(rig_count_threads(threads) == threads, "a failed init left a thread");
	CHECK(rig_last_log()[0] && rig_warnings() >= 1, "a failed init said nothing");
	OK(rig.plugin.count(&devices));
	CHECK(devices == 0, "%d devices", devices);
	unsetenv("NCCL_IB_HCA");
	OK(rig_init(&rig));
	OK(rig.plugin.count(&devices));
	CHECK(devices > 0, "%d devices", devices);
	rig_pair_open(&rig, &pair);
	rig_exchange(&rig, &pair, 100);
	rig_pair_close(&rig, &pair);
	rig_close(&rig);
	return 0;
}
