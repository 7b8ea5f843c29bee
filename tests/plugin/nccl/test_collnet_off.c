/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * No switch for this process: devices() says 0 with one line why, net works, and nothing is left
 * although NCCL does not finalize a collnet table that has no device. In a process of its own for
 * each reason.
 */
#include "tests/plugin/nccl/rig.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/perf/collnet_table.h"

static const struct {
	const char *collnet, *enable, *backend, *line;
} reasons[] = {
	{ "0", "1", NULL, NULL },
	{ NULL, NULL, NULL, "NCCL_COLLNET_ENABLE" },
	{ NULL, "0", NULL, "NCCL_COLLNET_ENABLE" },
	{ NULL, "1", "/nonexistent/ina.sock", "collnet: no device" },
	{ "auto", "1", "/nonexistent/ina.sock", "/nonexistent/ina.sock" },
};

static void set_variable(const char *name, const char *value)
{
	if (value)
		setenv(name, value, 1);
	else
		unsetenv(name);
}

static void expect_none(int argc, char **argv)
{
	struct rig rig;
	struct rig_pair pair;
	struct ha_collnet_table table;
	const char *line = reasons[atoi(argv[2])].line;
	int n = -1, threads;

	rig_prepare(&rig, 2, argv);
	threads = rig_count_threads(1);
	rig_load(&rig, rig_plugin_path());
	OK(rig_init(&rig));
	CHECK(ha_collnet_table_open(&table, &rig.plugin, rig.version, rig_logger) == -ENODEV,
	      "it has devices");
	CHECK(!line || rig_log_lines(line) == 1, "'%s' was said %u times", line,
	      rig_log_lines(line));
	OK(ha_collnet_table_devices(&table, &n)); /* once for each communicator */
	CHECK(n == 0 && (!line || rig_log_lines(line) == 1), "%d devices now, or said again", n);
	OK(rig.plugin.count(&rig.plugin.devices));
	rig_pair_open(&rig, &pair);
	rig_exchange(&rig, &pair, 5000);
	rig_pair_close(&rig, &pair);
	if (rig.plugin.abi->finalize) {
		OK(rig.plugin.abi->finalize(&rig.plugin));
		CHECK(rig_count_threads(threads) == threads,
		      "threads are left after the last finalize");
	}
	rig.plugin.initialized = false;
	rig_close(&rig);
}

int main(int argc, char **argv)
{
	if (argc == 3) {
		expect_none(argc, argv);
		return 0;
	}
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		char number[8], *arguments[] = { argv[0], argv[1], number, NULL };
		int status = -1;
		pid_t pid;

		snprintf(number, sizeof(number), "%zu", i);
		set_variable("HA_NCCL_COLLNET", reasons[i].collnet);
		set_variable("NCCL_COLLNET_ENABLE", reasons[i].enable);
		set_variable("NETCCL_BACKEND", reasons[i].backend);
		pid = fork();
		if (!pid)
			execv("/proc/self/exe", arguments);
		CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status),
		      "reason %zu: status %d", i, status);
	}
	return 0;
}
