/* SPDX-License-Identifier: BSD-3-Clause */
#include "softroce/folder.h"

#include "softroce/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

const char *sr_folder_path(char *buf, size_t len)
{
	const char *dir = sr_settings()->control_dir;

	if (dir)
		snprintf(buf, len, "%s", dir);
	else
		snprintf(buf, len, "/dev/shm/softroce-%u", (unsigned)geteuid());
	return buf;
}

/* In a place where everybody may write it is trusted only when it is ours alone. */
int sr_folder_open(void)
{
	char path[256];
	struct stat st;
	int fd;

	sr_folder_path(path, sizeof(path));
	/*
	 * Only the default is ours to make: a misspelt SOFTROCE_CONTROL would become a folder that
	 * nobody looks into.
	 */
	if (!sr_settings()->control_dir && mkdir(path, 0700) && errno != EEXIST)
		return -errno;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || st.st_uid != geteuid() || (st.st_mode & 022)) {
		close(fd);
		return -EPERM;
	}
	return fd;
}
