/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdma/topo/sysfs.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* root + formatted path; false: too long. */
static bool path_make(char *path, const char *root, const char *fmt, va_list ap)
{
	int used = snprintf(path, PATH_MAX, "%s", root);

	return used < PATH_MAX &&
	       vsnprintf(path + used, (size_t)(PATH_MAX - used), fmt, ap) < PATH_MAX - used;
}

static int file_read(const char *path, char *buf, size_t len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	buf[0] = 0;
	if (fd < 0)
		return -errno;
	n = read(fd, buf, len - 1);
	if (n < 0)
		n = -errno;
	close(fd);
	if (n < 0)
		return (int)n;
	buf[n] = 0;
	n = (ssize_t)strcspn(buf, "\n");
	while (n > 0 && isspace((unsigned char)buf[n - 1]))
		n--;
	buf[n] = 0;
	return (int)n;
}

int ha_sysfs_read(const char *root, char *buf, size_t len, const char *path_fmt, ...)
{
	char path[PATH_MAX];
	va_list ap;
	bool ok;

	va_start(ap, path_fmt);
	ok = path_make(path, root, path_fmt, ap);
	va_end(ap);
	if (!ok) {
		buf[0] = 0;
		return -ENAMETOOLONG;
	}
	return file_read(path, buf, len);
}

long ha_sysfs_number(const char *root, long missing, const char *path_fmt, ...)
{
	char path[PATH_MAX], text[64], *end;
	va_list ap;
	long value;
	bool ok;

	va_start(ap, path_fmt);
	ok = path_make(path, root, path_fmt, ap);
	va_end(ap);
	if (!ok || file_read(path, text, sizeof(text)) <= 0)
		return missing;
	value = strtol(text, &end, 0);
	return end == text ? missing : value;
}

bool ha_sysfs_exists(const char *root, const char *path_fmt, ...)
{
	char path[PATH_MAX];
	va_list ap;
	bool ok;

	va_start(ap, path_fmt);
	ok = path_make(path, root, path_fmt, ap);
	va_end(ap);
	return ok && access(path, F_OK) == 0;
}

int ha_sysfs_realpath(const char *root, char *buf, size_t len, const char *path_fmt, ...)
{
	char path[PATH_MAX], real[PATH_MAX], real_root[PATH_MAX] = "";
	const char *inside;
	va_list ap;
	bool ok;

	buf[0] = 0;
	va_start(ap, path_fmt);
	ok = path_make(path, root, path_fmt, ap);
	va_end(ap);
	if (!ok)
		return -ENAMETOOLONG;
	if (!realpath(path, real) || (*root && !realpath(root, real_root)))
		return -errno;
	if (!strcmp(real_root, "/"))
		real_root[0] = 0;
	if (strncmp(real, real_root, strlen(real_root)))
		return -EXDEV; /* a link that leads out of the root */
	inside = real + strlen(real_root);
	if (strlen(inside) >= len)
		return -ENAMETOOLONG;
	strcpy(buf, inside);
	return 0;
}

void ha_sysfs_first(const char *root, char *name, size_t size, const char *path_fmt, ...)
{
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *folder = NULL;
	va_list ap;

	*name = 0;
	va_start(ap, path_fmt);
	if (path_make(path, root, path_fmt, ap))
		folder = opendir(path);
	va_end(ap);
	while (folder && (entry = readdir(folder)))
		if (entry->d_name[0] != '.' && (!*name || strcmp(entry->d_name, name) < 0))
			snprintf(name, size, "%s", entry->d_name);
	if (folder)
		closedir(folder);
}

const char *ha_sysfs_netdev(const char *root, char *name, size_t size, const char *device, int port)
{
	if (ha_sysfs_read(root, name, size, "/sys/class/infiniband/%s/ports/%d/gid_attrs/ndevs/0",
			  device, port) > 0)
		return name;
	/* rdma_rxe and siw name theirs here */
	if (ha_sysfs_read(root, name, size, "/sys/class/infiniband/%s/parent", device) > 0)
		return name;
	ha_sysfs_first(root, name, size, "/sys/class/infiniband/%s/device/net", device);
	return name;
}
