/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * status_read.h - reading the status pages of other processes
 *
 * What comes out is safe to print: texts end, and hold printable UTF-8 alone; counts and indices
 * are in range; a record that was being written all the time, or makes no sense, is marked as never
 * used.
 */
#ifndef HA_TOOLS_STATUS_READ_H
#define HA_TOOLS_STATUS_READ_H

#include "include/hawser/status.h"

#include <stdbool.h>
#include <stddef.h>

/* The page in the file fd. -EPROTO: it is none, and *why says so; -EAGAIN: it is being made; else
 * what the system says. */
int ha_status_read(int fd, struct ha_status_page *page, const char **why);

/* Events, oldest first: indices into page->event. Returns how many. */
int ha_status_events(const struct ha_status_page *page, int order[HA_STATUS_EVENTS]);

struct ha_status_found {
	struct ha_status_page *page; /* NULL: refused, `why` says why */
	const char *why;
	bool ended;   /* its process has ended without taking the page away */
	bool foreign; /* another pid namespace: whether the process runs cannot be told from here */
	char name[64];
};

struct ha_config;

/*
 * The directory of the pages: `given` or, NULL, HA_NCCL_STATUS_DIR, with %h, %p and %u replaced.
 * -ENOENT: the setting is "none"; -ENAMETOOLONG.
 */
int ha_status_dir(const struct ha_config *config, const char *given, char *dir, size_t size);

/* Every page of a directory, by process number. The caller gives it back. No directory: *n = 0.
 * -ENOMEM; -EPERM: the directory is another user's and the caller not root, or others may write
 * to it. */
int ha_status_scan(const char *dir, struct ha_status_found **found, size_t *n);
void ha_status_scan_free(struct ha_status_found *found, size_t n);

#endif
