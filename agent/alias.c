/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/alias.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Who owns the link may lead its readers somewhere else. */
static bool link_is_ours(const char *path, const char *folder)
{
	char target[PATH_MAX];
	struct stat st;
	ssize_t n;

	if (lstat(path, &st) || !S_ISLNK(st.st_mode) || st.st_uid != geteuid())
		return false;
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		return false;
	target[n] = 0;
	return !strcmp(target, folder);
}

int ha_alias_ensure(const char *path, const char *folder)
{
	if (!symlink(folder, path))
		return 0;
	if (errno != EEXIST)
		return -errno;
	return link_is_ours(path, folder) ? 0 : -EEXIST;
}
