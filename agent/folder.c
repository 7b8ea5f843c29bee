/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/folder.h"

#include "base/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static int split_path(const char *file, char *dir, size_t size, const char **name)
{
	const char *slash = strrchr(file, '/');
	size_t len = slash ? (size_t)(slash - file) : 0;

	*name = slash ? slash + 1 : file;
	if (!**name)
		return -EISDIR;
	if (!len) { /* the root, or here */
		file = slash ? "/" : ".";
		len = 1;
	}
	if (len >= size)
		return -ENAMETOOLONG;
	memcpy(dir, file, len);
	dir[len] = '\0';
	return 0;
}

/* Below the root a directory that is missing is a mistyped one. */
static bool may_make(const char *dir)
{
	const char *slash = strrchr(dir, '/');

	return !slash || strspn(dir, "/") <= (size_t)(slash - dir);
}

int ha_folder_open(struct ha_folder *folder, const char *file, const char **name)
{
	struct stat st;
	int err = split_path(file, folder->path, sizeof(folder->path), name);

	folder->fd = -1;
	if (err)
		return err;
	if (may_make(folder->path) && mkdir(folder->path, 0755) && errno != EEXIST)
		return -errno;
	folder->fd = open(folder->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (folder->fd < 0)
		return -errno;
	if (fstat(folder->fd, &st) || st.st_uid != geteuid() || st.st_mode & (S_IWGRP | S_IWOTH)) {
		ha_folder_close(folder);
		return -EPERM;
	}
	return 0;
}

void ha_folder_close(struct ha_folder *folder)
{
	if (folder->fd >= 0)
		close(folder->fd);
	folder->fd = -1;
}

int ha_folder_lock(const struct ha_folder *folder)
{
	if (!flock(folder->fd, LOCK_EX | LOCK_NB))
		return 0;
	return errno == EWOULDBLOCK ? -EBUSY : -errno;
}

static void format_temp_name(const char *name, char *temp, size_t size)
{
	snprintf(temp, size, ".%.60s.new", name);
}

int ha_folder_listen(const struct ha_folder *folder, const char *name, mode_t mode)
{
	char temp[80], path[120];
	int err, fd;

	format_temp_name(name, temp, sizeof(temp));
	unlinkat(folder->fd, temp, 0);
	/* There is no bindat(2); this is the same, and short enough for any path. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", folder->fd, temp);
	fd = ha_socket_listen_unix(path, SOCK_STREAM, mode);
	if (fd < 0 || !renameat(folder->fd, temp, folder->fd, name))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

static int write_all(int fd, mode_t mode, const void *data, size_t size)
{
	if (fchmod(fd, mode))
		return -errno;
	for (size_t at = 0; at < size;) {
		ssize_t n = write(fd, (const char *)data + at, size - at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		at += (size_t)n;
	}
	return fsync(fd) ? -errno : 0;
}

/*
 * A rename, and its way to the disk: with the machine's power goes either nothing or the last
 * change. Some file systems have no fsync for directories.
 */
int ha_folder_rename(const struct ha_folder *folder, const char *from, const char *to)
{
	if (renameat(folder->fd, from, folder->fd, to))
		return -errno;
	return fsync(folder->fd) && errno != EINVAL ? -errno : 0;
}

int ha_folder_write(const struct ha_folder *folder, const char *name, mode_t mode, const void *data,
		    size_t size)
{
	char temp[80];
	int fd, err;

	format_temp_name(name, temp, sizeof(temp));
	unlinkat(folder->fd, temp, 0);
	fd = openat(folder->fd, temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	err = write_all(fd, mode, data, size);
	if (close(fd) && !err)
		err = -errno;
	if (!err)
		err = ha_folder_rename(folder, temp, name);
	if (err)
		unlinkat(folder->fd, temp, 0);
	return err;
}

ino_t ha_folder_inode(const struct ha_folder *folder, const char *name)
{
	struct stat st;

	return fstatat(folder->fd, name, &st, AT_SYMLINK_NOFOLLOW) ? 0 : st.st_ino;
}

bool ha_folder_holds(const struct ha_folder *folder, const char *name, ino_t inode)
{
	struct stat ours, now;

	return !fstat(folder->fd, &ours) && !lstat(folder->path, &now) &&
	       ours.st_ino == now.st_ino && ours.st_dev == now.st_dev &&
	       ha_folder_inode(folder, name) == inode;
}
