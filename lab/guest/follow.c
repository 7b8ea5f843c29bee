/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Follows a file that others append to. `tail -f` looks once a second, and who acts on what it has
 * said by then takes the past for the present.
 */
#include "commands.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* Lines are printed together after this long: the guest's one processor has failovers to do while
 * they come. */
#define TOGETHER_MS 300

static int print_all(const char *data, size_t length)
{
	while (length) {
		ssize_t n = write(STDOUT_FILENO, data, length);

		if (n < 0 && errno != EINTR)
			return -1;
		if (n > 0) {
			data += n;
			length -= (size_t)n;
		}
	}
	return 0;
}

static size_t count_whole_lines(const char *data, size_t length)
{
	while (length && data[length - 1] != '\n')
		length--;
	return length;
}

/* What has been appended, line by line: of a line that crosses a page the first half is seen before
 * the second is there. */
static int print_new(int file)
{
	char data[16384];
	ssize_t n;

	while ((n = read(file, data, sizeof(data))) > 0) {
		size_t whole = count_whole_lines(data, (size_t)n);

		if (print_all(data, whole))
			return -1;
		if (whole < (size_t)n && lseek(file, (off_t)whole - n, SEEK_CUR) < 0)
			return -1;
		if (!whole)
			return 0;
	}
	return n < 0 ? -1 : 0;
}

static int catch_up(int file)
{
	if (print_new(file))
		return -1;
	return print_all(FOLLOW_CAUGHT_UP, strlen(FOLLOW_CAUGHT_UP));
}

/* Changes are looked at together, a signal at once. */
static int follow_on(int file, int changes, int signals)
{
	struct pollfd fds[2] = { { .fd = changes, .events = POLLIN },
				 { .fd = signals, .events = POLLIN } };
	struct signalfd_siginfo info;
	char events[4096];

	if (poll(fds, 2, -1) < 0)
		return errno == EINTR ? 0 : -1;
	if (fds[1].revents) {
		if (read(signals, &info, sizeof(info)) < 0)
			return -1;
		return catch_up(file);
	}
	poll(&fds[1], 1, TOGETHER_MS); /* a signal ends it, and is read the next time */
	if (read(changes, events, sizeof(events)) < 0)
		return -1;
	return print_new(file);
}

int follow_command(const char *path)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);
	int changes = inotify_init1(IN_CLOEXEC);
	sigset_t asked;
	int signals;

	sigemptyset(&asked);
	sigaddset(&asked, SIGUSR1);
	sigprocmask(SIG_BLOCK, &asked, NULL);
	signals = signalfd(-1, &asked, SFD_CLOEXEC);
	if (file < 0 || changes < 0 || signals < 0 ||
	    inotify_add_watch(changes, path, IN_MODIFY) < 0) {
		perror(path);
		return 1;
	}
	if (catch_up(file))
		return 1;
	while (!follow_on(file, changes, signals))
		;
	perror(path);
	return 1;
}
