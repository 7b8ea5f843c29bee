/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sysfs.h - what the kernel says about devices
 *
 * Every path starts with "/sys"; `root` stands for "/" (HA_NCCL_SYSFS_ROOT, "" = the live system),
 * so that tests bring trees of machines that are not here.
 */
#ifndef HA_TOPO_SYSFS_H
#define HA_TOPO_SYSFS_H

#include <stdbool.h>
#include <stddef.h>

/* First line of the file, without blanks at its end. Length, or negative errno. */
int ha_sysfs_read(const char *root, char *buf, size_t len, const char *path_fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* The number in the file (0x is understood), or `missing` when there is none. */
long ha_sysfs_number(const char *root, long missing, const char *path_fmt, ...)
	__attribute__((format(printf, 3, 4)));
bool ha_sysfs_exists(const char *root, const char *path_fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The path with all links resolved, as seen from `root`: it starts with "/sys". 0 or negative errno
 * and "". */
int ha_sysfs_realpath(const char *root, char *buf, size_t len, const char *path_fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* The first file of a folder, in the order of names; "" when it is empty or not there. */
void ha_sysfs_first(const char *root, char *name, size_t size, const char *path_fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* The network interface of an RDMA port, "" when it has none. Returns name. */
const char *ha_sysfs_netdev(const char *root, char *name, size_t size, const char *device,
			    int port);

#endif
