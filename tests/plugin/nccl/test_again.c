/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A communicator after the last one. NCCL 2.27 to 2.30 (interfaces v10 to v12) close the plugin
 * with the last communicator, forget its name, and for the next one open "libnccl-net.so" whatever
 * NCCL_NET_PLUGIN says; without such a file they go on over sockets. The plugin is found under that
 * name, unless LD_LIBRARY_PATH has another file of that name, which it leaves alone.
 */
#include "tests/plugin/nccl/rig.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEFAULT_NAME "libnccl-net.so"
#define TIMES 4

static struct rig rig;

static void run_job(const char *name)
{
	struct rig_pair pair;

	rig_load(&rig, name);
	OK(rig_init(&rig));
	OK(rig.plugin.count(&rig.plugin.devices));
	CHECK(rig.plugin.devices == 2, "%d devices", rig.plugin.devices);
	rig_pair_open(&rig, &pair);
	rig_exchange(&rig, &pair, 100000);
	rig_pair_close(&rig, &pair);
	rig_close(&rig);
}

static void found_again(void)
{
	const void *table;
	int threads;

	run_job(rig_plugin_path());
	table = rig.plugin.table;
	threads = rig.version < 11 ? rig_count_lasting_threads(1) : rig_count_threads(1);
	for (int i = 1; i < TIMES; i++) {
		run_job(DEFAULT_NAME);
		CHECK(rig.plugin.table == table, "another plugin was found");
	}
	rig_await_threads(&rig, threads);
}

static void kept_by_nccl(void)
{
	run_job(rig_plugin_path());
	CHECK(!dlopen(DEFAULT_NAME, RTLD_NOW | RTLD_NOLOAD), "it stays where NCCL keeps it");
}

/* The loader reads LD_LIBRARY_PATH when the program begins. */
static void begin_with_another(char **argv)
{
	char folder[] = "/tmp/hawser-again-XXXXXX", file[64];

	CHECK(mkdtemp(folder), "no folder");
	snprintf(file, sizeof(file), "%s/" DEFAULT_NAME, folder);
	CHECK(!symlink(RIG_OTHER_PLUGIN, file), "no link");
	setenv("LD_LIBRARY_PATH", folder, 1);
	setenv("RIG_FOLDER", folder, 1);
	execv("/proc/self/exe", argv);
	CHECK(false, "cannot begin again");
}

static void another_is_left_alone(void)
{
	char file[64];

	run_job(rig_plugin_path());
	CHECK(!dlopen(DEFAULT_NAME, RTLD_NOW | RTLD_NOLOAD),
	      "the other " DEFAULT_NAME " was opened, or hidden");
	CHECK(rig_logged("NCCL_NET_PLUGIN_REF_COUNT=1"), "no word about what keeps the plugin");
	snprintf(file, sizeof(file), "%s/" DEFAULT_NAME, getenv("RIG_FOLDER"));
	unlink(file);
	rmdir(getenv("RIG_FOLDER"));
}

int main(int argc, char **argv)
{
	const char *scene = argc > 2 ? argv[2] : "";

	if (!strcmp(scene, "other") && !getenv("RIG_FOLDER"))
		begin_with_another(argv);
	setenv("NCCL_NET_PLUGIN_REF_COUNT", strcmp(scene, "kept") ? "0" : "1", 1);
	rig_prepare(&rig, argc, argv);
	if (!strcmp(scene, "other"))
		another_is_left_alone();
	else if (!strcmp(scene, "kept"))
		kept_by_nccl();
	else
		found_again();
	return 0;
}
