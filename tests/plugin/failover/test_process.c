/* SPDX-License-Identifier: BSD-3-Clause */
/* What happens to processes: they fork in the middle of a failover, they are stopped or frozen, and
 * go on later. */
#include "tests/plugin/failover/duel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Children that hold copies of everything: made before, while and after the path is lost, at both
 * ends. */
static void fork_failover(void)
{
	const struct duel_setup setup = { .lanes = 2, .threads = 2 };
	struct duel d;

	duel_open(&d, &setup);
	duel_await_events(&d, SENDER, EVENT("protected"), NULL, 2);
	for (int round = 0; round < 6; round++) {
		int nic = round % 2, cut = round / 2 % ENDS;

		for (int end = 0; end < ENDS; end++)
			duel_fork(&d, end);
		duel_cut(&d, cut, nic);
		for (int end = 0; end < ENDS; end++)
			duel_fork(&d, end);
		duel_flow(&d, 30);
		duel_await_forks(&d);
		duel_heal(&d, cut, nic);
		duel_await_events(&d, SENDER, EVENT("recovered"), NULL, 2 * round + 2);
		duel_flow(&d, 30);
	}
	duel_close(&d);
}

static void stop_end(enum duel_end end, unsigned seconds)
{
	const struct duel_setup setup = { .lanes = 2 };
	struct duel d;

	duel_open(&d, &setup);
	duel_await_events(&d, SENDER, EVENT("protected"), NULL, 2);
	duel_stop(&d, end, seconds);
	duel_flow(&d, 100);
	duel_close(&d);
}

static void stop_sender(void)
{
	stop_end(SENDER, 2);
}

static void stop_receiver(void)
{
	stop_end(RECEIVER, 2);
}

/* Within the 81 s after which a connection without a path ends. */
static void stop_sender_60(void)
{
	stop_end(SENDER, 60);
}

static void stop_receiver_60(void)
{
	stop_end(RECEIVER, 60);
}

static bool write_file(const char *folder, const char *name, const char *text)
{
	char path[256];
	int fd;
	bool ok;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	if (fd >= 0)
		close(fd);
	return ok;
}

/* A control group of our own that can be frozen, of version 2 or 1; the name of the file that does
 * it. NULL: none can be made. */
static const char *freezer_make(char *folder, size_t size)
{
	static const char *const roots[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified",
					     "/sys/fs/cgroup/freezer" };
	static const char *const files[] = { "cgroup.freeze", "freezer.state" };

	for (unsigned i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
		snprintf(folder, size, "%s/hawser-test-%d", roots[i], (int)getpid());
		if (mkdir(folder, 0755))
			continue;
		for (unsigned f = 0; f < 2; f++) {
			char path[192];

			snprintf(path, sizeof(path), "%s/%s", folder, files[f]);
			if (!access(path, W_OK))
				return files[f];
		}
		rmdir(folder);
	}
	return NULL;
}

/* By the kernel's freezer, which no signal shows. */
static void freeze_both_ends(void)
{
	const struct duel_setup setup = { .lanes = 2 };
	char folder[128], pid[32];
	const char *file = freezer_make(folder, sizeof(folder));
	struct duel d;

	if (!file) {
		printf("skipped: no control group with a freezer can be made here\n");
		exit(77);
	}
	duel_open(&d, &setup);
	duel_await_events(&d, SENDER, EVENT("protected"), NULL, 2);
	for (int end = 0; end < ENDS; end++) {
		snprintf(pid, sizeof(pid), "%d", (int)d.pid[end]);
		HOLDS(&d, write_file(folder, "cgroup.procs", pid), "%s: %s", folder,
		      strerror(errno));
		HOLDS(&d, write_file(folder, file, *file == 'c' ? "1" : "FROZEN"), "%s: %s", file,
		      strerror(errno));
		sleep(2);
		HOLDS(&d, write_file(folder, file, *file == 'c' ? "0" : "THAWED"), "%s: %s", file,
		      strerror(errno));
		duel_flow(&d, 100);
	}
	duel_close(&d);
	rmdir(folder);
}

int main(int argc, char **argv)
{
	static const struct duel_test tests[] = {
		{ "fork_failover", fork_failover },   { "stop_sender", stop_sender },
		{ "stop_receiver", stop_receiver },   { "frozen", freeze_both_ends },
		{ "stop_sender_60", stop_sender_60 }, { "stop_receiver_60", stop_receiver_60 },
	};

	return duel_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
