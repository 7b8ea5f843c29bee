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
#include <sys/types.h>

/* The page in the file fd. -EPROTO: it is none, and *why says so; -EAGAIN: it is being made; else
 * what the system says. */
int ha_status_read(int fd, struct ha_status_page *page, const char **why);

/* Events, oldest first: indices into page->event. Returns how many. */
int ha_status_events(const struct ha_status_page *page, int order[HA_STATUS_EVENTS]);

/* Its process has written nothing for longer than one that runs ever does. `now`: CLOCK_MONOTONIC,
 * ns. */
bool ha_status_is_silent(const struct ha_status_page *page, uint64_t now);

/*
 * The events from number `next` on that can be taken now, oldest first. An event that was put in
 * its place after that place was read is none yet: it and what comes after it wait for the next
 * look, unless this is the `last` one. *missed: so many were overwritten before.
 */
int ha_status_events_from(const struct ha_status_page *page, uint64_t next, bool last,
			  int order[HA_STATUS_EVENTS], uint64_t *missed);

struct ha_status_found {
	struct ha_status_page *page; /* NULL: refused, `why` says why */
	const char *why;
	bool ended;   /* its process has ended without taking the page away */
	bool foreign; /* its process is in another pid namespace */
	bool silent;  /* and cannot be seen from here, and writes nothing: ha_status_is_silent() */
	pid_t pid;    /* of the process, here; 0: it cannot be seen, or has ended */
	char name[64];
};

/* Its process runs, as far as can be told. */
static inline bool ha_status_runs(const struct ha_status_found *f)
{
	return f->page && !f->ended && !f->silent;
}

struct ha_config;

/*
 * The directory of the pages: `given` or, NULL, HA_NCCL_STATUS_DIR, with %h, %p and %u replaced.
 * -ENOENT: the setting is "none"; -ENAMETOOLONG.
 */
int ha_status_dir(const struct ha_config *config, const char *given, char *dir, size_t size);

/* Every page of a directory, by process number. The caller gives it back. No directory: *n = 0.
 * -ENOMEM; -EPERM: the directory is another user's and the caller not root, or others may write
 * to it; -ENOTDIR: it is none, or a link to one. */
int ha_status_scan(const char *dir, struct ha_status_found **found, size_t *n);
/* Why it failed, in words that follow the directory's name. */
const char *ha_status_scan_why(int err);
void ha_status_scan_free(struct ha_status_found *found, size_t n);

#endif
