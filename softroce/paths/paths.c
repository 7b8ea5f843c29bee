/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * paths.c - the few files that programs look for beside libibverbs, for devices that the kernel
 * does not know
 *
 * A library of its own (libsoftroce_paths.so, preloaded by softroce-run) that stands before the C
 * library's functions and answers for the devices of SOFTROCE_DEVICES; every other path passes
 * through. UCX needs these:
 *
 *   /dev/infiniband/<device>                                   a device file that may be read and
 *                                                              written: /dev/null
 *   /sys/class/infiniband/<device>/ports/1/gid_attrs/types/<i>  "RoCE v2"
 *   /sys/class/infiniband/<device>/ports/1/gid_attrs/ndevs/<i>  the network interface
 *
 * NCCL this, by realpath():
 *
 *   /sys/class/infiniband/<device>/device          the stand-in for its PCI function (pci.h)
 *
 * and librdmacm these:
 *
 *   /sys/class/misc/rdma_cm/abi_version                        "4"
 *   /dev/infiniband/rdma_cm                                    the kernel's connection manager:
 *                                                              softroce's (cm/)
 *
 * It is not part of libsoftroce.so because that library's symbols carry libibverbs' versions, and
 * the C library's do not.
 */
#include "softroce/cm/command.h"
#include "softroce/netif.h"
#include "softroce/pci.h"
#include "softroce/settings.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <rdma/rdma_user_cm.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define DEV "/dev/infiniband/"
#define SYS "/sys/class/infiniband/"
#define GID_ATTRS "/ports/1/gid_attrs/"
#define CM_DEV DEV "rdma_cm"
#define CM_ABI "/sys/class/misc/rdma_cm/abi_version"
#define CM_FDS 65536 /* descriptors that may be the connection manager's */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct sr_device_spec specs[SR_DEVICES_MAX];
static int count;

static void complaint_ignore(void *user, const char *line)
{
	/* libsoftroce says it. */
}

static void specs_read(void)
{
	count = sr_devices_parse(sr_settings()->devices, specs, SR_DEVICES_MAX, complaint_ignore,
				 NULL);
}

/* The device that the path below `prefix` begins with; *rest is what follows its name. */
static const struct sr_device_spec *device_of(const char *path, const char *prefix,
					      const char **rest)
{
	size_t n = strlen(prefix);

	if (!path || strncmp(path, prefix, n))
		return NULL;
	pthread_once(&once, specs_read);
	for (int i = 0; i < count; i++) {
		size_t len = strlen(specs[i].name);

		*rest = path + n + len;
		if (!strncmp(path + n, specs[i].name, len) && (!**rest || **rest == '/'))
			return &specs[i];
	}
	return NULL;
}

/* The path to use in its place. */
static const char *path_map(const char *path)
{
	const char *rest;

	return device_of(path, DEV, &rest) && !*rest ? "/dev/null" : path;
}

/* The folder that stands for a device's PCI function, as a path; false for all other paths. */
static bool function_of(const char *path, char *folder, size_t size)
{
	const char *rest;
	const struct sr_device_spec *spec = device_of(path, SYS, &rest);

	if (!spec || strcmp(rest, "/device") || sr_pci_folder(spec, folder, size))
		return false;
	return strlen(folder) + sizeof("/device") <= size && strcat(folder, "/device");
}

static void interface_name(const struct sr_device_spec *spec, char *text, size_t size)
{
	struct sr_netif link;
	uint8_t first[16];

	memcpy(first, spec->gid, sizeof(first));
	first[15] |= spec->kind == SR_DEVICE_SUBNET; /* any address of it will do */
	if (sr_netif_read(&link, spec, first))
		snprintf(text, size, "\n");
	else
		snprintf(text, size, "%s\n", link.ifname);
}

/* The text of a file that is not there; false for all other paths. */
static bool text_of(const char *path, char *text, size_t size)
{
	const struct sr_device_spec *spec;
	const char *rest;

	if (path && !strcmp(path, CM_ABI)) {
		snprintf(text, size, "%d\n", RDMA_USER_CM_ABI_VERSION);
		return true;
	}
	spec = device_of(path, SYS, &rest);
	if (!spec || strncmp(rest, GID_ATTRS, strlen(GID_ATTRS)))
		return false;
	rest += strlen(GID_ATTRS);
	if (!strcmp(rest, "types/0"))
		snprintf(text, size, "RoCE v2\n");
	else if (!strcmp(rest, "ndevs/0"))
		interface_name(spec, text, size);
	else
		return false;
	return true;
}

/* A descriptor from which the text can be read, or -1. */
static int text_open(const char *text)
{
	int fd = memfd_create("softroce", MFD_CLOEXEC);

	if (fd < 0)
		return -1;
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text) || lseek(fd, 0, SEEK_SET)) {
		close(fd);
		errno = EIO;
		return -1;
	}
	return fd;
}

/* The C library's function of this name. */
#define NEXT(name)                                                               \
	({                                                                       \
		static __typeof__(name) *_Atomic next;                           \
		__typeof__(name) *to = next;                                     \
		if (!to)                                                         \
			next = to = (__typeof__(name) *)dlsym(RTLD_NEXT, #name); \
		to;                                                              \
	})

/* ---- the connection manager's descriptors ---- */

static atomic_uchar cm_fds[CM_FDS / 8];

static bool cm_has(int fd)
{
	return fd >= 0 && fd < CM_FDS &&
	       (atomic_load_explicit(&cm_fds[fd / 8], memory_order_relaxed) >> fd % 8 & 1);
}

/* libsoftroce's function of this name; NULL in a program that runs without it. */
#define OURS(name) ((__typeof__(name) *)dlsym(RTLD_DEFAULT, #name))

static int cm_open(void)
{
	__typeof__(softroce_cm_open) *to = OURS(softroce_cm_open);
	int fd;

	if (!to) {
		errno = ENOENT;
		return -1;
	}
	fd = to();
	if (fd >= CM_FDS) {
		OURS(softroce_cm_close)(fd);
		errno = EMFILE;
		return -1;
	}
	if (fd >= 0)
		atomic_fetch_or(&cm_fds[fd / 8], 1u << fd % 8);
	return fd;
}

/*
 * As the kernel's device looks, when it has one: librdmacm compares the number with what netlink
 * says.
 */
static int cm_stat(struct stat *st)
{
	if (NEXT(stat)(CM_DEV, st)) {
		memset(st, 0, sizeof(*st));
		st->st_mode = S_IFCHR | 0666;
		st->st_rdev = makedev(10, 255);
	}
	return 0;
}

__attribute__((visibility("default"))) ssize_t write(int fd, const void *data, size_t len)
{
	return cm_has(fd) ? OURS(softroce_cm_write)(fd, data, len) : NEXT(write)(fd, data, len);
}

__attribute__((visibility("default"))) int close(int fd)
{
	if (!cm_has(fd))
		return NEXT(close)(fd);
	atomic_fetch_and(&cm_fds[fd / 8], ~(1u << fd % 8));
	return OURS(softroce_cm_close)(fd);
}

__attribute__((visibility("default"))) int fstat(int fd, struct stat *st)
{
	return cm_has(fd) ? cm_stat(st) : NEXT(fstat)(fd, st);
}

/* ---- paths ---- */

#define OPEN(name)                                                                        \
	__attribute__((visibility("default"))) int name(const char *path, int flags, ...) \
	{                                                                                 \
		char text[IFNAMSIZ + 16];                                                 \
		mode_t mode = 0;                                                          \
		va_list args;                                                             \
                                                                                          \
		va_start(args, flags);                                                    \
		if (flags & (O_CREAT | __O_TMPFILE))                                      \
			mode = va_arg(args, mode_t);                                      \
		va_end(args);                                                             \
		if (text_of(path, text, sizeof(text)))                                    \
			return text_open(text);                                           \
		if (path && !strcmp(path, CM_DEV))                                        \
			return cm_open();                                                 \
		return NEXT(name)(path_map(path), flags, mode);                           \
	}

#define FOPEN(name)                                                                          \
	__attribute__((visibility("default"))) FILE *name(const char *path, const char *how) \
	{                                                                                    \
		char text[IFNAMSIZ + 16];                                                    \
		int fd;                                                                      \
                                                                                             \
		if (!text_of(path, text, sizeof(text)))                                      \
			return NEXT(name)(path_map(path), how);                              \
		fd = text_open(text);                                                        \
		return fd < 0 ? NULL : fdopen(fd, "r");                                      \
	}

OPEN(open)
OPEN(open64)
FOPEN(fopen)
FOPEN(fopen64)

__attribute__((visibility("default"))) int stat(const char *path, struct stat *st)
{
	return NEXT(stat)(path_map(path), st);
}

__attribute__((visibility("default"))) int stat64(const char *path, struct stat64 *st)
{
	return NEXT(stat64)(path_map(path), st);
}

__attribute__((visibility("default"))) int access(const char *path, int mode)
{
	char text[IFNAMSIZ + 16];

	if (!text_of(path, text, sizeof(text)))
		return NEXT(access)(path_map(path), mode);
	if (!(mode & (W_OK | X_OK)))
		return 0;
	errno = EACCES;
	return -1;
}

__attribute__((visibility("default"))) char *realpath(const char *path, char *resolved)
{
	char folder[PATH_MAX];

	return NEXT(realpath)(function_of(path, folder, sizeof(folder)) ? folder : path, resolved);
}

/* What programs call that were compiled with _FORTIFY_SOURCE. */
extern char *__realpath_chk(const char *path, char *resolved, size_t size);
__attribute__((visibility("default"))) char *__realpath_chk(const char *path, char *resolved,
							    size_t size)
{
	char folder[PATH_MAX];

	if (function_of(path, folder, sizeof(folder)))
		path = folder;
	return NEXT(__realpath_chk)(path, resolved, size);
}
