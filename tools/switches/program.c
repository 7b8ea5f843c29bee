/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/switches/program.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define LIMIT_NS (10 * HA_NS_PER_S)
#define LOOK_NS (2 * HA_NS_PER_MS)
#define OUTPUT_MAX (8u << 20) /* bytes; more is cut off */
#define FOLDER "/usr/sbin"

/* The whole of a file in memory, with a 0 behind it. */
static char *read_whole(int fd)
{
	char *text = malloc(OUTPUT_MAX + 1);
	ssize_t n = text ? pread(fd, text, OUTPUT_MAX, 0) : -1;

	if (n < 0) {
		free(text);
		return NULL;
	}
	text[n] = 0;
	return text;
}

/* Both are files in memory: a pipe could fill up. */
static int start_program(const char *const argv[], int out, int err, pid_t *pid)
{
	char *const *words = (char *const *)(uintptr_t)argv;
	posix_spawn_file_actions_t actions;
	char path[256];
	int rc;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", 0, 0);
	posix_spawn_file_actions_adddup2(&actions, out, 1);
	posix_spawn_file_actions_adddup2(&actions, err, 2);
	rc = posix_spawnp(pid, argv[0], &actions, NULL, words, environ);
	snprintf(path, sizeof(path), "%s/%s", FOLDER, argv[0]);
	if (rc == ENOENT)
		rc = posix_spawn(pid, path, &actions, NULL, words, environ);
	posix_spawn_file_actions_destroy(&actions);
	return rc;
}

/* Its status as of waitpid; -1: it did not end in time. */
static int await_end(pid_t pid)
{
	int64_t limit = ha_monotonic_ns() + (int64_t)LIMIT_NS;
	int status;
	pid_t ended;

	while (!(ended = waitpid(pid, &status, WNOHANG))) {
		if (ha_monotonic_ns() > limit) {
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			return -1;
		}
		nanosleep(&(struct timespec) { .tv_nsec = LOOK_NS }, NULL);
	}
	return ended == pid ? status : -1;
}

static char *last_line(char *text)
{
	for (size_t n = text ? strlen(text) : 0; n && text[n - 1] == '\n'; n--)
		text[n - 1] = 0;
	return text && strrchr(text, '\n') ? strrchr(text, '\n') + 1 : text;
}

static bool begins_with_name(const char *line, const char *program)
{
	size_t n = strlen(program);

	return line && strncmp(line, program, n) == 0 && line[n] == ':';
}

/* Why it failed. infiniband-diags says it where it prints its results, in a line that begins with
 * the program's name; others in the last line of their complaints. */
static void take_complaint(const char *program, int out, int err, char *why, size_t size)
{
	char *results = read_whole(out), *complaints = read_whole(err);
	const char *result = last_line(results), *complaint = last_line(complaints);

	if (begins_with_name(result, program))
		snprintf(why, size, "%s", result);
	else if (complaint && *complaint)
		snprintf(why, size, "%s: %s", program, complaint);
	else
		snprintf(why, size, "%s failed", program);
	free(results);
	free(complaints);
}

char *switches_run(const char *const argv[], char *why, size_t size)
{
	int out = memfd_create("out", MFD_CLOEXEC), err = memfd_create("err", MFD_CLOEXEC);
	char *text = NULL;
	int rc = -1, status;
	pid_t pid;

	if (out >= 0 && err >= 0)
		rc = start_program(argv, out, err, &pid);
	if (rc == ENOENT) {
		snprintf(why, size, "%s: not installed", argv[0]);
	} else if (rc) {
		snprintf(why, size, "%s: %s", argv[0], strerror(rc < 0 ? errno : rc));
	} else {
		status = await_end(pid);
		if (!status)
			text = read_whole(out);
		if (status == -1)
			snprintf(why, size, "%s does not end", argv[0]);
		else if (!text)
			take_complaint(argv[0], out, err, why, size);
	}
	close(out);
	close(err);
	return text;
}
