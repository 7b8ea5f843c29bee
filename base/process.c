/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/process.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* the first behind the name; the name is in parentheses and may hold anything */
#define STATE_FIELD 3
#define START_FIELD 22

uint64_t ha_process_start(pid_t pid)
{
	char path[64], text[1024], *at;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	at = strrchr(text, ')');
	if (!at || at[1] != ' ' || at[2] == 'Z' || at[2] == 'X')
		return 0;
	for (int field = STATE_FIELD - 1; field < START_FIELD && at; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at + 1, NULL, 10) : 0;
}

uint64_t ha_process_space(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) ? 0 : st.st_ino;
}

bool ha_process_expand(const char *path, char *out, size_t size)
{
	size_t at = 0;

	for (; *path && at < size; path++) {
		char word[80] = { *path, 0 };

		if (*path == '%' && path[1]) {
			path++;
			if (*path == 'h')
				gethostname(word, sizeof(word) - 1);
			else if (*path == 'p')
				snprintf(word, sizeof(word), "%u", (unsigned)getpid());
			else if (*path == 'u')
				snprintf(word, sizeof(word), "%u", (unsigned)geteuid());
			else
				snprintf(word, sizeof(word), *path == '%' ? "%%" : "%%%c", *path);
		}
		at += (size_t)snprintf(out + at, size - at, "%s", word);
	}
	return at < size;
}
